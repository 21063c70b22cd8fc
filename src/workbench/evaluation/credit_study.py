"""The comparisons of the retrieval-credit study (S3 Tables 1, 8, 9; Figures 2 and 3).

The question categories play the part of S3's data sets.  One-hop questions that name the page
they ask about can be answered from memory and are a set of their own; in every other category
described and named roots stay together, as the questions that are asked are balanced over
categories.  Every question has equal weight in an average (S3's micro average).  All differences
are paired over questions and, where both conditions were trained with the same seeds, over seeds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.paired import INTERVAL_COLUMNS
from ..questions.categories import CATEGORIES, SINGLE
from ..questions.graph import Item
from .contrasts import ALL, against, with_total

OUTCOME_ONLY = "oo"
# The thirteen conditions in the order of S3 Table 8.
CONDITIONS = (
    OUTCOME_ONLY, "cov_scalar", "cov_dep_scalar", "am_scalar",
    "cov_local", "cov_dep_local", "am_local", "am_permute", "cov_permute",
    "cov_no_flat", "cov_flat_only", "am_no_flat", "am_flat_only",
)  # fmt: skip
NAMED = f"{SINGLE}, named"
SETS = (SINGLE, NAMED, *CATEGORIES[1:])
MULTI_HOP, SINGLE_HOP = "multi-hop", "single-hop"
GROUPS = (MULTI_HOP, SINGLE_HOP, ALL)
_HOPS = re.compile(r"(\d+)-hop")


@dataclass(frozen=True, slots=True)
class Contrast:
    """``ours`` minus ``reference``; ``panel`` of Figure 3, or "" for none."""

    ours: str
    reference: str
    panel: str = ""


# (a) where credit goes and whether prerequisites count, (b) whether it stays with its search,
# (c) which outcome groups receive it.
CONTRASTS = (
    Contrast("cov_local", "cov_scalar", "a"),
    Contrast("cov_dep_local", "cov_dep_scalar", "a"),
    Contrast("am_local", "am_scalar", "a"),
    Contrast("cov_scalar", "cov_dep_scalar", "a"),
    Contrast("cov_local", "cov_dep_local", "a"),
    Contrast("cov_local", "cov_permute", "b"),
    Contrast("am_local", "am_permute", "b"),
    Contrast("cov_local", "cov_no_flat", "c"),
    Contrast("cov_local", "cov_flat_only", "c"),
    Contrast("am_local", "am_no_flat", "c"),
    Contrast("am_local", "am_flat_only", "c"),
)
GAINS = tuple(Contrast(name, OUTCOME_ONLY) for name in CONDITIONS[1:])
TABLE_9 = tuple(Contrast(name, OUTCOME_ONLY) for name in ("cov_local", "am_local"))


def question_set(item: Item) -> str:
    """The set that a question counts for: its category, or ``NAMED``."""
    return NAMED if item.category == SINGLE and item.roots == "named" else item.category


def hop_group(category: str) -> str:
    """``MULTI_HOP`` for a category of two hops or more, else ``SINGLE_HOP``.

    Hops are those of the category: nodes that share a paragraph are one.

    Raises
    ------
    WorkbenchError : the category's name does not begin with its hops.
    """
    match = _HOPS.match(category)
    if match is None:
        raise WorkbenchError(
            f"the category {category!r} does not say how many hops it has",
            fix='"2-hop, chain", or any name that begins like it',
        )
    return MULTI_HOP if int(match[1]) > 1 else SINGLE_HOP


def with_sets(frame: pd.DataFrame, items: Iterable[Item]) -> pd.DataFrame:
    """``frame`` with the columns ``question_set``, ``hop_group`` and ``roots`` of its items."""
    by_id = {item.item_id: item for item in items}
    if strange := [i for i in frame["item_id"].unique() if i not in by_id]:
        raise WorkbenchError("the frame holds a question that is not given", where=strange[0])
    asked = [by_id[i] for i in frame["item_id"]]
    return frame.assign(
        question_set=[question_set(item) for item in asked],
        hop_group=[hop_group(item.category) for item in asked],
        roots=[item.roots for item in asked],
    )


def trained_of(contrasts: Iterable[Contrast], conditions: Collection[str]) -> list[Contrast]:
    """The contrasts both of whose conditions are there."""
    return [c for c in contrasts if c.ours in conditions and c.reference in conditions]


def differences(
    frame: pd.DataFrame,
    contrasts: Sequence[Contrast],
    by: str = "hop_group",
    metrics: Sequence[str] = ("f1",),
    overall: Sequence[str] = (),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Every contrast whose conditions the frame holds, in each group of ``by`` and over all.

    ``overall`` are metrics that are compared over all questions only.

    Parameters
    ----------
    frame : rollouts of one decoding, as ``with_sets`` returns them.

    Returns
    -------
    Rows: condition (ours), reference, panel, ``by``, metric, value, low, high, n, seeds, p.
    """
    columns = ["condition", "reference", "panel", by, "metric", *INTERVAL_COLUMNS]
    tables = []
    for part, of in ((with_total(frame, by), metrics), (frame.assign(**{by: ALL}), overall)):
        for contrast in trained_of(contrasts, set(frame["condition"])) if of else ():
            table = against(part, of, [by], [contrast.ours], contrast.reference, config)
            tables.append(table.assign(reference=contrast.reference, panel=contrast.panel))
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables, ignore_index=True)[columns]


def leave_one_out(
    frame: pd.DataFrame,
    contrasts: Sequence[Contrast] = TABLE_9,
    metric: str = "f1",
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Table 9: the micro-averaged difference without each question set, and with all.

    Rows: omitted (a set, or "none"), condition, reference, metric, value, low, high, n, seeds,
    p.  A set that holds every question has no row.
    """
    columns = ["omitted", "condition", "reference", "metric", *INTERVAL_COLUMNS]
    present = [s for s in SETS if s in set(frame["question_set"])]
    tables = []
    for contrast in trained_of(contrasts, set(frame["condition"])):
        for omitted in ("none", *present):
            rest = frame[frame["question_set"] != omitted]
            if rest.empty:
                continue
            table = against(rest, [metric], (), [contrast.ours], contrast.reference, config)
            tables.append(table.assign(omitted=omitted, reference=contrast.reference))
    return (
        pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)
    )
