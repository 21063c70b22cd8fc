"""Frames with one row per rollout, and statistics whose questions are resampled.

Every analysis of this room reads a frame with ``question_id``, ``rollout_id``, ``correct`` and
score columns, such as the weights of voting.  ``correct`` is true, false or missing (nobody
judged); a score is a finite number or NaN (the rollout has no score).  What is missing is left
out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig, Interval
from ..inference.statistic import Statistic, bootstrap_statistic
from ..reports.record import Rollout

KEYS = ["question_id", "rollout_id"]


@dataclass(frozen=True, slots=True)
class Scored:
    """The rollouts of a frame that have a score, and a verdict where one is needed.

    values : float64 [n]; correct : float64 [n] of 0 and 1, NaN for an unjudged rollout.
    owner : int64 [n], the question of each rollout as its place in names.
    names : object [q], the ids of the questions that have such a rollout, sorted.
    unjudged, unscored : rollouts left out (an unjudged one counts as unjudged only).
    """

    values: np.ndarray
    correct: np.ndarray
    owner: np.ndarray
    names: np.ndarray
    unjudged: int
    unscored: int

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of ``values`` [n] per question, float64 [q]."""
        return np.bincount(self.owner, values, len(self.names))


def rollout_frame(rollouts: Sequence[Rollout]) -> pd.DataFrame:
    """question_id, rollout_id, cell and correct (1, 0 or NaN) of each rollout, in order."""
    return pd.DataFrame(
        {
            "question_id": [r.question_id for r in rollouts],
            "rollout_id": [r.rollout_id for r in rollouts],
            "cell": [r.cell for r in rollouts],
            "correct": np.array(
                [np.nan if r.correct is None else float(r.correct) for r in rollouts], np.float64
            ),
        }
    )


def verdicts(frame: pd.DataFrame) -> np.ndarray:
    """The column ``correct`` as float64 [n]: 1, 0, NaN where nobody judged.

    Raises
    ------
    WorkbenchError : no such column, or a value that is no verdict.
    """
    need(frame, ["correct"])
    found = [np.nan if pd.isna(v) else float(v) for v in frame["correct"]]
    column = np.array(found, dtype=np.float64)
    if bad := [v for v in column if v not in (0.0, 1.0) and not np.isnan(v)]:
        raise WorkbenchError(
            f"{bad[0]} is no verdict", where="correct", fix="use True, False or None"
        )
    return column


def scored(frame: pd.DataFrame, score: str, judged: bool = True) -> Scored:
    """The rows of ``frame`` that have ``score`` and, with ``judged``, a verdict.

    Raises
    ------
    WorkbenchError : a column is missing, or a score is infinite.
    """
    need(frame, ["question_id", score])
    values = frame[score].to_numpy(dtype=np.float64, na_value=np.nan)
    if infinite := int(np.isinf(values).sum()):
        raise WorkbenchError(
            f"{infinite} scores are infinite",
            where=score,
            fix="write NaN for a rollout without a score",
        )
    correct = verdicts(frame) if judged or "correct" in frame else np.full(len(frame), np.nan)
    unjudged = np.isnan(correct) if judged else np.zeros(len(frame), dtype=bool)
    unscored = np.isnan(values) & ~unjudged
    kept = ~unjudged & ~unscored
    owner, names = questions_of(frame[kept])
    return Scored(
        values[kept], correct[kept], owner, names, int(unjudged.sum()), int(unscored.sum())
    )


def questions_of(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Each row's question as a number int64 [n], and the ids they stand for, sorted."""
    return pd.factorize(frame["question_id"].to_numpy(dtype=object), sort=True)


def need(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise WorkbenchError for a column that ``frame`` lacks."""
    if absent := [c for c in columns if c not in frame.columns]:
        raise WorkbenchError(
            f"the frame has no column {absent[0]!r}", fix=f"columns are {list(frame.columns)}"
        )


def parts(frame: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[dict, pd.DataFrame]]:
    """The groups of ``frame`` by its columns ``by``, with their keys; the frame without any."""
    need(frame, by)
    if not by:
        yield {}, frame
        return
    for values, part in frame.groupby(list(by), sort=True, observed=True, dropna=False):
        yield dict(zip(by, values, strict=True)), part


def interval(
    statistic: Statistic, n: int, config: BootstrapConfig | None = None, null: float = 0.0
) -> Interval:
    """``bootstrap_statistic``, and NaN where the statistic of the data is undefined."""
    config = config or BootstrapConfig()
    if not n or not np.isfinite(statistic(np.ones((1, n)))[0]):
        return Interval(np.nan, np.nan, np.nan, n, level=config.level)
    return bootstrap_statistic(statistic, n, config, null)


def estimate(found: Interval) -> dict[str, float | int]:
    """value, low, high, p and n of an interval, as columns."""
    return {name: getattr(found, name) for name in ("value", "low", "high", "p", "n")}


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, NaN where ``below`` is not positive."""
    shape = np.broadcast_shapes(np.shape(above), np.shape(below))
    return np.divide(above, below, out=np.full(shape, np.nan), where=np.asarray(below) > 0)


def quotient(above: np.ndarray, below: np.ndarray) -> Statistic:
    """Counts [draws, q] -> Σ above / Σ below [draws] of per-question sums [q]."""
    above, below = (np.asarray(x, dtype=np.float64) for x in (above, below))
    return lambda counts: ratio(counts @ above, counts @ below)
