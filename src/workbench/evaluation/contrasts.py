"""Conditions against the untrained policy, or against one another, on the same questions."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.paired import INTERVAL_COLUMNS, paired_differences
from .policies import BASE, UNTRAINED

ALL = "all"


def with_total(frame: pd.DataFrame, column: str = "category", name: str = ALL) -> pd.DataFrame:
    """``frame`` twice: as it is, and with ``column`` saying ``name``, for a row over all."""
    return pd.concat([frame.assign(**{column: name}), frame], ignore_index=True)


def against(
    frame: pd.DataFrame,
    metrics: Sequence[str],
    by: Sequence[str] = (),
    conditions: Sequence[str] | None = None,
    reference: str = BASE.condition,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Paired difference of every condition to the reference.

    Hierarchical bootstrap: training seeds, then questions inside each (S1 Table 2); two trained
    conditions are paired seed by seed, on the seeds that both have.
    Samples of a question are averaged first.

    Parameters
    ----------
    frame : rows of ``policies.ask`` of the reference and the conditions.
    conditions : default all others, in order of appearance.

    Returns
    -------
    Rows: condition, ``by``, metric, value, low, high, n (questions), seeds, p.
    """
    theirs = frame[frame["condition"] == reference]
    if theirs.empty:
        raise WorkbenchError(f"the frame has no rows of {reference!r}", fix="ask that policy too")
    others = [c for c in dict.fromkeys(frame["condition"]) if c != reference]
    columns = ["condition", *by, "metric", *INTERVAL_COLUMNS]
    tables = []
    for name in others if conditions is None else conditions:
        ours = frame[frame["condition"] == name]
        sides = _paired(ours, theirs, name)
        found = paired_differences(*sides, metrics, by, "training_seed", config)
        tables.append(found.assign(condition=name))
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables, ignore_index=True)[columns]


def _paired(
    ours: pd.DataFrame, reference: pd.DataFrame, name: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both sides on the seeds that they share; an untrained reference serves every seed."""
    mine, theirs = set(ours["training_seed"]), set(reference["training_seed"])
    if not mine:
        raise WorkbenchError(f"the frame has no rows of {name!r}", fix="ask that policy too")
    if theirs == {UNTRAINED} or mine == {UNTRAINED}:
        return ours, reference
    common = mine & theirs
    if not common:
        raise WorkbenchError(
            f"{name!r} has seeds {sorted(mine)}, the reference {sorted(theirs)}: none is common",
            where="training_seed",
            fix="give both a common seed in the profile's seeds_of",
        )
    return ours[ours["training_seed"].isin(common)], reference[
        reference["training_seed"].isin(common)
    ]
