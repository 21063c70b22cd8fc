"""The bootstrap for statistics that are no means: questions resampled, the statistic computed anew.

Same resamples, percentile intervals and named draws as ``workbench.inference.bootstrap``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import WorkbenchError
from ..seeding import generator
from .bootstrap import BootstrapConfig, Interval, _resample_counts

Statistic = Callable[[np.ndarray], np.ndarray]


def bootstrap_statistic(
    statistic: Statistic, n: int, config: BootstrapConfig | None = None, null: float = 0.0
) -> Interval:
    """Percentile interval of ``statistic`` over resamples of ``n`` questions.

    Parameters
    ----------
    statistic : maps counts float64 [draws, n], how often each question was drawn, to values
        [draws].  NaN where a resample leaves it undefined: those draws are left out.
    null : the value that the two-sided p-value is about.

    Raises
    ------
    WorkbenchError : no questions, or the statistic of the data themselves is undefined.
    """
    config = config or BootstrapConfig()
    value = float(statistic(np.ones((1, n)))[0]) if n else np.nan
    if not np.isfinite(value):
        raise WorkbenchError(
            f"the statistic of {n} questions is undefined",
            where="bootstrap_statistic",
            fix="check that the data hold what it compares (both classes, for an AUC)",
        )
    rng = generator("bootstrap", config.seed, n)
    drawn = np.concatenate([statistic(c) for c in _resample_counts(rng, config.draws, n)])
    drawn = drawn[np.isfinite(drawn)]
    if n == 1 or not len(drawn):
        return Interval(value, np.nan, np.nan, n, level=config.level)
    tail = 50.0 * (1.0 - config.level)
    low, high = np.percentile(drawn, [tail, 100.0 - tail])
    extreme = min(int((drawn <= null).sum()), int((drawn >= null).sum()))
    p = min(1.0, 2.0 * (1 + extreme) / (len(drawn) + 1))
    return Interval(value, float(low), float(high), n, level=config.level, p=p)
