"""Figure 4 of the Search-G1 study (S1) with its mirror, and Table 4 as a picture.

Ours are filled points with intervals; S1's are hollow, its bars the range over its two models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from ..evaluation.search_g1_study import FULL, MAIN, VARIANTS, tied_groups
from . import drawing as draw
from .published import published_cell
from .rows import RowPanel, condition_rows
from .search_g1_cells import NQ, PAPER, WIKI, label
from .search_g1_costs import VARIATION
from .style import ACCENT, style

_THEIRS = "#5f5f5f"
_SYMBOLS = {NQ: "o", WIKI: "D", "all": "^"}
_NAMES = {NQ: "S1, NQ", WIKI: "S1, 2Wiki", "all": "S1, both"}
_TIED = (
    ("all_correct", "credited", "all-correct groups:\nshare with non-\nzero advantages"),
    ("all_correct", "reward_sd", "all-correct groups:\nreward sd"),
    ("all_wrong", "credited", "all-wrong groups:\nshare with non-\nzero advantages"),
    ("all_wrong", "reward_sd", "all-wrong groups:\nreward sd"),
)
_BEHAVIOUR = {
    "em": "EM", "tc": "TC", "d_inv": "D-Inv\n(of classified)", "searches": "searches per\nquestion",
}  # fmt: skip


def tied_groups_figure(histories: Mapping[str, pd.DataFrame]) -> Figure:
    """Figure 4, tie-breaking in all-correct groups, beside the same in all-wrong groups.

    Rewards of outcome alone are the baseline at zero.  ``histories``:
    ``grpo.history.training_history`` by condition, a row each in their order.
    """
    found = tied_groups(histories)
    draw.need(found, "condition", "kind", "metric", "value", "low", "high")
    names = list(histories)
    rows = found.dropna(subset=["value"]).assign(mark="ours")
    panels = []
    for kind, metric, title in _TIED:
        own = rows[(rows["kind"] == kind) & (rows["metric"] == metric)]
        within = (-0.04, 1.04) if metric == "credited" else None
        panels.append(RowPanel(title, own, zero=True, within=within))
    figure = condition_rows(names, panels, {"ours": (ACCENT, "s", None)}, _note(found))
    deviations = rows.loc[rows["metric"] == "reward_sd", ["value", "high"]].fillna(0.0)
    widest = max(0.32, *deviations.max())
    with style():
        for axis in (figure.axes[1], figure.axes[3]):
            axis.set_xlim(-0.04 * widest, 1.08 * widest)
        shown = _draw_theirs(figure, names.index(FULL)) if FULL in names else []
        if shown:
            draw.legend(figure, [draw.handle(ACCENT, "s", "ours"), *shown])
    return _named(figure, names)


def behaviour_figure(summary: pd.DataFrame, conditions: Sequence[str] = ()) -> Figure:
    """Table 4 as a picture: EM, TC, D-Inv and searches, a row for each policy.

    Parameters
    ----------
    summary : rows of ``search_g1_study.behaviour`` without further keys.
    conditions : rows in order; default those of Tables 3 and 4 that are there.
    """
    draw.need(summary, "condition", "metric", "value", "low", "high", "seeds")
    wanted = conditions or tuple(dict.fromkeys((*MAIN[:2], *VARIANTS)))
    names = [name for name in wanted if name in set(summary["condition"])]
    draw.need(summary if names else summary.iloc[:0], "condition")
    rows = summary.dropna(subset=["value"]).assign(mark="ours")
    panels = [RowPanel(title, rows[rows["metric"] == m]) for m, title in _BEHAVIOUR.items()]
    note = draw.bars_note(rows) + "; TC and D-Inv condition on what a policy got right"
    return _named(condition_rows(names, panels, {"ours": (ACCENT, "s", None)}, note), names)


def _draw_theirs(figure: Figure, row: int) -> list:
    """S1's values in the row of Search-G1, below ours; the entries of the legend."""
    drawn = []
    shares, deviations = figure.axes[:2]
    for axis, metric, datasets in (
        (shares, VARIATION, (NQ, WIKI)),
        (deviations, "within-group reward SD", ("all",)),
    ):
        for dataset in datasets:
            keys = {"figure": "4", "series": "Search-G1", "dataset": dataset, "metric": metric}
            low, high = (
                published_cell(PAPER, "figures", bound=bound, **keys).value
                for bound in ("min", "max")
            )
            ends = pd.DataFrame({"value": [(low + high) / 2], "low": [low], "high": [high]})
            look = (_THEIRS, _SYMBOLS[dataset])
            draw.points(axis, [row + 0.25], ends, *look, fill="white", horizontal=True)
            drawn.append(draw.handle(*look, _NAMES[dataset], fill="white"))
    return drawn


def _note(found: pd.DataFrame) -> str:
    seeds = found["seeds"]
    if seeds.max() > 1:
        bars = "bars: 95 % t intervals over seeds, cut at 0 and, of shares, at 1"
        bars += "; where there is one seed, Wilson's over groups" if seeds.min() == 1 else ""
    else:
        bars = "one seed; bars: 95 % Wilson intervals of shares over groups, none of a deviation"
    return f"{bars};\nno point: no such group; S1: 3B to 7B, it reports all-correct groups only"


def _named(figure: Figure, conditions: Sequence[str]) -> Figure:
    """The labels of params/conditions at the rows."""
    figure.axes[0].set_yticks(range(len(conditions)), [label(name) for name in conditions])
    return figure
