"""Recall of the gold documents: is a high score a sign of the right retrieval (S2 §6.1, §6.2)?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..inference.bootstrap import BootstrapConfig, bootstrap_means
from ..reports.record import Rollout
from .frames import (
    Scored,
    estimate,
    interval,
    need,
    parts,
    questions_of,
    quotient,
    ratio,
    rollout_frame,
    scored,
    verdicts,
)

RECALL = "gold_recall"
NO_GOLD, NO_IDS = "no gold documents", "document ids unknown"
_ESTIMATE = ["value", "low", "high", "p", "n"]


def gold_recall(rollouts: Sequence[Rollout]) -> pd.DataFrame:
    """|D ∩ G| / |G| per rollout: the share of its question's gold documents that it retrieved.

    A rollout whose question has no gold documents has no recall (NaN), nor has any of a cell in
    which no document has ids; a rollout that retrieved nothing has recall 0.

    Returns
    -------
    question_id, rollout_id, cell, correct, gold_recall, gold (|G|), reason.
    """
    identified = {r.cell for r in rollouts if any(d.ids for d in r.documents)}
    rows = []
    for rollout in rollouts:
        gold = set(rollout.gold_documents)
        found = gold & {i for d in rollout.documents for i in d.ids}
        reason = "" if rollout.cell in identified else NO_IDS
        reason = reason if gold else NO_GOLD
        rows.append(
            {
                RECALL: np.nan if reason else len(found) / len(gold),
                "gold": len(gold),
                "reason": reason,
            }
        )
    frame = pd.DataFrame(rows, columns=[RECALL, "gold", "reason"])
    return pd.concat([rollout_frame(rollouts), frame], axis=1)


def recall_summary(
    frame: pd.DataFrame,
    scores: Sequence[str],
    by: Sequence[str] = (),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Gold recall of right and wrong rollouts, and its correlations; questions resampled.

    Parameters
    ----------
    frame : of ``gold_recall``, with score columns.

    Returns
    -------
    One row per group and metric: "mean, right", "mean, wrong", "r with correct" (Pearson, the
    verdict as 0 and 1), "r with <score>" (over rollouts with the score, judged or not).  value,
    low, high, p (of zero), n (questions), rollouts.  A constant side has no correlation: NaN.
    """
    need(frame, ["question_id", RECALL, "correct", *scores])
    rows = []
    for key, part in parts(frame, by):
        known = part[part[RECALL].notna()].assign(correct=verdicts(part[part[RECALL].notna()]))
        found = {}
        for verdict, name in ((1.0, "right"), (0.0, "wrong")):
            chosen = known[known["correct"] == verdict]
            kept = scored(chosen, RECALL)
            sums = kept.sums(kept.values), kept.sums(np.ones(len(kept.values)))
            found[f"mean, {name}"] = kept, quotient(*sums)
        for score in ("correct", *scores):
            kept = scored(known, score, judged=False)
            recall = known.loc[known[score].notna(), RECALL].to_numpy(dtype=np.float64)
            found[f"r with {score}"] = kept, pearson(kept, recall)
        for metric, (kept, statistic) in found.items():
            row = estimate(interval(statistic, len(kept.names), config))
            rows.append({**key, "metric": metric, **row, "rollouts": len(kept.values)})
    return pd.DataFrame(rows, columns=[*by, "metric", *_ESTIMATE, "rollouts"])


def pearson(kept: Scored, others: np.ndarray):
    """Counts [draws, questions] -> Pearson r [draws] of ``kept.values`` and ``others`` [n]."""
    x, y = (v - v.mean() if len(v) else v for v in (kept.values, np.asarray(others, np.float64)))
    sums = [kept.sums(v) for v in (np.ones(len(x)), x, y, x * x, y * y, x * y)]
    least = [1e-12 * s.sum() for s in sums[3:5]]

    def statistic(counts: np.ndarray) -> np.ndarray:
        n, sx, sy, sxx, syy, sxy = (counts @ s for s in sums)
        spread = sxx - ratio(sx**2, n), syy - ratio(sy**2, n)
        some = (spread[0] > least[0]) & (spread[1] > least[1])
        scale = np.sqrt(np.where(some, spread[0] * spread[1], 0.0))
        return ratio(sxy - ratio(sx * sy, n), scale)

    return statistic


def argmax_recall(
    frame: pd.DataFrame,
    scores: tuple[str, str],
    right: tuple[int, int] = (1, 2),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Gold recall of the rollout that each score ranks first, on minority-correct questions.

    Parameters
    ----------
    frame : of ``gold_recall``, with the two score columns.
    right : least and most right rollouts that a question may have (S2 §6.2: 1 or 2 of 8); an
        unjudged rollout is not right.

    Returns
    -------
    One row per score and one "<first> - <second>": score, value, low, high, p, n (questions),
    left_out (questions of the bucket where a score or recall is missing throughout).  Rollouts
    that share the largest score are averaged: a fair coin between them.
    """
    need(frame, ["question_id", RECALL, *scores])
    owner, names = questions_of(frame)
    solved = np.bincount(owner, np.nan_to_num(verdicts(frame)), len(names))
    bucket = np.flatnonzero((solved >= right[0]) & (solved <= right[1]))
    chosen = [[_first(frame[owner == q], score) for score in scores] for q in bucket]
    values = np.array(chosen, dtype=np.float64).reshape(-1, 2)
    values = values[~np.isnan(values).any(axis=1)]
    matrix = np.column_stack([values, values[:, 0] - values[:, 1]])
    names = [*scores, f"{scores[0]} - {scores[1]}"]
    left = {"left_out": len(bucket) - len(values)}
    if not len(matrix):
        nothing = {"value": np.nan, "low": np.nan, "high": np.nan, "p": np.nan, "n": 0}
        return pd.DataFrame([{"score": name, **nothing, **left} for name in names])
    found = bootstrap_means(matrix, config)
    return pd.DataFrame(
        [{"score": n, **estimate(i), **left} for n, i in zip(names, found, strict=True)]
    )


def _first(question: pd.DataFrame, score: str) -> float:
    """Mean recall of the rollouts with the largest score, among those that have a recall."""
    known = question[question[score].notna() & question[RECALL].notna()]
    return float(known.loc[known[score] == known[score].max(), RECALL].mean())
