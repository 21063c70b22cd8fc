"""Closed-form companions of the bootstrap: shares, seed means, Holm's correction.

Thin doors to statsmodels and SciPy, so that every room gets the same variant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import WorkbenchError
from .bootstrap import Interval


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson score interval of a share, ``successes`` out of ``n`` groups or questions."""
    from statsmodels.stats.proportion import proportion_confint

    if not 0 <= successes <= n or n == 0:
        raise WorkbenchError(f"{successes} successes out of {n} is not a share")
    low, high = proportion_confint(successes, n, alpha=1.0 - level, method="wilson")
    return Interval(successes / n, float(low), float(high), int(n), level=level)


def t_interval(
    values: Sequence[float],
    level: float = 0.95,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Student t interval of a mean over training seeds; half-width 1.59 sd at four (S1 §7.2.1).

    ``within`` are the values that the mean can have, e.g. (0, 1) of a share: the interval is
    cut there, which takes nothing from its coverage.  ``n`` and ``seeds`` of the result are
    both the number of seeds; one seed gives no interval.
    """
    from scipy.stats import t

    runs = np.asarray(values, dtype=np.float64)
    if runs.ndim != 1 or runs.size == 0 or not np.isfinite(runs).all():
        raise WorkbenchError(f"a t interval takes one finite value per seed, got {values!r}")
    count, mean = runs.size, float(runs.mean())
    if count == 1:
        return Interval(mean, np.nan, np.nan, 1, 1, level)
    half = float(t.ppf(0.5 + level / 2, count - 1) * runs.std(ddof=1) / np.sqrt(count))
    least, most = within
    low, high = max(mean - half, least), min(mean + half, most)
    return Interval(mean, low, high, count, count, level)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm-adjusted p-values [m] of one family (S1: four endpoints per comparator and scale)."""
    from statsmodels.stats.multitest import multipletests

    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or p.size == 0 or not ((p >= 0) & (p <= 1)).all():
        raise WorkbenchError(f"p-values must lie in [0, 1], got {p_values!r}")
    return multipletests(p, method="holm")[1]
