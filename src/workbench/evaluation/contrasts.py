"""Every condition against the untrained policy, on the same questions."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.paired import paired_differences
from .policies import BASE

ALL = "all"


def with_total(frame: pd.DataFrame, column: str = "category", name: str = ALL) -> pd.DataFrame:
    """``frame`` twice: as it is, and with ``column`` saying ``name``, for a row over all."""
    return pd.concat([frame.assign(**{column: name}), frame], ignore_index=True)


def against_base(
    frame: pd.DataFrame,
    metrics: Sequence[str],
    by: Sequence[str] = (),
    conditions: Sequence[str] | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Paired difference of every condition to the base policy.

    Hierarchical bootstrap: training seeds, then questions inside each (S1 Table 2).  Samples
    of a question are averaged first.

    Parameters
    ----------
    frame : rows of ``policies.ask`` of the base policy and the conditions.
    conditions : default all but the base policy, in order of appearance.

    Returns
    -------
    Rows: condition, ``by``, metric, value, low, high, n (questions), seeds, p.
    """
    reference = frame[frame["condition"] == BASE.condition]
    if reference.empty:
        raise WorkbenchError("the frame has no rows of the base policy", fix="ask it too")
    names = conditions or [c for c in dict.fromkeys(frame["condition"]) if c != BASE.condition]
    tables = []
    for name in names:
        ours = frame[frame["condition"] == name]
        differences = paired_differences(
            ours, reference, metrics, by, seed="training_seed", config=config
        )
        tables.append(differences.assign(condition=name))
    table = pd.concat(tables, ignore_index=True)
    return table[["condition", *[c for c in table.columns if c != "condition"]]]
