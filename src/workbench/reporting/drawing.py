"""Pieces that the figures share: points with intervals, curves over seeds, axes, legends."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..errors import WorkbenchError
from ..inference.classical import t_interval


def points(
    axis: Axes,
    at: Sequence[float],
    frame: pd.DataFrame,
    colour: str,
    symbol: str,
    columns: tuple[str, str, str] = ("value", "low", "high"),
    fill: str | None = None,
    horizontal: bool = False,
    line: bool = False,
) -> None:
    """Points with their intervals at the places ``at`` of the other axis.

    ``columns`` name value, low and high; an interval of NaN leaves the bare point.
    """
    value, low, high = (frame[c].to_numpy(dtype=float) for c in columns)
    error = np.nan_to_num(np.abs([value - low, high - value]))
    where = {"x": value, "y": at, "xerr": error} if horizontal else {"x": at, "y": value}
    axis.errorbar(
        **where,
        yerr=None if horizontal else error,
        color=colour,
        marker=symbol,
        markersize=5,
        markerfacecolor=fill or colour,
        linestyle="-" if line else "",
        linewidth=1.0,
        elinewidth=1.4,
        zorder=3,
    )


def curve(
    axis: Axes,
    frame: pd.DataFrame,
    colour: str,
    symbol: str = "",
    window: int = 1,
    dodge: float = 0.0,
    within: tuple[float, float] | None = (-np.inf, np.inf),
) -> None:
    """One condition over steps: seeds thin, their mean bold, a band of t intervals.

    ``window`` steps are averaged first.  The band is cut at ``within``, the values that are
    possible, and left out for None.  With a single seed the frame's own intervals are drawn,
    if it has them; ``dodge`` (a share of the step range) keeps the bars of several conditions
    apart.
    """
    table = frame.pivot_table(index="step", columns="seed", values="value").sort_index()
    if table.empty:
        return
    smooth = table.rolling(window, center=True, min_periods=1).mean()
    mean = smooth.mean(axis=1)
    if smooth.shape[1] > 1:
        axis.plot(smooth.index, smooth, color=colour, linewidth=0.7, alpha=0.5)
        if within is not None:
            bands = [t_interval(row.dropna(), within=within) for _, row in smooth.iterrows()]
            low, high = np.array([(b.low, b.high) for b in bands]).T
            axis.fill_between(smooth.index, low, high, color=colour, alpha=0.15, linewidth=0)
    elif symbol and {"low", "high"} <= set(frame.columns):
        mean.index = mean.index + dodge * np.ptp(mean.index)
        points(axis, mean.index, frame.sort_values("step"), colour, symbol)
    axis.plot(mean.index, mean, color=colour, marker=symbol or None, markersize=4)


def exposure_axis(axis: Axes, bins: list[str], frame: pd.DataFrame) -> None:
    """Exposure bins along x, each with its number of questions."""
    sizes = frame.groupby(frame["exposure_bin"].astype(str))["n"].max()
    axis.set_xticks(range(len(bins)), [f"{b}\n({int(sizes.get(b, 0))})" for b in bins])
    axis.set_xlim(-0.5, len(bins) - 0.5)
    axis.grid(axis="x", visible=False)


def round_ticks(axis, count: int = 6, integer: bool = False) -> None:
    """At most ``count`` ticks of an x or y axis, at multiples of 1, 2 or 5."""
    axis.set_major_locator(MaxNLocator(nbins=count, steps=[1, 2, 5, 10], integer=integer))


def blank_rest(axes: np.ndarray, used: int) -> None:
    """Switch off the panels of a grid from ``used`` on; the lowest of a column keeps its ticks."""
    for axis in axes.flat[used:]:
        axis.set_axis_off()
    for column in axes.T:
        lowest = [axis for axis in column if axis.axison][-1:]
        for axis in lowest:
            axis.tick_params(labelbottom=True)


def zero_line(axes: Axes, axis: str = "y") -> None:
    """The line of no difference."""
    draw = axes.axhline if axis == "y" else axes.axvline
    draw(0.0, color="#444444", linewidth=1.0, zorder=1)


def levels(column: pd.Series) -> list[str]:
    """Names that occur, in the order of the categories, else in that of appearance."""
    present = set(column.astype(str))
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [str(c) for c in column.cat.categories if str(c) in present]
    return list(dict.fromkeys(column.astype(str)))


def handle(colour: str, symbol: str, label: str, fill: str | None = None, line: str = "") -> Line2D:
    """An entry of the legend."""
    look = {"color": colour, "marker": symbol, "markersize": 5, "linestyle": line}
    return Line2D([], [], **look, markerfacecolor=fill or colour, label=label)


def legend(figure: Figure, handles: list[Line2D]) -> None:
    """One legend above all panels."""
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 4))


def note(figure: Figure, text: str, label: str = "") -> None:
    """A line below the panels that says what bars and bands are; ``label`` stands above it."""
    figure.supxlabel(f"{label}\n{text}" if label else text, fontsize=8.0, color="#444444")


def bars_note(frame: pd.DataFrame) -> str:
    """What the bars of a summary frame are; several training seeds are resampled too."""
    seeds = "seeds and " if "seeds" in frame.columns and frame["seeds"].max() > 1 else ""
    return f"bars: 95 % bootstrap intervals over {seeds}questions"


def need(frame: pd.DataFrame, *columns: str) -> None:
    """Refuse a frame without rows or without a column that the figure reads."""
    missing = [c for c in columns if c not in frame.columns]
    if missing or frame.empty:
        raise WorkbenchError(
            f"a figure needs at least one row and the columns {list(columns)}",
            where=f"missing: {missing}" if missing else "no rows",
        )


def finish(figure: Figure) -> Figure:
    """Detach from pyplot, so that a notebook shows the figure once and memory is freed."""
    plt.close(figure)
    return figure
