"""Does a score know right from wrong: overlap, difficulty, AUC, the C−W gap (S2 §3, §6.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from ..inference.bootstrap import BootstrapConfig, Interval
from ..readouts.metrics import _pairs, auc_interval
from .frames import Scored, estimate, interval, need, parts, ratio, scored, verdicts

_ESTIMATE = ["value", "low", "high", "p", "n"]
_SIZES = ["right", "wrong", "unjudged", "unscored"]
_GRID = 2048  # points at which two kernel densities are compared


def aucs(
    frame: pd.DataFrame,
    scores: Sequence[str],
    by: Sequence[str] = (),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Rollout-level ROC AUC of right against wrong, ties a half; questions resampled.

    Returns
    -------
    One row per group and score: value, low, high, p (of 0.5), n (questions), right, wrong
    (rollouts), unjudged, unscored.  NaN where all are right or all wrong.
    """

    def of(kept: Scored) -> Interval:
        if len(np.unique(kept.correct)) < 2:
            return _undefined(kept, config)
        return auc_interval(kept.correct, kept.values, kept.names[kept.owner], config)

    return _rows(frame, scores, by, of)


def auc_difference(
    frame: pd.DataFrame, score: str, reference: str, config: BootstrapConfig | None = None
) -> dict[str, float | int]:
    """AUC of ``score`` minus that of ``reference``, on the rollouts that have both.

    Returns
    -------
    value, low, high, p (of no difference), n (questions), right, wrong, unjudged, unscored
    (rollouts that lack one of the two).
    """
    need(frame, ["question_id", score, reference])
    both = frame[[score, reference]].notna().all(axis=1)
    ours, other = (scored(frame[both], name) for name in (score, reference))
    count = len(ours.names)
    wins, positives, negatives = _pairs(ours.correct, ours.values, ours.owner, count)
    wins = wins - _pairs(other.correct, other.values, other.owner, count)[0]

    def statistic(counts: np.ndarray) -> np.ndarray:
        pairs = (counts @ positives) * (counts @ negatives)
        return ratio(((counts @ wins) * counts).sum(axis=1), pairs)

    unjudged = int(np.isnan(verdicts(frame)).sum())
    left = {"unjudged": unjudged, "unscored": len(frame) - unjudged - len(ours.values)}
    return {**estimate(interval(statistic, count, config)), **_sizes(ours), **left}


def verdict_gaps(
    frame: pd.DataFrame,
    scores: Sequence[str],
    by: Sequence[str] = (),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """C−W mean gap: mean score of right rollouts minus that of wrong ones (S2 Fig. 2).

    Returns
    -------
    Columns of ``aucs``; p is of no gap.  NaN where all are right or all wrong.
    """

    def of(kept: Scored) -> Interval:
        right, wrong = kept.correct, 1.0 - kept.correct
        sums = [kept.sums(x) for x in (right * kept.values, right, wrong * kept.values, wrong)]

        def gap(counts: np.ndarray) -> np.ndarray:
            above, n, other, other_n = (counts @ s for s in sums)
            return ratio(above, n) - ratio(other, other_n)

        return interval(gap, len(kept.names), config)

    return _rows(frame, scores, by, of)


def overlaps(
    frame: pd.DataFrame,
    scores: Sequence[str],
    by: Sequence[str] = (),
    bins: int = 20,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Overlap coefficient of the densities of right and wrong rollouts (S2 §3: 54.2 %).

    ``value`` is Σ_k min(p_k, q_k) over ``bins`` equal-width bins of the score's range, with
    questions resampled and the bins kept; few rollouts in many bins make it too small.
    ``kernel`` is ∫ min of two Gaussian kernel densities (Scott's bandwidth), without interval.
    S2 does not say which of the two it takes.

    Returns
    -------
    Columns of ``aucs`` (p NaN) and kernel, NaN for fewer than two rollouts or no spread in one
    of the classes.  NaN where all are right or all wrong.
    """

    def of(kept: Scored) -> Interval:
        if not len(kept.values):
            return _undefined(kept, config)
        edges = np.linspace(kept.values.min(), kept.values.max(), bins + 1)
        place = np.searchsorted(edges[1:-1], kept.values, side="right")
        tables = []
        for verdict in (1.0, 0.0):
            cells = kept.owner * bins + place
            mass = np.bincount(cells[kept.correct == verdict], minlength=len(kept.names) * bins)
            tables.append(mass.reshape(-1, bins).astype(np.float64))

        def overlap(counts: np.ndarray) -> np.ndarray:
            right, wrong = (counts @ t for t in tables)
            shares = (ratio(m, m.sum(axis=1, keepdims=True)) for m in (right, wrong))
            return np.minimum(*shares).sum(axis=1)

        return interval(overlap, len(kept.names), config)

    table = _rows(frame, scores, by, of).assign(p=np.nan)
    table["kernel"] = [
        _kernel(scored(part, score)) for _, part in parts(frame, by) for score in scores
    ]
    return table


def _kernel(kept: Scored) -> float:
    sides = [kept.values[kept.correct == verdict] for verdict in (1.0, 0.0)]
    if any(len(s) < 2 or np.ptp(s) == 0 for s in sides):
        return np.nan
    right, wrong = (gaussian_kde(s) for s in sides)
    margin = 4 * max(float(np.sqrt(d.covariance[0, 0])) for d in (right, wrong))
    grid = np.linspace(kept.values.min() - margin, kept.values.max() + margin, _GRID)
    return float(np.trapezoid(np.minimum(right(grid), wrong(grid)), grid))


def _rows(frame: pd.DataFrame, scores: Sequence[str], by: Sequence[str], of) -> pd.DataFrame:
    rows = []
    for key, part in parts(frame, by):
        for score in scores:
            kept = scored(part, score)
            left = {"unjudged": kept.unjudged, "unscored": kept.unscored}
            rows.append({**key, "score": score, **estimate(of(kept)), **_sizes(kept), **left})
    return pd.DataFrame(rows, columns=[*by, "score", *_ESTIMATE, *_SIZES])


def _sizes(kept: Scored) -> dict[str, int]:
    right = int(kept.correct.sum())
    return {"right": right, "wrong": len(kept.correct) - right}


def _undefined(kept: Scored, config: BootstrapConfig | None) -> Interval:
    return interval(lambda counts: np.full(len(counts), np.nan), len(kept.names), config)
