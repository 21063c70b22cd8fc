"""Means with intervals, exposure curves and group shares of an evaluated frame.

All functions take what ``workbench.evaluation.metrics.evaluate`` returns, possibly several
such frames put together with further columns (condition, phase, training seed).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.classical import wilson
from ..inference.paired import INTERVAL_COLUMNS, interval_row, mean_intervals

SUMMARY_METRICS = (
    "em",
    "f1",
    "inclusion",
    "searched",
    "direct",
    "searches",
    "generated_tokens",
    "observation_tokens",
    "valid",
    "truncated",
    "missing",
)


def summarise(
    frame: pd.DataFrame,
    by: Sequence[str] = (),
    metrics: Sequence[str] = SUMMARY_METRICS,
    seed: str | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Mean of each metric with its bootstrap interval over questions.

    Samples of a question are averaged first; with ``seed``, the column of the training seed,
    seeds are resampled as well.  Missing and truncated rollouts are in the
    frame with score 0, so they count in the denominator of EM, F1, inclusion and validity.

    Returns
    -------
    One row per group of ``by`` and metric: value, low, high, n (questions), seeds, p (of a
    zero mean) and ``rollouts`` (rows of the group).
    """
    table = mean_intervals(frame, metrics, by, seed, config)
    if not by:
        return table.assign(rollouts=len(frame))
    sizes = frame.groupby(list(by), observed=True, dropna=False).size().rename("rollouts")
    return table.merge(sizes.reset_index(), on=list(by), how="left")


def exposure_bin(exposures: pd.Series | np.ndarray) -> pd.Categorical:
    """Exposure counts by powers of two: 0, 1, 2-3, 4-7, ..., 64+; an ordered categorical."""
    counts = np.asarray(exposures, dtype=np.int64)
    if (counts < 0).any():
        raise WorkbenchError(f"an exposure count is negative: {counts.min()}")
    level = np.minimum(np.frexp(counts)[1], 7)  # 0 -> 0, 1 -> 1, 2-3 -> 2, ..., >= 64 -> 7
    names = ["0", "1", "2-3", "4-7", "8-15", "16-31", "32-63", "64+"]
    return pd.Categorical.from_codes(level, names, ordered=True)


def exposure_curve(
    frame: pd.DataFrame,
    metric: str = "em",
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """``metric`` by how often the base policy's training showed the fact.

    With closed-book rollouts and EM this is the knowledge curve of the base policy; with
    ``metric="direct"`` the share answered without search.  Rows: ``by``, ``exposure_bin``,
    value, low, high, n; bins without questions are left out.
    """
    binned = frame.assign(exposure_bin=exposure_bin(frame["exposures"]))
    return summarise(binned, [*by, "exposure_bin"], [metric], seed, config)


def group_shares(
    frame: pd.DataFrame, by: Sequence[str] = (), group: Sequence[str] = ("group",)
) -> pd.DataFrame:
    """How many groups can teach: shares over groups of two or more rollouts, Wilson intervals.

    ``mixed``: rollouts both right and wrong by EM, so that the advantages are not all 0.
    ``both_modes``: an answer without search as well as a searched rollout.
    ``all_right``, ``all_wrong``: the two ways of not being mixed.

    Rows: ``by``, metric, value, low, high, n (groups).
    """
    rows = []
    keys = frame.groupby(list(by), observed=True, dropna=False) if by else [((), frame)]
    for values, part in keys:
        groups = part.groupby(list(group), observed=True).agg(
            size=("em", "size"),
            em=("em", "mean"),
            direct=("direct", "max"),
            searched=("searched", "max"),
        )
        groups = groups[groups["size"] >= 2]
        if groups.empty:
            raise WorkbenchError(
                "no group has two rollouts, so none can be mixed",
                fix="sample several rollouts per question",
            )
        shares = {
            "mixed": (groups["em"] > 0) & (groups["em"] < 1),
            "both_modes": (groups["direct"] > 0) & (groups["searched"] > 0),
            "all_right": groups["em"] == 1,
            "all_wrong": groups["em"] == 0,
        }
        for metric, flags in shares.items():
            interval = wilson(int(flags.sum()), len(flags))
            key = dict(zip(by, values, strict=True))
            rows.append({**key, "metric": metric, **interval_row(interval)})
    return pd.DataFrame(rows, columns=[*by, "metric", *INTERVAL_COLUMNS])
