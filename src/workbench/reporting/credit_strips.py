"""One group's rollouts as strips of tokens, coloured by advantage, a strip for each method."""

from __future__ import annotations

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from . import drawing as draw
from .credit_view import DIVERGING, GroupCredit
from .numbers import decimal
from .style import WIDTH, display, style

_GAP = 6  # cells that an observation takes, however long it is
_CUT = 34  # characters of a query that are written above it


def credit_strips(credit: GroupCredit) -> Figure:
    """A block for each rollout; inside, a strip for each method over the same tokens.

    Only generated tokens are drawn, one cell each; a grey gap stands for an observation and
    holds its event.  Frames are executed queries, numbered; below each block stands what they
    asked.
    """
    rows, methods = len(credit.trajectories), credit.methods
    layouts = [_layout(credit, row) for row in range(rows)]
    width = max(layout["width"] for layout in layouts)
    with style():
        heights = [0.62 + 0.22 * len(methods) + 0.16 * len(layout["gaps"]) for layout in layouts]
        figure, axes = plt.subplots(
            rows, 1, figsize=(WIDTH, 1.0 + sum(heights)), squeeze=False, height_ratios=heights
        )
        scale = Normalize(-credit.bound, credit.bound)
        for row, (axis, layout) in enumerate(zip(axes[:, 0], layouts)):
            given = credit.tokens[credit.tokens["rollout"] == row]
            for place, name in enumerate(methods):
                strip = np.full(layout["width"], np.nan)
                values = given[given["method"] == name].set_index("position")["advantage"]
                strip[layout["cells"]] = values.loc[layout["positions"]]
                axis.imshow(
                    strip[None, :], cmap=DIVERGING, norm=scale, aspect="auto",
                    extent=(0, layout["width"], place + 0.94, place + 0.06),
                    interpolation="nearest",
                )  # fmt: skip
            _frames(axis, credit, row, layout, len(methods))
            axis.set_xlim(0, width)
            axis.set_ylim(len(methods), 0)
            axis.set_yticks(np.arange(len(methods)) + 0.5, map(display, methods), fontsize=7.5)
            axis.tick_params(axis="y", length=0)
            axis.set_xticks([])
            axis.grid(visible=False)
            for spine in axis.spines.values():
                spine.set_visible(False)
            axis.set_title(_title(credit, row), loc="left", fontsize=8, weight="normal", pad=13)
            axis.set_xlabel(_queries(credit, row), loc="left", fontsize=7, color="#444444")
        bar = figure.colorbar(
            ScalarMappable(scale, DIVERGING), ax=list(axes[:, 0]), shrink=0.7, pad=0.02, aspect=30
        )
        bar.set_label("advantage of the token", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        figure.suptitle(fill(credit.item.question, 100), fontsize=9, x=0.01, ha="left")
        draw.note(figure, "cell: a generated token; frame: executed query; grey: observation, e_t")
    return draw.finish(figure)


def _layout(credit: GroupCredit, row: int) -> dict:
    """Where each generated token and each observation of a rollout is drawn."""
    method = credit.methods[0]
    tokens = credit.tokens[(credit.tokens["rollout"] == row) & (credit.tokens["method"] == method)]
    cells, positions, gaps, at = [], [], [], 0
    for token in tokens.itertuples():
        if token.segment == "observation":
            if token.search >= 0 and token.search not in {search for search, _ in gaps}:
                gaps.append((token.search, at))
                at += _GAP
        elif token.segment not in ("prompt", "padding"):
            cells.append(at)
            positions.append(token.position)
            at += 1
    return {"cells": cells, "positions": positions, "gaps": gaps, "width": max(at, 1)}


def _frames(axis, credit: GroupCredit, row: int, layout: dict, methods: int) -> None:
    cell = dict(zip(layout["positions"], layout["cells"]))
    events = credit.searches[credit.searches["rollout"] == row].set_index("search")["event"]
    for number, search in enumerate(credit.trajectories[row].searches):
        start, end = search.query_span
        for place in range(methods):
            axis.add_patch(
                Rectangle(
                    (cell[start], place + 0.06), end - start, 0.88, fill=False,
                    edgecolor="#111111", linewidth=0.9,
                )
            )  # fmt: skip
        axis.text(
            cell[start] + (end - start) / 2, -0.04, str(number + 1), fontsize=7, ha="center",
            va="bottom",
        )  # fmt: skip
    for number, at in layout["gaps"]:
        axis.add_patch(Rectangle((at, 0.06), _GAP, methods - 0.12, color="#e4e4e4", linewidth=0))
        axis.text(
            at + _GAP / 2, methods / 2, f"e = {decimal(events[number], 2)}", fontsize=6.5,
            rotation=90, ha="center", va="center",
        )  # fmt: skip


def _title(credit: GroupCredit, row: int) -> str:
    outside, answer = credit.outside.iloc[row], credit.trajectories[row].answer
    text = f"rollout {row + 1}: {answer or 'no answer'} (F1 {decimal(outside['outcome'], 2)})"
    if outside["disabled"]:
        text += f"; local term disabled: {outside['disabled'].replace('_', ' ')}"
    return text


def _queries(credit: GroupCredit, row: int) -> str:
    mine = credit.searches[credit.searches["rollout"] == row]
    lines = []
    for search in mine.to_dict("records"):
        query = search["query"]
        query = query if len(query) <= _CUT else query[: _CUT - 1] + "…"
        covers = ", ".join(search["covers"]) or "nothing new"
        lines.append(f"{search['search'] + 1}  {query}: covers {covers}")
    return "\n".join(lines) or "no search"
