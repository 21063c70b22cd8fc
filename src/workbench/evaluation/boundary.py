"""Behaviour at the policy's knowledge boundary (S1 §7.3.1, Tables A7 and A8).

Closed-book slices: what a policy answers without retrieval (by its own retrieval-disabled
decode, A7) and what the base policy does not (one common set of questions, A8).  Metrics
condition on rollouts with a valid answer, so their counts may differ between policies.  No
evidence is perturbed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.ratios import ratio_intervals
from ..interventions.closed_book import ClosedBookLabels

EXACT, SUFFICIENT = "closed_exact", "closed_sufficient"


def with_closed_book(frame: pd.DataFrame, labels: ClosedBookLabels) -> pd.DataFrame:
    """``frame`` of ``evaluate`` with ``closed_exact`` (EM) and ``closed_sufficient`` (inclusion).

    The labels are those of the policy that made the rollouts (A7) or of the base policy (A8).

    Raises
    ------
    WorkbenchError : a question of the frame was not asked closed-book.
    """
    columns = {EXACT: labels.exact, SUFFICIENT: labels.sufficient}
    known = {
        name: frame["item_id"].map(dict(zip(labels.item_ids, values.astype(float), strict=True)))
        for name, values in columns.items()
    }
    if (absent := known[EXACT].isna()).any():
        raise WorkbenchError(
            f"{frame.loc[absent, 'item_id'].nunique()} questions have no closed-book answer, "
            f"the first is {frame.loc[absent, 'item_id'].iloc[0]}",
            fix="ask the same items closed-book",
        )
    return frame.assign(**known)


def known_answers(
    frame: pd.DataFrame,
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
    closed: str = EXACT,
) -> pd.DataFrame:
    """Table A7 on the audited slice ``frame``: rows of ``ratio_intervals``.

    ``cb_em`` and ``cb_searches`` (EM and searches per rollout) on what the policy knows,
    ``all_searches`` on the whole slice, ``over_search`` the share of rollouts with more than
    one search.  ``cb_share`` is the share of rollouts whose question the policy knows.

    Parameters
    ----------
    closed : column that says what is known: exact match, as "Exact CB-correct" in Table A3, or
        inclusion.
    """
    _check(frame, closed)
    valid = _valid(frame)
    ratios = {
        "cb_em": ("cb_em", "cb"),
        "cb_searches": ("cb_searches", "cb"),
        "all_searches": ("searches", "one"),
        "over_search": ("over", "one"),
        "cb_share": ("cb", "one"),
    }
    cb = valid[closed]
    valid = valid.assign(cb=cb, cb_em=valid["em"] * cb, cb_searches=valid["searches"] * cb)
    return ratio_intervals(valid, ratios, by, seed, config)


def unknown_answers(
    frame: pd.DataFrame,
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
    closed: str = EXACT,
    samples: int = 3,
) -> pd.DataFrame:
    """Table A8 on the questions of ``frame`` whose ``closed`` is 0: rows of ``ratio_intervals``.

    ``cbw_em``, ``searches`` and ``over_search`` per valid rollout; ``any_at_<samples>``: share of
    questions with a valid rollout that one of their first ``samples`` rollouts answers.

    Raises
    ------
    WorkbenchError : a question has fewer rollouts than ``samples``, missing ones included.
    """
    _check(frame, closed)
    wrong = frame[frame[closed] == 0]
    ratios = {
        "cbw_em": ("em", "one"),
        "searches": ("searches", "one"),
        "over_search": ("over", "one"),
    }
    table = ratio_intervals(_valid(wrong), ratios, by, seed, config)
    name = f"any_at_{samples}"
    first = _any_of(wrong, [*by, *([seed] if seed else [])], samples)
    more = ratio_intervals(first, {name: ("any", "asked")}, by, seed, config)
    both = pd.concat([table, more], ignore_index=True)
    order = {metric: place for place, metric in enumerate([*ratios, name])}
    both = both.assign(order=both["metric"].map(order)).sort_values([*by, "order"])
    return both.drop(columns="order").reset_index(drop=True)


def _any_of(frame: pd.DataFrame, keys: list[str], samples: int) -> pd.DataFrame:
    """One row per question (and ``keys``): ``any`` and ``asked`` over its first rollouts."""
    unit = [*keys, "item_id"]
    ordered = frame.sort_values(["missing", "sample"], kind="stable")
    groups = ordered.groupby(unit, observed=True, sort=True, dropna=False)
    few = groups.size()
    if len(few) and few.min() < samples:
        raise WorkbenchError(
            f"{int((few < samples).sum())} questions have fewer than {samples} rollouts",
            where=f"any_at_{samples}",
            fix="sample more rollouts, or evaluate(..., expected=N) so that lost ones count",
        )
    first = groups.head(samples)
    found = first.groupby(unit, observed=True, sort=True, dropna=False).agg(
        any=("em", "max"), asked=("valid", "max")
    )
    return found.astype(float).reset_index()


def _valid(frame: pd.DataFrame) -> pd.DataFrame:
    valid = frame[frame["valid"] == 1]
    return valid.assign(one=1.0, over=(valid["searches"] > 1).astype(np.float64))


def _check(frame: pd.DataFrame, closed: str) -> None:
    if closed not in frame.columns:
        raise WorkbenchError(
            f"the frame has no column {closed!r}", fix="add it by boundary.with_closed_book"
        )
    if frame.empty:
        raise WorkbenchError("no rollouts", where="boundary", fix="evaluate the slice first")
