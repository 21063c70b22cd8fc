"""S1's Figure 5: do readouts keep reading a policy that moves, and how far did it move?

Tables A18, A20 and A21 are in ``refit_tables``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..evaluation.co_evolution import FROZEN_EVALUATOR, FROZEN_HEADS, READINGS, REFITTED
from ..inference.bootstrap import Interval
from . import drawing as draw
from .claims import claim
from .comparisons import Setting, paper_setting, setting_difference
from .published import Published, published_cell
from .style import WIDTH, colours, markers, style
from .tables import NOT_PUBLISHED, Cell, Column, Table

PAPER = "search_g1"
LAST_PUBLISHED = 150  # the update at which S1 prints the AUCs of its Figure 5
_SERIES = {FROZEN_EVALUATOR: "Frozen", FROZEN_HEADS: "Frozen", REFITTED: "Refit"}
_MODELS = {"": "not stated", "all": "Qwen2.5-3B- and 7B-Instruct"}


def fidelity_figure(fidelity: pd.DataFrame, moved: pd.DataFrame) -> Figure:
    """AUC of D and of B by checkpoint in three readings (Figure 5), and how far the policy moved.

    Parameters
    ----------
    fidelity : of ``evaluation.co_evolution.fidelity``.
    moved : of ``evaluation.co_evolution.moved``; KL to the start and change of EM below.
    """
    draw.need(fidelity, "readout", "reading", "step", "value", "low", "high", "seeds", "absent")
    draw.need(moved, "step", "metric", "value", "low", "high")
    readouts = list(dict.fromkeys(fidelity["readout"]))
    with style():
        figure, axes = plt.subplots(
            2, 2, figsize=(WIDTH, 5.3), sharex=True, height_ratios=(3, 1.7), squeeze=False
        )
        axes[0][1].sharey(axes[0][0])  # before anything is drawn: limits follow both panels
        for axis, name in zip(axes[0], readouts):
            _readings(axis, fidelity[fidelity["readout"] == name])
            axis.set_title(name)
        axes[0][0].set_ylabel("held-out AUC")
        for axis, metric, label in (
            (axes[1][0], "kl", "KL to the start\n(nats per token)"),
            (axes[1][1], "em_change", "EM minus\nEM at the start"),
        ):
            own = moved[moved["metric"] == metric].sort_values("step")
            draw.points(axis, own["step"], own, "#444444", "o", line=True)
            draw.zero_line(axis)
            axis.set_ylabel(label)
            draw.round_ticks(axis.xaxis, 7, integer=True)
            draw.round_ticks(axis.yaxis, 4)
        looks = colours(READINGS), markers(READINGS)
        handles = [draw.handle(looks[0][r], looks[1][r], r, line="-") for r in READINGS]
        chance = draw.handle("#777777", "", "chance", line="--")
        draw.legend(figure, [*handles, chance])
        draw.note(figure, _figure_note(fidelity), "policy updates")
    return draw.finish(figure)


def _readings(axis: Axes, frame: pd.DataFrame) -> None:
    width = float(np.ptp(frame["step"])) or 1.0
    for place, reading in enumerate(READINGS):
        own = frame[frame["reading"] == reading].sort_values("step")  # NaN breaks the line
        at = own["step"] + 0.014 * width * (place - 1)
        look = colours(READINGS)[reading], markers(READINGS)[reading]
        draw.points(axis, at, own, *look, line=True)
    axis.axhline(0.5, color="#777777", linestyle="--", linewidth=1)


def _figure_note(fidelity: pd.DataFrame) -> str:
    seeds = int(fidelity["seeds"].max())
    kept = f"; AUC: mean of {seeds} seeds, questions resampled" if seeds > 1 else ""
    below = " (below: seeds, then questions)" if seeds > 1 else ""
    lines = [f"bars: 95 % bootstrap intervals over questions{kept}{below}"]
    missing = fidelity[fidelity["value"].isna()]
    if len(missing):
        told = []
        for (readout, step, why), own in missing.groupby(["readout", "step", "absent"], sort=False):
            every = len(own) == len(READINGS)
            which = "" if every else " " + " and ".join(own["reading"])
            told.append(f"{readout.split(',')[0]}{which} at {step} ({why})")
        lines += textwrap.wrap("not measured: " + "; ".join(told), 105)
    return "\n".join(lines[:5])


def fidelity_claims(fidelity: pd.DataFrame) -> list[str]:
    """A sentence for each readout and frozen reading at the last checkpoint, by its interval."""
    last = fidelity[fidelity["step"] == fidelity["step"].max()]
    sentences = []
    for row in last.dropna(subset="gap").to_dict("records"):
        gap = {"value": row["gap"], "low": row["gap_low"], "high": row["gap_high"], "n": row["n"]}
        where = f"{row['readout']}, update {row['step']}"
        sentences.append(claim(gap, REFITTED, row["reading"], "AUC", where))
    return sentences


def figure_5_table(fidelity: pd.DataFrame, setting: Setting) -> Table:
    """Figure 5 in numbers; S1 prints its last checkpoint only, as a range over D, B and models."""
    last = fidelity["step"].max()
    rows = []
    for record in fidelity.to_dict("records"):
        row: dict[str, Cell] = {key: record[key] for key in ("readout", "reading", "step")}
        row |= {"auc": cell_or_why(record), "sd": record["sd"]}
        partly = f" ({record['absent']})" if record["seeds"] and record["absent"] else ""
        row["seeds"] = f"{record['seeds']}{partly}"
        row["positives"] = f"{record['positives']} of {record['rows']}"
        gap = Interval(record["gap"], record["gap_low"], record["gap_high"], record["n"])
        refitted = record["reading"] == REFITTED
        row["gap"] = "reference" if refitted else gap
        if record["step"] == last:
            series = _SERIES[record["reading"]]
            row |= _range("auc", series, f"AUC at checkpoint {LAST_PUBLISHED}")
            if not refitted:
                metric = f"AUC gap at checkpoint {LAST_PUBLISHED}"
                row |= _range("gap", "Refit minus Frozen", metric)
        rows.append(row)
    columns = [
        Column("readout", "readout"), Column("reading", "reading"), Column("step", "update"),
        Column("auc", "held-out AUC"), Column("sd", "SD over seeds", 3, "one seed"),
        Column("seeds", "seeds"), Column("positives", "rows with the label"),
        Column("gap", "refitted minus this reading"),
        Column("auc_min", f"S1: lowest AUC, update {LAST_PUBLISHED}", 3, NOT_PUBLISHED),
        Column("auc_max", f"S1: highest AUC, update {LAST_PUBLISHED}", 3, NOT_PUBLISHED),
        Column("gap_min", "S1: least gap", 3, NOT_PUBLISHED),
        Column("gap_max", "S1: greatest gap", 3, NOT_PUBLISHED),
    ]  # fmt: skip
    spread = published_cell(
        PAPER, "figures", figure="5", series="Frozen", bound="max", metric="AUC SD over seeds"
    )
    caption = (
        "S1 Figure 5: held-out AUC [95 % bootstrap interval over questions] (questions), mean over "
        "seeds. Frozen evaluator: heads and snapshot of the start read the rollouts of the "
        "checkpoint; frozen heads: the same heads on the checkpoint's own states; refitted: "
        "fitted and read at the checkpoint. S1's frozen estimators are one of the first two, it "
        "does not say which; its values are ranges over both readouts, two models and two data "
        f"sets, SD over four seeds at most {spread.printed}. {setting_note(setting, _cell_5())}"
    )
    return Table("s1_figure_5", caption, columns, rows)


def _cell_5() -> Published | None:
    """One of Figure 5's printed values, for its setting."""
    return published_cell(
        PAPER, "figures", figure="5", series="Refit", bound="max",
        metric=f"AUC at checkpoint {LAST_PUBLISHED}",
    )  # fmt: skip


def _range(key: str, series: str, metric: str) -> dict[str, Published | None]:
    return {
        f"{key}_{bound}": published_cell(
            PAPER, "figures", figure="5", series=series, bound=bound, metric=metric
        )
        for bound in ("min", "max")
    }


def cell_or_why(record: Mapping) -> Cell:
    """The interval of a row, or what its column ``absent`` says."""
    return plain_cell(record) if np.isfinite(record["value"]) else record["absent"]


def plain_cell(record: Mapping) -> Interval:
    """The interval of a row, of whose seeds a column or the caption speaks."""
    return Interval(record["value"], record["low"], record["high"], int(record["n"]))


def setting_note(setting: Setting, cell: Published) -> str:
    """What differs between S1's results and ours, for captions; ``cell`` is one of S1's."""
    theirs = paper_setting(PAPER, cell)
    theirs = replace(theirs, model=_MODELS.get(theirs.model, theirs.model))
    return (
        f"Ours: model {setting.model}; corpus {setting.corpus}; budget {setting.budget}. S1: "
        f"{setting_difference(setting, theirs)}."
    )
