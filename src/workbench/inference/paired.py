"""Means and paired differences of tidy frames, one row per rollout, question as the unit.

Frames carry an ``item_id`` column and numeric metric columns, as ``evaluation.evaluate``
makes them; a training-seed column is named by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from .bootstrap import (
    BootstrapConfig,
    Interval,
    bootstrap_means,
    hierarchical_bootstrap,
)

INTERVAL_COLUMNS = ["value", "low", "high", "n", "seeds", "p"]


def interval_row(interval: Interval) -> dict[str, float | int]:
    """The fields of ``interval`` under the column names of every summary frame."""
    return {name: getattr(interval, name) for name in INTERVAL_COLUMNS}


def question_means(
    frame: pd.DataFrame, metrics: Sequence[str], unit: Sequence[str] = ("item_id",)
) -> pd.DataFrame:
    """Mean of each metric over the samples of a question; index ``unit``, sorted.

    Booleans count as 0 and 1; NaN samples are left out of the mean, and a question with
    nothing but NaN stays NaN.
    """
    absent = [c for c in [*unit, *metrics] if c not in frame.columns]
    if absent:
        raise WorkbenchError(
            f"the frame has no column {absent[0]!r}", fix=f"columns are {list(frame.columns)}"
        )
    numbers = frame[list(metrics)].astype(np.float64)
    return numbers.groupby([frame[c] for c in unit], sort=True).mean()


def mean_intervals(
    frame: pd.DataFrame,
    metrics: Sequence[str],
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """One row per group of ``by`` and metric: value, low, high, n (questions), seeds, p.

    A question whose metric is NaN throughout (in any seed) is left out of that metric and of
    its n; a group with no value at all keeps its row with n = 0 and NaN.

    Parameters
    ----------
    seed : column of the training seed; where a group has several, they are resampled too.
    """
    rows = []
    for key, part in _groups(frame, by):
        if seed is not None and part[seed].nunique() > 1:
            tables = {m: _by_seed(part, m, seed).dropna() for m in metrics}
            results = {m: _seeds_interval(tables[m], config) for m in metrics}
        else:
            results = _intervals(question_means(part, metrics), config)
        rows += [{**key, "metric": m, **interval_row(results[m])} for m in metrics]
    return pd.DataFrame(rows, columns=[*by, "metric", *INTERVAL_COLUMNS])


def paired_differences(
    ours: pd.DataFrame,
    reference: pd.DataFrame,
    metrics: Sequence[str],
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Mean of ours - reference over the same questions, one row per group of ``by`` and metric.

    Parameters
    ----------
    seed : column of the training seed.  With it the bootstrap is hierarchical; seeds are
        paired by value when the reference has the same ones, and a reference with a single
        seed (an untrained policy) is paired with every seed of ours.

    Raises
    ------
    WorkbenchError : the two frames do not hold the same questions, seeds or groups.
    """
    rows = []
    references = {tuple(k.values()): part for k, part in _groups(reference, by)}
    for key, part in _groups(ours, by):
        other = references.get(tuple(key.values()))
        if other is None:
            raise WorkbenchError(
                f"the reference has no rows for {key}", fix="evaluate it there too"
            )
        for metric in metrics:
            matrix = difference_matrix(part, other, metric, seed)
            interval = (
                bootstrap_means(matrix.T, config)[0]
                if len(matrix) == 1
                else hierarchical_bootstrap(matrix, config)
            )
            rows.append({**key, "metric": metric, **interval_row(interval)})
    return pd.DataFrame(rows, columns=[*by, "metric", *INTERVAL_COLUMNS])


def difference_matrix(
    ours: pd.DataFrame, reference: pd.DataFrame, metric: str, seed: str | None = None
) -> np.ndarray:
    """Paired differences float64 [seeds, questions], questions in the order of their ids."""
    left, right = _by_seed(ours, metric, seed), _by_seed(reference, metric, seed)
    if len(right.columns) > 1 and list(left.columns) != list(right.columns):
        raise WorkbenchError(
            f"seeds differ: {list(left.columns)} against {list(right.columns)}",
            fix="pair runs of the same seeds, or a reference of one seed",
        )
    unmatched = left.index.symmetric_difference(right.index)
    holes = left.index[left.isna().any(axis=1)].union(right.index[right.isna().any(axis=1)])
    if len(unmatched) or len(holes):
        ids = [str(i) for i in [*unmatched, *holes][:3]]
        raise WorkbenchError(
            f"{len(unmatched) + len(holes)} questions lack {metric!r} on one side or in one seed: "
            + ", ".join(ids),
            fix="score lost rollouts as 0 (evaluate(..., expected=N)) so that pairs are complete",
        )
    return (left.to_numpy() - right.to_numpy()).T


def _by_seed(frame: pd.DataFrame, metric: str, seed: str | None) -> pd.DataFrame:
    if seed is None:
        return question_means(frame, [metric])
    return question_means(frame, [metric], unit=("item_id", seed))[metric].unstack(seed)


def _groups(frame: pd.DataFrame, by: Sequence[str]):
    if not by:
        yield {}, frame
        return
    for values, part in frame.groupby(list(by), sort=True, observed=True, dropna=False):
        yield dict(zip(by, values, strict=True)), part


def _seeds_interval(table: pd.DataFrame, config: BootstrapConfig | None) -> Interval:
    if table.empty:
        return Interval(np.nan, np.nan, np.nan, 0, table.shape[1])
    return hierarchical_bootstrap(table.to_numpy().T, config)


def _intervals(means: pd.DataFrame, config: BootstrapConfig | None) -> dict[str, Interval]:
    results: dict[str, Interval] = {}
    for names in _same_rows(means):
        kept = means[names].dropna()
        found = (
            bootstrap_means(kept.to_numpy(), config)
            if len(kept)
            else [Interval(np.nan, np.nan, np.nan, 0)] * len(names)
        )
        results.update(zip(names, found, strict=True))
    return results


def _same_rows(means: pd.DataFrame) -> list[list[str]]:
    """Columns grouped by which questions they have values for, to be resampled together."""
    groups: dict[bytes, list[str]] = {}
    for name in means.columns:
        groups.setdefault(means[name].isna().to_numpy().tobytes(), []).append(name)
    return list(groups.values())
