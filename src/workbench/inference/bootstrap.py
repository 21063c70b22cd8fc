"""The one bootstrap: percentile intervals over questions, and over seeds then questions.

A question is the unit of resampling everywhere: several rollouts of one question are averaged
first (``workbench.inference.paired``), so that samples of the same question never count as
independent.  Trained methods add a level above: S1 Table 2 resamples the training seeds and
then, inside every drawn seed, the paired questions.

Every interval of the workbench comes from this module; its draws come from a generator named
after the purpose, the seed and the shape of the data, so the same numbers give the same
interval wherever they are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from ..config import Settings
from ..errors import WorkbenchError
from ..seeding import generator

_BLOCK_ENTRIES = 2_000_000  # resampled indices held at once: about 50 MB with their weights


class BootstrapConfig(Settings):
    """``draws`` resamples, ``level`` of the two-sided percentile interval, generator ``seed``."""

    draws: int = Field(default=5_000, ge=100)
    level: float = Field(default=0.95, gt=0.0, lt=1.0)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean (or mean difference) with its interval and what it rests on.

    value, low, high : in the unit of the data; ``low`` and ``high`` are NaN when one question
        is all there is, because nothing can then be resampled.
    n : questions; ``seeds`` : training seeds (1 where seeds were not resampled).
    level : coverage aimed at.
    p : two-sided bootstrap p-value of "the mean is zero", NaN where it was not asked for.
    """

    value: float
    low: float
    high: float
    n: int
    seeds: int = 1
    level: float = 0.95
    p: float = float("nan")

    def excludes(self, null: float = 0.0) -> bool:
        """Whether the interval lies wholly on one side of ``null``."""
        return bool(self.low > null or self.high < null)

    def __str__(self) -> str:
        seeds = f", {self.seeds} seeds" if self.seeds > 1 else ""
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] (n = {self.n}{seeds})"


def bootstrap_mean(values, config: BootstrapConfig | None = None) -> Interval:
    """Percentile bootstrap of the mean of ``values`` [n], one value per question.

    Raises
    ------
    WorkbenchError : no values, or one that is not finite.
    """
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise WorkbenchError(
            f"bootstrap_mean takes one value per question, got shape {column.shape}",
            fix="average the samples of a question first, or call bootstrap_means",
        )
    return bootstrap_means(column[:, None], config)[0]


def bootstrap_means(values, config: BootstrapConfig | None = None) -> list[Interval]:
    """The same for several quantities [n, m] of the same questions, resampled together."""
    config = config or BootstrapConfig()
    matrix = _checked(values, ndim=2)
    n, _ = matrix.shape
    means = matrix.mean(axis=0)
    if n == 1:
        return [_point(mean, 1, 1, config) for mean in means]
    # Deviations are resampled, not values: a constant column gives exactly its constant.
    deviations = matrix - means
    rng = generator("bootstrap", config.seed, n)
    draws = np.concatenate(
        [counts @ deviations / n for counts in _resample_counts(rng, config.draws, n)]
    )
    return [_interval(m, d, n, 1, config) for m, d in zip(means, draws.T, strict=True)]


def hierarchical_bootstrap(values, config: BootstrapConfig | None = None) -> Interval:
    """Seeds first, then questions inside each drawn seed (S1 Table 2, §7.2.1).

    Parameters
    ----------
    values : float [S, n]; row s holds the paired differences (or scores) of training seed s
        on the same n questions.  The statistic is the mean over seeds of the mean over
        questions.

    Raises
    ------
    WorkbenchError : not a matrix, empty, or not finite.
    """
    config = config or BootstrapConfig()
    matrix = _checked(values, ndim=2)
    seeds, n = matrix.shape
    mean = float(matrix.mean())
    if n == 1:
        return _point(mean, 1, seeds, config)
    deviations = matrix - mean
    seed_rng = generator("hierarchical bootstrap: seeds", config.seed, seeds, n)
    question_rng = generator("hierarchical bootstrap: questions", config.seed, seeds, n)
    parts = []
    for rows in _blocks(config.draws, seeds * n):
        drawn = seed_rng.integers(0, seeds, (rows, seeds, 1))
        questions = question_rng.integers(0, n, (rows, seeds, n))
        parts.append(deviations[drawn, questions].mean(axis=(1, 2)))
    return _interval(mean, np.concatenate(parts), n, seeds, config)


def _checked(values, ndim: int) -> np.ndarray:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != ndim or matrix.size == 0:
        raise WorkbenchError(
            f"nothing to resample: shape {matrix.shape}",
            fix="check that the predictions hold the questions that are asked about",
        )
    bad = int((~np.isfinite(matrix)).sum())
    if bad:
        raise WorkbenchError(
            f"{bad} of {matrix.size} values are not finite",
            fix="score a missing rollout as 0 or drop its question before the bootstrap",
        )
    return matrix


def _blocks(draws: int, width: int) -> Iterator[int]:
    """Split ``draws`` rows of ``width`` indices into blocks that fit the memory bound."""
    size = max(1, _BLOCK_ENTRIES // width)
    for start in range(0, draws, size):
        yield min(size, draws - start)


def _resample_counts(rng: np.random.Generator, draws: int, n: int) -> Iterator[np.ndarray]:
    """How often each of n questions was drawn: blocks float64 [rows, n] summing to n each."""
    for rows in _blocks(draws, n):
        index = rng.integers(0, n, (rows, n))
        index += np.arange(0, rows * n, n)[:, None]
        yield np.bincount(index.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _interval(mean, deviations, n: int, seeds: int, config: BootstrapConfig) -> Interval:
    tail = 50.0 * (1.0 - config.level)
    low, high = mean + np.percentile(deviations, [tail, 100.0 - tail])
    resampled = mean + deviations
    extreme = min(int((resampled <= 0).sum()), int((resampled >= 0).sum()))
    p = min(1.0, 2.0 * (1 + extreme) / (len(deviations) + 1))
    return Interval(float(mean), float(low), float(high), n, seeds, config.level, p)


def _point(mean, n: int, seeds: int, config: BootstrapConfig) -> Interval:
    return Interval(float(mean), np.nan, np.nan, n, seeds, config.level)
