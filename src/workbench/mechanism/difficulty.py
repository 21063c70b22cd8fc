"""Mean score by oracle difficulty, in per cent of its peak (S2 §3, Fig. 5).

A question's difficulty is the share of its judged rollouts that are right.  S2 finds that
questions no rollout solves still get 82 to 97 % of DeepConf's peak.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..inference.bootstrap import BootstrapConfig
from .frames import estimate, interval, parts, questions_of, ratio, scored, verdicts


def score_by_difficulty(
    frame: pd.DataFrame,
    scores: Sequence[str],
    by: Sequence[str] = (),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """The mean score of each difficulty, and what it is of the best difficulty's mean.

    With N the most judged rollouts that a question has, difficulties are 0, 1/N, ..., 1; a
    question with fewer goes to the nearest, which is 0 (or 1) only if none (or all) are right.
    A question's score is the mean over its rollouts that have one, judged or not.

    Returns
    -------
    One row per group, score and difficulty that occurs: difficulty, mean, value (per cent of
    the peak, the largest mean; the peak is sought anew in each resample of questions), low,
    high, p (NaN), n (questions), left_out (questions without a verdict or without the score).
    The per cent are NaN when the peak is not positive.
    """
    rows = []
    for key, part in parts(frame, by):
        level = _levels(part)
        for score in scores:
            kept = scored(part, score, judged=False)
            means = pd.Series(ratio(kept.sums(kept.values), kept.sums(np.ones(len(kept.values)))))
            means.index = kept.names
            known = pd.DataFrame({"level": level, "mean": means}).dropna()
            grid = np.sort(known["level"].unique())
            members = (known["level"].to_numpy()[:, None] == grid).astype(np.float64)
            sums = members * known["mean"].to_numpy()[:, None]
            asked = part["question_id"].nunique()
            for place, difficulty in enumerate(grid):
                found = interval(_percent(sums, members, place), len(known), config)
                n = int(members[:, place].sum())
                rows.append(
                    {
                        **key,
                        "score": score,
                        "difficulty": difficulty,
                        "mean": float(sums[:, place].sum() / n),
                        **estimate(found),
                        "p": np.nan,
                        "n": n,
                        "left_out": asked - len(known),
                    }
                )
    columns = ["score", "difficulty", "mean", "value", "low", "high", "p", "n", "left_out"]
    return pd.DataFrame(rows, columns=[*by, *columns])


def _levels(frame: pd.DataFrame) -> pd.Series:
    """Difficulty of each question with a verdict, by question id."""
    correct = verdicts(frame)
    judged = ~np.isnan(correct)
    owner, names = questions_of(frame[judged])
    rollouts = np.bincount(owner, minlength=len(names))
    right = np.bincount(owner, correct[judged], len(names))
    most = rollouts.max(initial=1)
    return pd.Series(np.rint(right / rollouts * most) / most, index=names)


def _percent(sums: np.ndarray, members: np.ndarray, place: int):
    def statistic(counts: np.ndarray) -> np.ndarray:
        means = ratio(counts @ sums, counts @ members)
        peak = np.fmax.reduce(means, axis=1)
        return 100.0 * ratio(means[:, place], peak)

    return statistic
