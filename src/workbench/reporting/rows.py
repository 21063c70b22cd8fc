"""Many conditions legibly: one row each, named at the left; every panel is a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from . import drawing as draw
from .style import WIDTH, display, style

# Mark -> colour, marker, and its filling ("white" for hollow).
Marks = Mapping[str, tuple[str, str, str | None]]


@dataclass(frozen=True)
class RowPanel:
    """A column: its title and a frame of condition, mark, value, low, high.

    ``zero`` draws the line of no difference; ``within`` are the limits of the axis.
    """

    title: str
    frame: pd.DataFrame
    zero: bool = False
    within: tuple[float, float] | None = None


def condition_rows(
    names: Sequence[str],
    panels: Sequence[RowPanel],
    marks: Marks,
    note: str,
    mark_names: Mapping[str, str] = {},  # noqa: B006
) -> Figure:
    """Points with intervals, a row per condition in the order of ``names``.

    Parameters
    ----------
    marks : what a row holds several times (before and after, voting rules), top to bottom;
        with a single one there is no legend.
    note : what the bars are.
    mark_names : names in the legend where they differ from ``style.display``.
    """
    step = 0.62 / max(len(marks), 2)
    height = 1.15 + len(names) * (0.14 + 0.085 * len(marks))
    with style():
        figure, axes = plt.subplots(
            1, len(panels), figsize=(WIDTH, height), sharey=True, squeeze=False
        )
        for axis, panel in zip(axes[0], panels):
            for place, (mark, (colour, symbol, fill)) in enumerate(marks.items()):
                rows = panel.frame[panel.frame["mark"] == mark]
                rows = rows[rows["condition"].isin(names)]
                shift = step * (place - (len(marks) - 1) / 2)
                at = [names.index(name) + shift for name in rows["condition"]]
                draw.points(axis, at, rows, colour, symbol, fill=fill, horizontal=True)
            axis.set_title(panel.title, fontsize=8.5)
            axis.tick_params(axis="x", labelsize=7.5)
            draw.round_ticks(axis.xaxis, 3 if len(panels) > 4 else 5)
            for row in range(0, len(names), 2):
                axis.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", linewidth=0, zorder=0)
            axis.grid(axis="y", visible=False)
            if panel.within:
                axis.set_xlim(*panel.within)
            if panel.zero:
                draw.zero_line(axis, "x")
        axes[0][0].set_yticks(range(len(names)), [display(name) for name in names])
        axes[0][0].set_ylim(len(names) - 0.5, -0.5)
        draw.note(figure, note)
        if len(marks) > 1:
            handles = [
                draw.handle(colour, symbol, mark_names.get(mark, display(mark)), fill=fill)
                for mark, (colour, symbol, fill) in marks.items()
            ]
            draw.legend(figure, handles)
    return draw.finish(figure)
