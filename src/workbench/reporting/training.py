"""The figures that tell whether training runs are well: variances, groups, search behaviour."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..grpo.history import possible_values, start_and_end
from . import drawing as draw
from .rows import RowPanel, condition_rows
from .style import ACCENT, WIDTH, colours, style

Panels = Mapping[str, Mapping[str, str]]

# Title of a panel -> logged metrics in it with their names in the legend.
PANELS: Panels = {
    "variance inside groups": {"reward_variance": "reward", "outcome_variance": "outcome"},
    "share of groups": {"zero_variance_groups": "zero variance", "phantom_groups": "phantom"},
    "entropy (nats per token)": {"entropy": "entropy"},
    "KL to the base policy": {"kl": "KL"},
    "searches per rollout": {"searches": "searches"},
    "answered without search": {"direct": "direct"},
    "groups of equal outcome": {"tied_outcome_groups": "groups", "tied_credit": "their credit"},
    "outcome order overturned": {"rank_reversals": "pairs", "sign_reversals": "signs"},
    "local credit": {"credited_searches": "searches with", "local_disabled": "rollouts without"},
}
# What the overview of many conditions shows, with the names of its columns.
OVERVIEW = {
    "reward_variance": "variance of\nreward in groups",
    "zero_variance_groups": "groups of\nequal reward",
    "entropy": "entropy\n(nats per token)",
    "kl": "KL to the\nbase policy",
    "searches": "searches\nper rollout",
    "direct": "answered\nwithout search",
}
# The same for methods that give credit beside the outcome.
CREDIT = {
    "tied_outcome_groups": "groups of\nequal outcome",
    "tied_credit": "credit that\nlies in them",
    "rank_reversals": "outcome order\noverturned",
    "credited_searches": "searches with\nlocal credit",
    "local_disabled": "rollouts\nwithout it",
}
_COLUMNS = 3


def diagnostics(history: pd.DataFrame, window: int = 5, panels: Panels = PANELS) -> Figure:
    """Panels over the update steps of one condition.

    Parameters
    ----------
    history : seed, step and the logged metrics, as ``grpo.history.training_history`` gives it.
    window : steps of the centred running mean.

    Thin lines are seeds, bold lines their mean, bands 95 % t intervals over seeds, cut at the
    values that the metric can have.  Metrics that were not logged are left out, and panels
    with none; metrics that are the same at every step are one line under both names.
    """
    draw.need(history, "seed", "step")
    trained = history[history["step"] > 0]
    shown = {title: lines for title, of in panels.items() if (lines := _lines(trained, of))}
    draw.need(trained if shown else trained.iloc[:0], "seed", "step")
    rows = -(-len(shown) // _COLUMNS)
    with style():
        figure, axes = plt.subplots(
            rows, _COLUMNS, figsize=(WIDTH, 0.5 + 2.0 * rows), sharex=True, squeeze=False
        )
        for place, (axis, (title, lines)) in enumerate(zip(axes.flat, shown.items())):
            colour = colours(list(lines))
            for metric in lines:
                part = trained[["seed", "step", metric]].rename(columns={metric: "value"})
                within = possible_values(metric)
                draw.curve(axis, part.dropna(), colour[metric], window=window, within=within)
            named = [_is_named(of) for of in shown.values()]
            row = place // _COLUMNS * _COLUMNS
            axis.set_title(title, pad=18 if any(named[row : row + _COLUMNS]) else 6)
            if named[place]:
                _legend_under_title(axis, {name: colour[m] for m, name in lines.items()})
            draw.round_ticks(axis.yaxis, 5)
            draw.round_ticks(axis.xaxis, 5, integer=True)
        draw.blank_rest(axes, len(shown))
        seeds = trained["seed"].nunique()
        bands = "; thin: seeds; bold: their mean; bands: 95 % t intervals over seeds,"
        bands += "\ncut at 0 and, of shares, at 1"
        note = f"running mean of {window} steps" if window > 1 else "every step"
        draw.note(figure, note + (bands if seeds > 1 else "; one seed"), label="update step")
    return draw.finish(figure)


def diagnostics_overview(
    histories: Mapping[str, pd.DataFrame],
    metrics: Mapping[str, str] = OVERVIEW,
    share: float = 0.1,
) -> Figure:
    """First and last steps of many conditions side by side: one row each, one column a metric.

    Parameters
    ----------
    histories : ``grpo.history.training_history`` by condition.
    metrics : logged metrics with the names of their columns, at most six to be legible
        (``OVERVIEW``, ``CREDIT``); one that no condition logged is left out, and so is a
        condition that logged none.
    share : of the steps, averaged at each end.

    Hollow are the first steps, filled the last, bars 95 % t intervals over seeds, cut at the
    values that the metric can have.
    """
    frames = [
        start_and_end(history, list(metrics), share).assign(condition=name)
        for name, history in histories.items()
    ]
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    draw.need(table, "condition", "metric", "when", "value", "low", "high")
    panels = [
        RowPanel(title, table[table["metric"] == metric].assign(mark=lambda t: t["when"]))
        for metric, title in metrics.items()
        if (table["metric"] == metric).any()
    ]
    marks = {"first": ("#8a8a8a", "o", "white"), "last": (ACCENT, "s", None)}
    width = int(table["steps"].max())
    names = {"first": f"first {width} step(s)", "last": f"last {width} step(s)"}
    note = "means over seeds"
    if table["seeds"].max() > 1:
        note += "; bars: 95 % t intervals over seeds, cut at 0 and, of shares, at 1"
    shown = [name for name in histories if (table["condition"] == name).any()]
    return condition_rows(shown, panels, marks, note, names)


def _lines(trained: pd.DataFrame, metrics: Mapping[str, str]) -> dict[str, str]:
    """Metrics to draw with their names; one that repeats another joins its name."""
    lines: dict[str, str] = {}
    for metric, name in metrics.items():
        if metric not in trained.columns or trained[metric].isna().all():
            continue
        twin = next((m for m in lines if _equal(trained[m], trained[metric])), None)
        if twin is None:
            lines[metric] = name
        else:
            lines[twin] += f" = {name}"
    return lines


def _equal(one: pd.Series, other: pd.Series) -> bool:
    return bool(np.array_equal(one.to_numpy(), other.to_numpy(), equal_nan=True))


def _is_named(lines: Mapping[str, str]) -> bool:
    """Whether a panel needs a legend: its title alone does not say what its line is."""
    return len(lines) > 1 or any(" = " in name for name in lines.values())


def _legend_under_title(axis: Axes, colour: Mapping[str, str]) -> None:
    """A legend between title and panel, where no interval can be."""
    handles = [draw.handle(c, "", name, line="-") for name, c in colour.items()]
    axis.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.97), ncols=len(handles),
        fontsize=7.5, handlelength=1.4, columnspacing=1.2, borderaxespad=0.0,
    )  # fmt: skip
