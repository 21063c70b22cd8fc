"""The figures of the main job. Every function takes tidy frames and returns a Figure.

Intervals are drawn wherever a frame has ``low`` and ``high``; a point without them (one
question, one seed) stays a bare point.  ``style.save_figure`` writes what is returned.

Up to ``FEW`` conditions share a panel; more get a panel or a row each, and then less is shown
of each (the docstrings say what), because the tables beside the figures hold the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from . import drawing as draw
from .rows import RowPanel, condition_rows
from .style import ACCENT, UNTRAINED, WIDTH, colours, display, markers, style

FEW = 4
_COLUMNS = 4  # panels side by side when every condition has its own
EXPOSURE_LABEL = "times the base policy's training showed the fact (n questions)"


def training_curves(
    frame: pd.DataFrame, window: int = 5, heldout: str = "EM at temperature 1"
) -> Figure:
    """Reward on training rollouts and a held-out score against the step.

    Parameters
    ----------
    frame : condition, seed, step, series ("training" or "held-out"), value; ``low`` and
        ``high`` are drawn where a condition has one seed.
    window : steps of the centred running mean over the training series.
    heldout : name of the held-out score, for the axis.

    Thin lines are seeds, bold lines their mean, bands on the right 95 % t intervals over seeds,
    cut at 0 and 1 (the held-out score is a share).  More than ``FEW`` conditions are shown by
    the held-out score alone, each in a panel with the mean of the first in grey.
    """
    draw.need(frame, "condition", "seed", "step", "series", "value")
    names = _names(frame["condition"])
    colour, marker = colours(names), markers(names)
    if len(names) > FEW:
        return _curve_each(frame[frame["series"] == "held-out"], names, heldout)
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.1))
        for axis, series in zip(axes, ("training", "held-out")):
            part = frame[frame["series"] == series]
            for place, name in enumerate(names):
                mine = part[part["condition"] == name]
                symbol = marker[name] if series == "held-out" else ""
                smooth, within = (window, None) if series == "training" else (1, (0.0, 1.0))
                dodge = 0.012 * (place - (len(names) - 1) / 2)
                draw.curve(axis, mine, colour[name], symbol, smooth, dodge, within)
            axis.set_xlabel("update step")
            draw.round_ticks(axis.xaxis, 7, integer=True)
        mean = f", mean of {window} steps" if window > 1 else ""
        axes[0].set_title(f"Training rollouts{mean}")
        axes[0].set_ylabel("reward, each condition's own")
        axes[1].set_title("Held-out questions")
        axes[1].set_ylabel(heldout)
        seeds = frame["seed"].nunique()
        bands = f"thin: {seeds} seeds; bold: their mean; {_BANDS}"
        draw.note(figure, bands if seeds > 1 else "bars: 95 % intervals over questions")
        _legend(figure, names, line="-")
    return draw.finish(figure)


_BANDS = "bands: 95 % t intervals over seeds, cut at 0 and 1"


def _curve_each(frame: pd.DataFrame, names: list[str], heldout: str) -> Figure:
    draw.need(frame, "condition", "seed", "step", "value")
    first = names[0]
    reference = frame[frame["condition"] == first].groupby("step")["value"].mean()
    with style():
        figure, axes = _grid(len(names), 1.5)
        for axis, name in zip(axes.flat, names):
            mine = frame[frame["condition"] == name]
            if name != first:
                axis.plot(reference.index, reference, color="#8a8a8a", linestyle="--", linewidth=1)
            draw.curve(axis, mine, ACCENT, "s", within=(0.0, 1.0))
            axis.set_title(display(name), fontsize=8.5)
            draw.round_ticks(axis.xaxis, 4, integer=True)
            draw.round_ticks(axis.yaxis, 5)
        draw.blank_rest(axes, len(names))
        seeds = frame["seed"].nunique()
        bars = f"thin: {seeds} seeds; bold: their mean; {_BANDS}"
        bars = bars if seeds > 1 else "bars: 95 % intervals over questions"
        draw.note(figure, f"{bars}\ndashed: mean of {display(first)}", label="update step")
        figure.supylabel(f"held-out questions: {heldout}", fontsize=9.0)
    return draw.finish(figure)


def search_mode_shift(frame: pd.DataFrame) -> Figure:
    """Share of questions answered without search, before and after training, by exposure.

    Parameters
    ----------
    frame : condition, phase ("before" or "after"), exposure_bin (ordered), value, low, high, n.
    """
    draw.need(frame, "condition", "phase", "exposure_bin", "value", "low", "high", "n")
    names, bins = _names(frame["condition"]), draw.levels(frame["exposure_bin"])
    colour = colours(names) if len(names) <= FEW else dict.fromkeys(names, ACCENT)
    with style():
        figure, axes = _grid(len(names), 3.2 if len(names) <= FEW else 1.7)
        for axis, name in zip(axes.flat, names):
            mine = frame[frame["condition"] == name]
            for phase, shade, symbol, fill, shift in (
                ("before", "#5f5f5f", "o", "white", -0.12),
                ("after", colour[name], "s", None, 0.12),
            ):
                rows = mine[mine["phase"] == phase]
                at = [bins.index(str(b)) + shift for b in rows["exposure_bin"]]
                draw.points(axis, at, rows, shade, symbol, fill=fill, line=True)
            draw.exposure_axis(axis, bins, mine)
            axis.set_title(display(name), fontsize=9.5 if len(names) <= FEW else 8.5)
        axes[0][0].set_ylim(-0.03, 1.03)
        draw.blank_rest(axes, len(names))
        if len(names) > FEW:
            figure.supylabel("share answered without search", fontsize=9.0)
        else:
            axes[0][0].set_ylabel("share answered without search")
        draw.note(figure, draw.bars_note(frame), label=EXPOSURE_LABEL)
        before = draw.handle("#5f5f5f", "o", "before training", fill="white", line="-")
        draw.legend(figure, [before, draw.handle("#222222", "s", "after training", line="-")])
    return draw.finish(figure)


def exposure_figure(curve: pd.DataFrame, ylabel: str = "closed-book EM, greedy") -> Figure:
    """A score of the base policy against exposure (frame of ``evaluation.exposure_curve``).

    Parameters
    ----------
    curve : exposure_bin (ordered), value, low, high, n; optionally ``category``, one line each
        (n is then the largest of a bin's lines).
    """
    draw.need(curve, "exposure_bin", "value", "low", "high", "n")
    bins, grouped = draw.levels(curve["exposure_bin"]), "category" in curve.columns
    names = _names(curve["category"]) if grouped else ["base"]
    colour, marker = colours(names), markers(names)
    with style():
        figure, axis = plt.subplots(figsize=(0.66 * WIDTH, 3.1))
        for place, name in enumerate(names):
            rows = curve[curve["category"] == name] if grouped else curve
            shift = 0.16 * (place - (len(names) - 1) / 2)
            at = [bins.index(str(b)) + shift for b in rows["exposure_bin"]]
            draw.points(axis, at, rows, colour[name], marker[name], line=True)
        draw.exposure_axis(axis, bins, curve)
        axis.set_ylabel(ylabel)
        axis.set_ylim(-0.03, 1.03)
        draw.note(figure, draw.bars_note(curve), label=EXPOSURE_LABEL)
        if grouped:
            _legend(figure, names)
    return draw.finish(figure)


def vote_figure(votes: pd.DataFrame) -> Figure:
    """Accuracy of voting rules with intervals, and their paired difference to the comparator.

    Parameters
    ----------
    votes : frame of ``voting.study.summarise_votes``; optionally ``condition``, one colour
        each, and a row each for more than ``FEW``.  Single rollout and oracle are references,
        drawn hollow.
    """
    draw.need(votes, "rule", "accuracy", "low", "high", "delta", "delta_low", "delta_high")
    if "condition" not in votes.columns:
        votes = votes.assign(condition="votes")
    rules, names = _names(votes["rule"]), _names(votes["condition"])
    colour, marker = colours(names), markers(names)
    comparator = votes["comparator"].iloc[0]
    panels = (("accuracy", "low", "high"), ("delta", "delta_low", "delta_high"))
    count, rollouts = int(votes["n"].iloc[0]), votes["rollouts"].iloc[0]
    titles = (
        f"accuracy (EM), {count} questions x {rollouts:g} rollouts",
        f"accuracy minus {display(comparator)}",
    )
    note = f"{draw.bars_note(votes)}; hollow: references, not votes"
    if len(names) > FEW:
        return _vote_rows(votes, names, rules, panels, titles, note)
    with style():
        height = 1.1 + len(rules) * (0.28 + 0.12 * len(names))
        figure, axes = plt.subplots(1, 2, figsize=(WIDTH, height), sharey=True)
        for place, name in enumerate(names):
            shift = 0.2 * (place - (len(names) - 1) / 2)
            mine = votes[votes["condition"] == name]
            reference = mine["rule"].isin(("single", "oracle"))
            for rows, fill in ((mine[~reference], None), (mine[reference], "white")):
                for axis, columns in zip(axes, panels):
                    if columns[0] == "delta":
                        rows = rows[rows["rule"] != comparator]
                    at = [rules.index(r) + shift for r in rows["rule"]]
                    look = (colour[name], marker[name], columns, fill)
                    draw.points(axis, at, rows, *look, horizontal=True)
        axes[0].set_yticks(range(len(rules)), [display(r) for r in rules])
        axes[0].set_ylim(len(rules) - 0.5, -0.5)
        for axis, title in zip(axes, titles):
            axis.set_xlabel(title)
            draw.round_ticks(axis.xaxis)
        draw.zero_line(axes[1], "x")
        draw.note(figure, note)
        if len(names) > 1:
            _legend(figure, names)
    return draw.finish(figure)


def _vote_rows(votes, names, rules, panels, titles, note) -> Figure:
    frames = [
        votes.assign(mark=votes["rule"], **dict(zip(("value", "low", "high"), _parts(votes, c))))
        for c in panels
    ]
    comparator = votes["comparator"].iloc[0]
    frames[1] = frames[1][frames[1]["rule"] != comparator]
    colour, marker = colours(rules), markers(rules)
    marks = {
        r: (colour[r], marker[r], "white" if r in ("single", "oracle") else None) for r in rules
    }
    columns = [RowPanel(t, f, zero=f is frames[1]) for t, f in zip(titles, frames)]
    return condition_rows(names, columns, marks, note)


def _parts(frame: pd.DataFrame, columns: Sequence[str]) -> list[pd.Series]:
    return [frame[c] for c in columns]


def condition_figure(
    scores: pd.DataFrame,
    differences: pd.DataFrame,
    metrics: Sequence[str] = ("em", "f1"),
    reference: str = "base",
) -> Figure:
    """Scores per condition and question category, and paired differences to the base policy.

    Parameters
    ----------
    scores, differences : condition, category, metric, value, low, high (frames of
        ``summarise`` and ``paired_differences`` put together); one row of panels per metric.
        More than ``FEW`` trained conditions get a row each, and where there is a category
        "all", only that is shown.
    """
    for frame in (scores, differences):
        draw.need(frame, "condition", "category", "metric", "value", "low", "high")
    names, categories = _names(scores["condition"]), _names(scores["category"])
    colour, marker = colours(names), markers(names)
    if len([n for n in names if n not in UNTRAINED]) > FEW:
        return _score_rows(scores, differences, metrics, reference)
    with style():
        size = (WIDTH, 0.9 + 2.1 * len(metrics))
        figure, axes = plt.subplots(len(metrics), 2, figsize=size, sharex=True, squeeze=False)
        for (left, right), metric in zip(axes, metrics):
            for axis, frame in ((left, scores), (right, differences)):
                part = frame[frame["metric"] == metric]
                shown = [n for n in names if n in set(part["condition"])]
                for place, name in enumerate(shown):
                    rows = part[part["condition"] == name]
                    shift = 0.6 * ((place + 0.5) / len(shown) - 0.5)
                    at = [categories.index(c) + shift for c in rows["category"]]
                    draw.points(axis, at, rows, colour[name], marker[name])
                axis.set_xticks(range(len(categories)), categories)
                axis.set_xlim(-0.5, len(categories) - 0.5)
                axis.grid(axis="x", visible=False)
                draw.round_ticks(axis.yaxis)
            left.set_ylabel(metric.upper())
            right.set_ylabel(f"{metric.upper()} minus {display(reference)}")
            draw.zero_line(right)
        axes[0][0].set_title("Score")
        axes[0][1].set_title("Paired difference")
        draw.note(figure, draw.bars_note(differences))
        _legend(figure, names)
    return draw.finish(figure)


def _score_rows(scores, differences, metrics, reference) -> Figure:
    names, categories = _names(scores["condition"]), _names(scores["category"])
    categories = ["all"] if "all" in categories else categories
    colour = colours(categories)
    marker = markers(categories)
    panels = []
    for metric in metrics:
        for frame, title in ((scores, ""), (differences, f"\nminus {display(reference)}")):
            part = frame[(frame["metric"] == metric) & frame["category"].isin(categories)]
            part = part.assign(mark=part["category"])
            panels.append(RowPanel(metric.upper() + title, part, zero=frame is differences))
    marks = {c: (colour[c], marker[c], None) for c in categories}
    return condition_rows(names, panels, marks, draw.bars_note(differences))


def _grid(count: int, height: float):
    """Figure and axes [rows, columns] for ``count`` panels of ``height`` inches, equal scales."""
    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    size = (WIDTH, height * rows + (0.7 if rows > 1 else 0.0))
    return plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False)


def _names(column: pd.Series) -> list[str]:
    return list(dict.fromkeys(column))


def _legend(figure: Figure, names: list[str], line: str = "") -> None:
    colour, marker = colours(names), markers(names)
    draw.legend(figure, [draw.handle(colour[n], marker[n], display(n), line=line) for n in names])
