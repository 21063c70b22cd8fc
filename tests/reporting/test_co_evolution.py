"""Figure 5 and Tables A18, A20, A21: what is drawn, ours beside theirs, and what is missing."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from workbench.errors import WorkbenchError
from workbench.evaluation.co_evolution import (
    FIDELITY_COLUMNS,
    FROZEN_EVALUATOR,
    FROZEN_HEADS,
    READINGS,
    REFITTED,
)
from workbench.evaluation.refreshes import AT_REFRESH, DIFFERENCE, QUIET
from workbench.readouts.tables import RELIANCE, SUFFICIENCY
from workbench.reporting import co_evolution, refit_tables
from workbench.reporting.comparisons import Setting
from workbench.reporting.style import colours

SETTING = Setting("2 M decoder", "World Factbook, BM25", "30 steps of 16 x 5 rollouts, 3 runs")
STEPS = (0, 10, 20, 30)
LOSS = {FROZEN_EVALUATOR: 0.004, FROZEN_HEADS: 0.01, REFITTED: 0.0}


def fidelity(seeds=3, absent=()):
    rows = []
    for readout, top in ((RELIANCE, 0.88), (SUFFICIENCY, 0.8)):
        for reading in READINGS:
            for step in STEPS:
                value, gap = top - LOSS[reading] * step, LOSS[reading] * step
                row = {
                    "readout": readout, "reading": reading, "step": step, "value": value,
                    "low": value - 0.05, "high": value + 0.05, "n": 150,
                    "seeds": seeds if step else 1, "sd": 0.01 if step and seeds > 1 else np.nan,
                    "rows": 400, "positives": 190, "gap": gap, "gap_low": gap - 0.02,
                    "gap_high": gap + 0.02, "absent": "",
                }  # fmt: skip
                if reading == REFITTED:
                    row |= dict.fromkeys(("gap", "gap_low", "gap_high"), np.nan)
                if (readout, step) in absent:
                    row |= dict.fromkeys(("value", "low", "high", "gap", "gap_low", "gap_high"),
                                         np.nan)  # fmt: skip
                    row |= {"seeds": 0, "n": 0, "absent": "all 400 labels are 1"}
                rows.append(row)
    return pd.DataFrame(rows, columns=FIDELITY_COLUMNS)


def moved():
    rows = [
        {"step": step, "metric": metric, "value": size * step, "low": size * step - 0.01,
         "high": size * step + 0.01, "n": 150, "seeds": 3, "p": 0.01}
        for metric, size in (("kl", 0.003), ("em", 0.02), ("em_change", 0.005))
        for step in STEPS
    ]  # fmt: skip
    return pd.DataFrame(rows)


def lines_of(axis, colour):
    return [
        line for line in axis.get_lines()
        if to_hex(line.get_color()) == colour and line.get_marker() not in ("None", "", None)
    ]  # fmt: skip


class TestFigure:
    def test_three_readings_over_chance_and_the_way_of_the_policy(self):
        figure = co_evolution.fidelity_figure(fidelity(), moved())
        top, below = figure.axes[:2], figure.axes[2:]
        assert [axis.get_title() for axis in top] == [RELIANCE, SUFFICIENCY]
        for axis, start in zip(top, (0.88, 0.8)):
            assert axis.get_ylim()[0] < 0.45 and axis.get_ylim()[1] > 0.93  # bars of both panels
            for reading in READINGS:
                (line,) = lines_of(axis, colours(READINGS)[reading])
                expected = [start - LOSS[reading] * step for step in STEPS]
                assert line.get_ydata() == pytest.approx(expected)
                assert np.abs(line.get_xdata() - np.array(STEPS)).max() < 1
            assert any(list(line.get_ydata()) == [0.5, 0.5] for line in axis.get_lines())
        assert "KL to the start" in below[0].get_ylabel()
        (line,) = lines_of(below[1], "#444444")
        assert line.get_ydata() == pytest.approx([0.005 * step for step in STEPS])
        words = [text.get_text() for text in figure.legends[0].get_texts()]
        assert words == [*READINGS, "chance"]
        assert "mean of 3 seeds" in figure.get_supxlabel()

    def test_what_could_not_be_measured_is_said_and_not_drawn(self):
        figure = co_evolution.fidelity_figure(fidelity(1, [(RELIANCE, 20)]), moved())
        (line,) = lines_of(figure.axes[0], colours(READINGS)[REFITTED])
        assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False]
        note = figure.get_supxlabel().replace("\n", " ")
        assert note.endswith("not measured: D at 20 (all 400 labels are 1)")
        assert "seeds" not in note.split("not measured")[0]

    def test_one_reading_that_is_missing_is_named(self):
        frame = fidelity(1)
        heads = (frame["reading"] == FROZEN_HEADS) & (frame["readout"] == RELIANCE)
        frame.loc[heads & (frame["step"] == 30), ["value", "absent"]] = np.nan, "too few rows"
        note = co_evolution.fidelity_figure(frame, moved()).get_supxlabel()
        assert note.endswith("not measured: D frozen heads at 30 (too few rows)")

    def test_the_base_policy_alone_can_be_drawn(self):
        table, way = fidelity(), moved()
        figure = co_evolution.fidelity_figure(table[table["step"] == 0], way[way["step"] == 0])
        assert len(figure.axes) == 4 and not plt.get_fignums()

    def test_frames_without_their_columns_are_refused(self):
        with pytest.raises(WorkbenchError, match="a figure needs"):
            co_evolution.fidelity_figure(fidelity().drop(columns="absent"), moved())


class TestFigure5Table:
    def test_published_ranges_stand_at_the_last_checkpoint(self):
        table = co_evolution.figure_5_table(fidelity(), SETTING)
        shown = table.readable().set_index(["readout", "reading", "update"])
        last = shown.loc[(RELIANCE, FROZEN_HEADS, "30")]
        assert last["held-out AUC"] == "0.580 [0.530, 0.630] (150)"
        assert last["refitted minus this reading"] == "0.300 [0.280, 0.320] (150)"
        assert last["S1: lowest AUC, update 150"] == "0.482"
        assert last["S1: highest AUC, update 150"] == "0.608"
        assert (last["S1: least gap"], last["S1: greatest gap"]) == ("0.283", "0.304")
        assert last["rows with the label"] == "190 of 400"
        refitted = shown.loc[(RELIANCE, REFITTED, "30")]
        assert refitted["S1: highest AUC, update 150"] == "0.891"
        assert refitted["refitted minus this reading"] == "reference"
        early = shown.loc[(RELIANCE, FROZEN_HEADS, "10")]
        assert early["S1: lowest AUC, update 150"] == "not published"
        assert shown.loc[(RELIANCE, REFITTED, "0"), "SD over seeds"] == "one seed"
        assert "2 M decoder" in table.caption and "0.021" in table.caption

    def test_a_cell_without_a_value_says_why(self):
        table = co_evolution.figure_5_table(fidelity(1, [(RELIANCE, 20)]), SETTING)
        shown = table.readable().set_index(["readout", "reading", "update"])
        assert shown.loc[(RELIANCE, REFITTED, "20"), "held-out AUC"] == "all 400 labels are 1"
        table.numbers(), table.markdown(), table.latex()

    def test_seeds_that_are_missing_are_named(self):
        frame = fidelity()
        frame.loc[frame["step"] == 30, ["seeds", "absent"]] = 2, "seed 1: all 400 labels are 1"
        shown = co_evolution.figure_5_table(frame, SETTING).readable()
        assert set(shown.loc[shown["update"] == "30", "seeds"]) == {
            "2 (seed 1: all 400 labels are 1)"
        }

    def test_claims_follow_the_intervals(self):
        frame = fidelity()
        heads = (frame["reading"] == FROZEN_HEADS) & (frame["readout"] == SUFFICIENCY)
        frame.loc[heads, ["gap", "gap_low", "gap_high"]] = 0.01, -0.01, 0.03
        claims = co_evolution.fidelity_claims(frame)
        assert len(claims) == 4
        assert claims[1].startswith(
            "AUC (D, reliance, update 30): refitted is higher than frozen heads: +0.300"
        )
        assert "no difference between refitted and frozen heads is shown" in claims[3]


def distribution():
    rows = []
    for number, seed, step in ((0, -1, 0), (1, 0, 10), (1, 1, 10), (2, 0, 20)):
        for metric in refit_tables._A18:
            value = 90.0 if metric in ("hard_s", "hard_n", "predicted_n") else 0.6
            rows.append(
                {"seed": seed, "step": step, "number": number, "metric": metric, "value": value,
                 "low": 0.5, "high": 0.7, "n": 150, "absent": ""}
            )  # fmt: skip
    frame = pd.DataFrame(rows)
    one = (frame["number"] == 2) & (frame["metric"] == "auc")
    frame.loc[one, ["value", "low", "high"]] = np.nan
    frame.loc[one, "absent"] = "all 150 labels are 1"
    return frame


def test_table_a18():
    table = refit_tables.table_a18(distribution(), SETTING, "150 validation questions")
    shown = table.readable()
    assert shown[["round", "training seed", "update"]].to_numpy().tolist() == [
        ["0", "all (start)", "0"], ["1", "0", "10"], ["1", "1", "10"], ["2", "0", "20"],
    ]  # fmt: skip
    assert shown.loc[1, "mean n"] == "0.600 [0.500, 0.700]" and shown.loc[1, "hard S"] == "90"
    assert shown.loc[1, "S1: hard S"] == "115" and shown.loc[3, "S1: AUC"] == "0.888"
    assert shown.loc[3, "AUC"] == "all 150 labels are 1"
    assert shown.loc[1, "S1: predicted N, share"] == "0.617"
    assert set(shown.loc[0, [c for c in shown.columns if c.startswith("S1")]]) == {"not in S1"}
    assert "150 validation questions" in table.caption and "Qwen2.5-3B-Instruct" in table.caption


def test_table_a20():
    quality = pd.DataFrame(
        [{"readout": RELIANCE, "value": 0.8, "low": 0.7, "high": 0.9, "n": 150, "brier": 0.15,
          "ece": 0.06}]
    )  # fmt: skip
    drift = pd.DataFrame(
        [{"readout": RELIANCE, "value": 0.03, "low": 0.01, "high": 0.05, "n": 140, "seeds": 3,
          "refits": 6, "absent": ""},
         {"readout": SUFFICIENCY, "value": np.nan, "low": np.nan, "high": np.nan, "n": 0,
          "seeds": 0, "refits": 0, "absent": "no evaluator was replaced"}]
    )  # fmt: skip
    table = refit_tables.table_a20(quality, drift, SETTING)
    shown = table.readable().set_index("readout")
    assert shown.loc[RELIANCE, "AUC"] == "0.800 [0.700, 0.900] (150)"
    assert shown.loc[RELIANCE, "scale drift across refits"] == "0.030 [0.010, 0.050] (140)"
    assert shown.loc[SUFFICIENCY, "scale drift across refits"] == "no evaluator was replaced"
    assert shown.loc[SUFFICIENCY, "Brier"] == "not measured"
    assert shown.loc[SUFFICIENCY, "S1: AUC"] == "0.80" and shown.loc[RELIANCE, "S1: ECE"] == "0.05"
    assert "not stated" in table.caption


def shift(value):
    rows = [
        {"number": number, "refreshes": 6, "metric": metric, "value": value * times,
         "low": 0.0, "high": 0.2, "n": 150, "seeds": 3, "p": 0.01}
        for number in ("all", 1)
        for metric, times in (("reward", 1), ("correct_reward", 2), ("advantage", 4))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def jump(value, quiet=True):
    rows = [
        {"when": when, "metric": "outcome_mean", "count": 6, "value": size, "low": size - 0.01,
         "high": size + 0.01, "n": 3, "seeds": 3, "p": np.nan}
        for when, size in ((AT_REFRESH, value), (QUIET, 0.02), (DIFFERENCE, value - 0.02))
    ]  # fmt: skip
    if not quiet:
        for row in rows[1:]:
            row |= {"value": np.nan, "low": np.nan, "high": np.nan, "n": 0, "count": 0}
    return pd.DataFrame(rows)


def test_table_a21():
    empty = shift(0.1).iloc[:0]
    table = refit_tables.table_a21(
        {"search_g1": shift(0.05), "search_g1_k_10": shift(0.1), "search_g1_frozen": empty},
        {"search_g1": jump(0.03), "search_g1_k_10": jump(0.04, False),
         "search_g1_frozen": jump(0.0)},
        {"search_g1": 10, "search_g1_k_10": 4, "search_g1_frozen": None}, SETTING, 3,
    )  # fmt: skip
    shown = table.readable().set_index("S1: K")
    assert shown.index.tolist() == ["10", "25", "50", "not in S1"]
    ours = shown.loc["25"]
    assert ours["K, updates"] == "10" and ours["refreshes, all seeds"] == "6"
    assert ours["reward shift"] == "0.050 [0.000, 0.200] (150 x 3)"
    assert ours["shift of advantages"].startswith("0.200 ")
    assert ours["jump at a refresh"] == "0.030 [0.020, 0.040] (3)"
    assert (ours["S1: reward shift"], ours["S1: performance jump"]) == ("0.06", "0.01")
    assert shown.loc["10", "jump without one"] == "no such window"
    assert shown.loc["10", "S1: reward shift"] == "0.12"
    assert set(shown.loc["50"].iloc[1:9]) == {"not trained in this profile"}
    frozen = shown.loc["not in S1"]
    assert frozen["K, updates"] == "no refits"
    assert frozen["reward shift"] == "no evaluator was replaced"
    assert "of the 3 before|" in table.caption and "outcome_mean" in table.caption
    table.numbers(), table.latex()


def test_table_a21_of_a_profile_without_any():
    shown = refit_tables.table_a21({}, {}, {}, SETTING, 3).readable()
    assert shown["S1: K"].tolist() == ["10", "25", "50"]
    assert set(shown["reward shift"]) == {"not trained in this profile"}
