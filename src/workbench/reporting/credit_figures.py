"""Figures 2 to 5 of the retrieval-credit study (S3), and two that show all thirteen conditions.

Ours are filled points with intervals.  S3's numbers are hollow circles without interval (it
states none) and stand only where both are differences or shares, never on an axis of scores.
S3's text never names a Figure 4 and speaks of its coverage histogram and of its
coverage-conditioned F1 as Figure 5; here they are Figures 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ..evaluation.contrasts import ALL
from ..evaluation.credit_study import CONDITIONS, MULTI_HOP, OUTCOME_ONLY, SETS, SINGLE_HOP
from . import drawing as draw
from .credit_tables import published_difference
from .numbers import decimal
from .published import published_cell
from .rows import RowPanel, condition_rows
from .style import ACCENT, WIDTH, colours, display, markers, style

_THEIRS = ("#5f5f5f", "o", "white")
_NAMES = {"ours": "ours", "theirs": "S3 (Qwen3-4B, Wikipedia)"}
_TITLES = {
    "a": "a  where credit goes, and prerequisites",
    "b": "b  aligned and permuted",
    "c": "c  which outcome groups",
}


def gains_figure(differences: pd.DataFrame) -> Figure:
    """Figure 2 for all conditions: F1 gain over outcome-only on multi-hop and single-hop questions.

    ``differences``: rows of ``credit_study.differences`` with the reference "oo".
    """
    draw.need(differences, "condition", "reference", "hop_group", "metric", "value", "low", "high")
    rows = differences[differences["reference"] == OUTCOME_ONLY]
    rows = rows[rows["metric"] == "f1"].assign(mark="ours")
    names = [name for name in CONDITIONS if name in set(rows["condition"])]
    rows = pd.concat([rows, _theirs(rows)], ignore_index=True)
    panels = [
        RowPanel(f"{group}\nF1 minus OO", rows[rows["hop_group"] == group], zero=True)
        for group in (MULTI_HOP, SINGLE_HOP, ALL)
    ]
    marks = {"ours": (ACCENT, "s", None), "theirs": _THEIRS}
    return condition_rows(names, panels, marks, draw.bars_note(rows), _NAMES)


def contrasts_figure(differences: pd.DataFrame, group: str = ALL) -> Figure:
    """Figure 3: the paired contrasts of panels a, b and c, S3's beside ours.

    ``differences``: rows of ``credit_study.differences`` over ``CONTRASTS``; ``group`` of them.
    """
    draw.need(differences, "condition", "reference", "panel", "hop_group", "value", "low", "high")
    rows = differences[(differences["hop_group"] == group) & (differences["metric"] == "f1")]
    shown = [p for p in _TITLES if p in set(rows["panel"])]
    draw.need(rows if shown else rows.iloc[:0], "panel")
    sizes = [int((rows["panel"] == p).sum()) for p in shown]
    with style():
        figure, axes = plt.subplots(
            len(shown), 1, figsize=(0.8 * WIDTH, 1.3 + 0.36 * sum(sizes)), sharex=True,
            squeeze=False, height_ratios=[max(n, 2) for n in sizes],
        )  # fmt: skip
        for axis, panel in zip(axes[:, 0], shown):
            mine = rows[rows["panel"] == panel].reset_index(drop=True)
            at = np.arange(len(mine))
            draw.points(axis, at - 0.12, mine, ACCENT, "s", horizontal=True)
            theirs = _theirs(mine)
            colour, symbol, fill = _THEIRS
            draw.points(axis, at + 0.16, theirs, colour, symbol, fill=fill, horizontal=True)
            axis.set_yticks(at, [_pair(r) for r in mine.to_dict("records")])
            axis.set_ylim(len(mine) - 0.5, -0.5)
            axis.grid(axis="y", visible=False)
            axis.set_title(_TITLES[panel], loc="left", fontsize=9)
            draw.zero_line(axis, "x")
        draw.round_ticks(axes[-1, 0].xaxis)
        draw.note(figure, draw.bars_note(rows), label=f"F1 difference, {_questions(group)}")
        handles = [draw.handle(ACCENT, "s", _NAMES["ours"])]
        handles.append(draw.handle(*_THEIRS[:2], _NAMES["theirs"], fill=_THEIRS[2]))
        draw.legend(figure, handles)
    return draw.finish(figure)


def scores_by_rule(scores: pd.DataFrame) -> Figure:
    """The scores behind Figure 3: micro-averaged F1 by signal, one row for each way of credit.

    ``scores``: condition, hop_group, metric, value, low, high, n, seeds.
    """
    draw.need(scores, "condition", "hop_group", "metric", "value", "low", "high")
    rows = scores[(scores["metric"] == "f1") & scores["condition"].isin(CONDITIONS)]
    names = [name for name in CONDITIONS if name in set(rows["condition"])]
    panels = [
        RowPanel(f"{group}\nF1", rows[rows["hop_group"] == group].assign(mark="ours"))
        for group in (MULTI_HOP, SINGLE_HOP, ALL)
    ]
    return condition_rows(names, panels, {"ours": (ACCENT, "s", None)}, draw.bars_note(rows))


def coverage_figure(histogram: pd.DataFrame, conditions: Sequence[str]) -> Figure:
    """Figure 4: share of questions at each level of final Cov.

    ``histogram``: rows of ``evidence.coverage_histogram``.  S3 prints only its shares without
    and with complete coverage, of OO and Cov-local.
    """
    draw.need(histogram, "condition", "level", "value", "low", "high", "n")
    levels, names = _levels(histogram, conditions)
    colour, marker = colours(names), markers(names)
    with style():
        figure, axis = plt.subplots(figsize=(WIDTH, 3.2))
        for place, name in enumerate(names):
            rows = histogram[histogram["condition"] == name]
            at = _places(rows["level"], levels) + _dodge(place, names)
            axis.bar(at, rows["value"], 0.7 / len(names), color=colour[name], alpha=0.55)
            draw.points(axis, at, rows, colour[name], marker[name])
            theirs = _their_shares(name)
            at = _places(theirs["level"], levels) + _dodge(place, names)
            draw.points(axis, at, theirs, colour[name], "o", fill="white")
        _level_axis(axis, levels)
        axis.set_ylabel("share of questions")
        count = int(histogram["n"].max())
        draw.note(figure, draw.bars_note(histogram), label=f"final Cov, {count} questions")
        handles = [draw.handle(colour[n], marker[n], display(n)) for n in names]
        draw.legend(figure, [*handles, draw.handle("#222222", "o", _NAMES["theirs"], fill="white")])
    return draw.finish(figure)


def score_by_coverage_figure(scores: pd.DataFrame, conditions: Sequence[str]) -> Figure:
    """Figure 5: F1 of the questions that end at each level of Cov; their number below.

    ``scores``: rows of ``evidence.score_by_coverage``.
    """
    draw.need(scores, "condition", "level", "value", "low", "high", "n")
    levels, names = _levels(scores, conditions)
    colour, marker = colours(names), markers(names)
    with style():
        figure, axis = plt.subplots(figsize=(WIDTH, 3.3))
        for place, name in enumerate(names):
            rows = scores[scores["condition"] == name].sort_values("level")
            at = _places(rows["level"], levels) + 0.6 * _dodge(place, names)
            draw.points(axis, at, rows, colour[name], marker[name], line=True)
        counts = {
            level: " / ".join(
                str(int(part["n"].sum()))
                for name in names
                for part in [scores[(scores["condition"] == name) & (scores["level"] == level)]]
            )
            for level in levels
        }
        _level_axis(axis, levels, counts)
        axis.set_ylabel("F1")
        axis.set_ylim(-0.03, 1.03)
        order = " / ".join(map(display, names))
        note = "bars: 95 % bootstrap intervals over questions; groups hold different questions"
        draw.note(figure, note, label=f"final Cov, below: questions of {order}")
        draw.legend(
            figure, [draw.handle(colour[n], marker[n], display(n), line="-") for n in names]
        )
    return draw.finish(figure)


def evidence_rows(summary: pd.DataFrame) -> Figure:
    """What every condition retrieves: Cov, shares without and with all evidence, searches.

    ``summary``: condition, metric, value, low, high, n, seeds.
    """
    draw.need(summary, "condition", "metric", "value", "low", "high")
    titles = {
        "cov": "mean Cov", "no_evidence": "questions without\nevidence",
        "all_evidence": "questions with\nall evidence", "searches": "searches per\nquestion",
    }  # fmt: skip
    present = set(summary["condition"])
    names = [name for name in ("base", *CONDITIONS) if name in present]
    rows = summary.assign(mark="ours")
    panels = [RowPanel(title, rows[rows["metric"] == m]) for m, title in titles.items()]
    return condition_rows(names, panels, {"ours": (ACCENT, "s", None)}, draw.bars_note(rows))


def by_set_figure(differences: pd.DataFrame) -> Figure:
    """F1 minus outcome-only of every condition in every question set, as a table of colours.

    ``differences``: rows of ``credit_study.differences`` by ``question_set`` with the reference
    "oo".  Bold are differences whose interval excludes 0.
    """
    draw.need(differences, "condition", "question_set", "metric", "value", "low", "high", "n")
    rows = differences[differences["reference"] == OUTCOME_ONLY]
    rows = rows[rows["metric"] == "f1"]
    sets = [s for s in (*SETS, ALL) if s in set(rows["question_set"])]
    names = [n for n in CONDITIONS if n in set(rows["condition"])]
    shape = {"index": "condition", "columns": "question_set"}
    value, low, high = (
        rows.pivot(**shape, values=c).reindex(index=names, columns=sets).astype(float)
        for c in ("value", "low", "high")
    )
    count = rows.groupby("question_set")["n"].max()
    bound = max(float(np.nanmax(np.abs(value.to_numpy()))), 0.01)
    with style():
        figure, axis = plt.subplots(figsize=(WIDTH, 1.5 + 0.3 * len(names)))
        sns.heatmap(
            value, cmap="PuOr_r", vmin=-bound, vmax=bound, ax=axis, linewidths=0.5,
            cbar_kws={"label": "F1 minus OO"},
        )  # fmt: skip
        for (y, x), number in np.ndenumerate(value.to_numpy()):
            if np.isfinite(number):
                shown = low.iloc[y, x] > 0 or high.iloc[y, x] < 0
                colour = "white" if abs(number) > 0.6 * bound else "#222222"
                axis.text(
                    x + 0.5, y + 0.5, decimal(number, 2, signed=True), ha="center", va="center",
                    fontsize=7, color=colour, weight="bold" if shown else "normal",
                )  # fmt: skip
        labels = [f"{s.replace(', ', ' ')} ({count[s]})" for s in sets]
        axis.set_xticks(np.arange(len(sets)) + 0.5, labels, rotation=35, ha="right", fontsize=7.5)
        axis.set_yticks(np.arange(len(names)) + 0.5, map(display, names), rotation=0)
        axis.set(xlabel="", ylabel="")
        draw.note(figure, "bold: the 95 % interval excludes 0; in brackets: questions")
    return draw.finish(figure)


def _theirs(rows: pd.DataFrame) -> pd.DataFrame:
    cells = [published_difference(r) for r in rows.to_dict("records")]
    values = [np.nan if cell is None else cell.value for cell in cells]
    return rows.assign(value=values, low=np.nan, high=np.nan, mark="theirs")


def _pair(record: Mapping) -> str:
    return f"{display(record['condition'])} - {display(record['reference'])}"


def _questions(group: str) -> str:
    return "all questions" if group == ALL else f"{group} questions"


def _levels(frame: pd.DataFrame, conditions: Sequence[str]) -> tuple[list[float], list[str]]:
    names = [name for name in conditions if name in set(frame["condition"])]
    draw.need(frame if names else frame.iloc[:0], "condition")
    part = frame[frame["condition"].isin(names)]
    return sorted(set(part["level"]) | {0.0, 1.0}), names


def _places(values: pd.Series, levels: Sequence[float]) -> np.ndarray:
    return np.array([levels.index(value) for value in values], dtype=float)


def _dodge(place: int, names: Sequence[str]) -> float:
    return 0.7 * ((place + 0.5) / len(names) - 0.5)


def _their_shares(condition: str) -> pd.DataFrame:
    method = "OO" if condition == OUTCOME_ONLY else display(condition)
    keys = {"panel": "coverage distribution", "series": method}
    found = {
        level: published_cell("retrieval_credit", "figures", metric=metric, **keys)
        for level, metric in (
            (0.0, "questions with zero coverage"), (1.0, "questions with complete coverage"),
        )
    }  # fmt: skip
    rows = [(level, cell.value / 1200) for level, cell in found.items() if cell]
    return pd.DataFrame(rows, columns=["level", "value"]).assign(low=np.nan, high=np.nan)


def _level_axis(axis, levels: Sequence[float], below: Mapping[float, str] = {}) -> None:  # noqa: B006
    names = {0.2: "1/5", 0.25: "1/4", 0.3333: "1/3", 0.4: "2/5", 0.5: "1/2", 0.6: "3/5",
             0.6667: "2/3", 0.75: "3/4", 0.8: "4/5", 0.0: "0", 1.0: "1"}  # fmt: skip
    labels = [names.get(level, f"{level:.2f}") for level in levels]
    if below:
        labels = [f"{label}\n{below[level]}" for label, level in zip(labels, levels)]
    axis.set_xticks(range(len(levels)), labels)
    axis.set_xlim(-0.6, len(levels) - 0.4)
    axis.grid(axis="x", visible=False)
