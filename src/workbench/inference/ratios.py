"""Ratios of sums with bootstrap intervals: shares of sets that differ between policies.

TC, D-Inv or closed-book EM (S1 §7.3.1) divide by how many trajectories meet a condition, and
another policy or seed has others.  Questions that meet it nowhere stay in the resampling with
0/0, so the interval covers the denominator's chance as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..seeding import generator
from .bootstrap import BootstrapConfig, Interval, _blocks
from .paired import INTERVAL_COLUMNS, _groups, interval_row


def ratio_interval(
    numerators: np.ndarray, denominators: np.ndarray, config: BootstrapConfig | None = None
) -> Interval:
    """Mean over seeds of Σ numerator / Σ denominator; seeds, then questions, are resampled.

    Parameters
    ----------
    numerators, denominators : float [n] of questions, or [S, n] of seeds and questions;
        denominators are not negative.

    Returns
    -------
    ``n`` counts questions with a positive denominator.  Seeds (and resamples) in which all
    denominators are 0 are left out of the mean; the value is NaN when no seed is left.

    Raises
    ------
    WorkbenchError : shapes that differ, no questions, values that are not finite or a negative
        denominator.
    """
    config = config or BootstrapConfig()
    above, below = (np.atleast_2d(np.asarray(x, np.float64)) for x in (numerators, denominators))
    if above.shape != below.shape or above.ndim != 2 or not above.size:
        raise WorkbenchError(f"a ratio of shapes {above.shape} and {below.shape}")
    if not (np.isfinite(above).all() and np.isfinite(below).all() and (below >= 0).all()):
        raise WorkbenchError(
            "a ratio of values that are negative or not finite",
            fix="numerators are finite, denominators counts",
        )
    seeds, n = above.shape
    count = int((below > 0).any(axis=0).sum())
    value = float(_means(above.sum(1), below.sum(1)))
    if count < 2:
        return Interval(value, np.nan, np.nan, count, seeds, config.level)
    deviations = above - value * below  # a constant ratio then has an interval of no width
    rng = generator("ratio bootstrap", config.seed, seeds, n)
    draws = []
    for rows in _blocks(config.draws, seeds * n):
        drawn = rng.integers(0, seeds, (rows, seeds, 1))
        questions = rng.integers(0, n, (rows, seeds, n))
        draws.append(_means(deviations[drawn, questions].sum(-1), below[drawn, questions].sum(-1)))
    tail = 50.0 * (1.0 - config.level)
    low, high = value + np.nanpercentile(np.concatenate(draws), [tail, 100.0 - tail])
    return Interval(value, float(low), float(high), count, seeds, config.level)


def ratio_intervals(
    frame: pd.DataFrame,
    ratios: Mapping[str, tuple[str, str]],
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """One row per group of ``by`` and ratio: value, low, high, n (questions), seeds, p (NaN).

    Parameters
    ----------
    frame : one row per rollout with ``item_id``; the rollouts of a question are added up.
    ratios : metric -> (column of the numerator, column of the denominator); a rollout with NaN
        in one of them is not counted.
    seed : column of the training seed; questions a seed lacks have no rollouts there.

    Raises
    ------
    WorkbenchError : a column is missing, an infinite value or a negative denominator.
    """
    named = [
        "item_id",
        *by,
        *([seed] if seed else []),
        *(c for pair in ratios.values() for c in pair),
    ]
    if absent := [c for c in named if c not in frame.columns]:
        raise WorkbenchError(
            f"the frame has no column {absent[0]!r}", fix=f"columns are {list(frame.columns)}"
        )
    rows = []
    for key, part in _groups(frame, by):
        for metric, (above, below) in ratios.items():
            pair = part[[above]].assign(below=part[below]).astype(np.float64)
            pair = pair.where(pair.notna().all(axis=1), 0.0)
            tables = [_table(part, pair[column], seed) for column in (above, "below")]
            interval = ratio_interval(*tables, config) if len(part) else _NOTHING
            rows.append({**key, "metric": metric, **interval_row(interval)})
    return pd.DataFrame(rows, columns=[*by, "metric", *INTERVAL_COLUMNS])


_NOTHING = Interval(np.nan, np.nan, np.nan, 0)


def _table(part: pd.DataFrame, values: pd.Series, seed: str | None) -> np.ndarray:
    """Sums float64 [seeds, questions], questions in the order of their ids."""
    if seed is None:
        return values.groupby(part["item_id"], sort=True).sum(skipna=False).to_numpy()[None]
    table = values.groupby([part[seed], part["item_id"]], sort=True).sum(skipna=False)
    return table.unstack(fill_value=0.0).to_numpy()


def _means(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Mean over the last axis (seeds) of above / below, seeds of no denominator left out."""
    counted = below > 0
    ratios = np.divide(above, below, out=np.zeros_like(above), where=counted)
    seeds = counted.sum(-1)
    return np.where(seeds > 0, ratios.sum(-1) / np.maximum(seeds, 1), np.nan)
