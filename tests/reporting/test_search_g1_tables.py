"""Tables of the Search-G1 study: ours by hand, S1's as printed, and what is missing says so."""

import importlib.util
import sys
from pathlib import Path

import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.readouts.config import CalibrationConfig
from workbench.reporting import search_g1_audits as audits
from workbench.reporting import search_g1_boundary as boundary
from workbench.reporting import search_g1_costs as costs
from workbench.reporting import search_g1_tables as tables

CALIBRATION = CalibrationConfig(every=10, questions=150, rollouts=5)
FEW = ("search_g1",)
CHAIN = "2-hop, chain"
NOT = "not trained in this profile"


@pytest.fixture(scope="module")
def made():
    path = Path(__file__).parent / "search_g1_frames.py"
    spec = importlib.util.spec_from_file_location("search_g1_frames_of_tables", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(table, *index):
    """As readers see it, by its first columns."""
    frame = table.readable()
    return frame.set_index(list(frame.columns[: len(index) or 1]))


class TestMain:
    def test_table_3_has_both_conditionings_and_s1_beside_chains(self, made):
        table = tables.table_3(made.grounded(), made.SETTING, made.CONFIG)
        shown = read(table, 1, 2)
        row = shown.loc[("Search-G1", "all")]
        assert row["EM"].startswith("0.625 [") and row["EM"].endswith("(8 x 2)")
        assert row["TC"].startswith("0.625 [") and row["TC"].endswith("(4 x 2)")
        assert row["D-Inv (of classified)"].startswith("0.250")
        assert row["D-Inv (of correct searched)"].startswith("0.200")
        assert row["rollouts classified, of correct searched"] == "8 of 10"
        assert row["S1 3B: EM"] == "2Wiki only"
        chain = shown.loc[("Search-G1", CHAIN)]
        assert chain["TC"].startswith("0.450") and chain["S1 3B: TC"] == "0.972"
        assert chain["S1 7B: D-Inv"] == "0.026"
        base = shown.loc[("Prompted Search (base policy)", CHAIN)]
        assert base["S1 7B: Search/Q"] == "2.892" and base["TC"] == "0.300 [no interval] (1)"
        for words in ("2 M decoder", "Qwen2.5-3B-Instruct (3B) or Qwen2.5-7B-Instruct (7B)",
                      "Wikipedia 2018", "2WikiMultiHopQA", "seeds, then questions"):  # fmt: skip
            assert words in table.caption

    def test_table_3_of_a_profile_without_search_r1(self, made):
        table = tables.table_3(made.grounded(FEW), made.SETTING, made.CONFIG)
        row = read(table, 1, 2).loc[("Search-R1 (EM + direct bonus)", CHAIN)]
        assert row["EM"] == row["TC"] == NOT and row["S1 3B: EM"] == "0.267"
        assert "Not trained in this profile: Search-R1 (EM + direct bonus)." in table.caption

    def test_nothing_right_says_so_and_is_not_untrained(self, made):
        frame = made.grounded(FEW)
        zero = frame.assign(**{c: 0.0 for c in ("em", "tc_in", "classified", "correct_searched")})
        row = read(tables.table_4(zero, made.SETTING, made.CONFIG)).loc["Search-G1"]
        assert row["TC"] == "nothing correct to classify"
        assert row["unclassified share"] == "no correct searched rollout"
        assert row["EM"].startswith("0.000")

    def test_table_4_has_eight_variants(self, made):
        shown = read(tables.table_4(made.grounded(), made.SETTING, made.CONFIG))
        assert len(shown) == 8 and shown.index[7] == "Shuffled searched gate"
        assert shown.loc["Frozen readouts", "Search/Q"].startswith("3.000")
        assert shown.loc["w/o both necessity terms", "S1 7B: TC"] == "0.881"
        assert "not" not in "".join(shown.iloc[:, :4].to_numpy().ravel())

    def test_differences_carry_verdicts_and_s1s_differences(self, made):
        table = tables.table_4_differences(made.evaluated(), made.SETTING, made.CONFIG)
        shown = read(table, 1, 2)
        row = shown.loc[("Frozen readouts", "searches per question")]
        assert row["minus Search-G1"] == "1.000 [1.000, 1.000] (8 x 2)" and row["shown"] == "higher"
        assert row["S1 3B: minus Search-G1"] == "0.413"  # 3.225 - 2.812
        em = shown.loc[("Frozen readouts", "EM")]
        assert em["minus Search-G1"].startswith("-0.125 [")
        assert em["shown"] == "no difference shown"
        assert em["S1 7B: minus Search-G1"] == "-0.009"  # 0.466 - 0.475

    def test_differences_name_what_was_not_trained(self, made):
        frame = made.evaluated(("search_g1", "search_g1_frozen"))
        shown = read(tables.table_4_differences(frame, made.SETTING, made.CONFIG), 1, 2)
        assert shown.loc[("w/o search cost", "EM"), "shown"] == NOT
        alone = made.evaluated(("search_g1_frozen",))
        shown = read(tables.table_4_differences(alone, made.SETTING, made.CONFIG), 1, 2)
        assert shown.loc[("Frozen readouts", "EM"), "shown"] == "Search-G1 was not trained"

    def test_a13_reads_coefficients_off_the_conditions(self, made):
        frame = made.grounded(("search_g1", "search_g1_no_cost"))
        shown = read(tables.table_a13(frame, made.SETTING, made.CONFIG))
        assert shown[["λ_g", "η"]].to_numpy().tolist() == [
            ["0.4", "0.02"], ["0.6", "0.02"], ["0.8", "0.02"], ["0.6", "0.00"], ["0.6", "0.05"],
        ]  # fmt: skip
        assert shown.loc["w/o search cost", "S1 3B: Search/Q"] == "3.576"
        assert shown.loc["w/o search cost", "EM minus Search-G1"].startswith("-0.125 [")
        assert shown.loc["Search-G1", "EM minus Search-G1"] == "reference"
        assert shown.loc["λ_g = 0.8", "EM"] == shown.loc["λ_g = 0.8", "EM minus Search-G1"] == NOT
        assert shown.loc["λ_g = 0.8", "S1 7B: EM"] == "0.486"

    def test_a14_shows_the_profiles_own_k_and_m(self, made):
        shown = read(tables.table_a14(made.grounded(), CALIBRATION, made.SETTING, made.CONFIG))
        assert shown[["K (updates)", "M (questions)", "S1: K", "S1: M"]].to_numpy().tolist() == [
            ["never", "none", "never", "none"], ["20", "150", "50", "300"],
            ["10", "150", "25", "300"], ["4", "150", "10", "300"], ["10", "50", "25", "100"],
        ]  # fmt: skip
        assert (
            shown.loc["K × 0.4 (S1: K = 10)", "S1 3B: EM"] == "0.333"
            and shown.loc["K × 0.4 (S1: K = 10)", "EM"] == NOT
        )
        assert shown.loc["M / 3 (S1: M = 100)", "S1 7B: Search/Q"] == "3.368"


class TestBoundary:
    def test_a3_counts_our_strata_and_s1s_data_sets(self, made):
        shown = read(boundary.table_a3(made.grounded(FEW), made.SETTING))
        assert list(shown.index[:3]) == ["all", "1-hop, memorised", CHAIN]
        row = shown.loc["all"]
        assert row["exact CB-correct"] == "2 (25.0 %)" and row["exact CB-wrong"] == "6 (75.0 %)"
        assert row["exact CB-correct, share"] == "0.250 [0.071, 0.591]"
        assert row["inclusion necessary"] == "5 (62.5 %)"
        assert row["exact and inclusion disagree"] == "1 (12.5 %)"
        theirs = shown.loc["S1: NQ"]
        assert theirs["S1: exact CB-correct"] == "512 (14.18 %)"
        assert theirs["S1: exact and inclusion disagree"] == "249 (6.90 %)"
        assert theirs["inclusion necessary"] == "not among our questions"
        assert shown.loc["S1: MuSiQue", "S1: exact and inclusion disagree"] == "not in S1"

    def test_a4_and_a5_are_one_table(self, made):
        shown = read(boundary.table_a4(made.evaluated(), made.SETTING, made.CONFIG), 1, 2)
        row = shown.loc[("Search-G1", "1-hop, single")]
        assert row["EM"].startswith("0.750") and row["observation tokens/Q"].startswith("180.0")
        assert row["S1 3B: generated tokens/Q"] == "84.8" and row["S1 7B: EM"] == "0.512"
        book = shown.loc[("Base (base policy, closed book)", "all")]
        assert book["Search/Q"].startswith("0.000") and book["S1 3B: EM"] == "NQ only"

    def test_a7_conditions_on_each_policys_own_knowledge(self, made):
        shown = read(boundary.table_a7(made.grounded(), made.SETTING, made.CONFIG))
        row = shown.loc["Search-G1"]
        assert row["CB-EM"] == "1.000 [1.000, 1.000] (2 x 2)"
        assert row["share known"].startswith("0.250") and row["Over-S"].startswith("1.000")
        assert shown.loc["Prompted Search (base policy)", "Over-S"].startswith("0.000")
        assert row["S1 7B: All-S/Q"] == "0.905"
        none = made.grounded(FEW).assign(own_closed_exact=0.0)
        shown = read(boundary.table_a7(none, made.SETTING, made.CONFIG))
        assert shown.loc["Search-G1", "CB-EM"] == "no question known"

    def test_a8_takes_any_at_3_from_samples_and_the_rest_from_greedy(self, made):
        grounded, groups = made.grounded(), made.groups()
        shown = read(boundary.table_a8(grounded, groups, made.SETTING, made.CONFIG), 1, 2)
        row = shown.loc[("Search-G1", "all")]
        assert row["CBw-EM"].startswith("0.500") and row["CBw-EM"].endswith("(6 x 2)")
        assert row["Any@3"].startswith("0.500")
        assert shown.loc[("Search-G1", CHAIN), "Any@3"].startswith("0.333")
        assert shown.loc[("Search-G1", CHAIN), "S1 3B: Any@3"] == "0.435"

    def test_a8_says_what_was_not_sampled_or_cannot_be_wrong(self, made):
        grounded, groups = made.grounded(), made.groups(("base",))
        shown = read(boundary.table_a8(grounded, groups, made.SETTING, made.CONFIG), 1, 2)
        assert shown.loc[("Search-G1", "all"), "Any@3"] == "not sampled"
        known = grounded.assign(base_closed_exact=1.0)
        shown = read(boundary.table_a8(known, made.groups(), made.SETTING, made.CONFIG), 1, 2)
        assert set(shown.loc[("Search-G1", "all")].iloc[:4]) == {"no such question"}
        few = made.groups()
        with pytest.raises(WorkbenchError, match="fewer than 3"):
            boundary.table_a8(grounded, few[few["sample"] < 2], made.SETTING, made.CONFIG)

    def test_a15_divides_by_searches(self, made):
        shown = read(boundary.table_a15(made.grounded(), made.SETTING, made.CONFIG), 1, 2)
        assert shown.loc[("Search-G1", "all"), "EM per search"].startswith("0.312")  # 5 / 16
        assert shown.loc[("Search-G1", CHAIN), "S1 3B: EM per marker"] == "0.225"
        never = made.grounded(FEW).assign(searches=0.0)
        shown = read(boundary.table_a15(never, made.SETTING, made.CONFIG), 1, 2)
        assert shown.loc[("Search-G1", "all"), "EM per search"] == "nobody searched"


class TestAudits:
    def test_a6_by_hand_and_s1_below(self, made):
        shown = read(audits.table_a6(made.labels(), made.SETTING, made.CONFIG))
        row = shown.loc["Search-G1"]
        assert row["agreement"].startswith("0.900") and row["κ"].startswith("0.783")
        assert row["reliance rate"].startswith("0.600")
        assert row["strict reliance rate"].startswith("0.700")
        assert row["rollouts"] == "20 of 2 seeds"
        assert shown.loc["S1: NQ", "S1 7B: kappa"] == "0.897"

    def test_a16_says_why_no_sign_can_flip(self, made):
        shown = read(audits.table_a16(made.labels(), made.SETTING, made.CONFIG), 1, 2)
        crn = shown.loc[("Search-G1", "CRN paired sampling")]
        assert crn["agreement"].startswith("0.800") and crn["positive-rate Δ"].startswith("0.200")
        assert crn["advantage-sign flips"].startswith("not computed")
        assert crn["S1 3B: Adv.-sign flip"] == "0.04"
        assert shown.loc[("Search-G1", "Paired-greedy"), "agreement"].startswith("1.000")

    def test_labels_of_no_rollout_leave_s1(self, made):
        none = made.labels().iloc[:0]
        assert list(read(audits.table_a6(none, made.SETTING)).index) == ["S1: NQ", "S1: HotpotQA"]
        shown = read(audits.table_a16(none, made.SETTING), 1, 2)
        assert shown.loc[("Search-G1", "Paired-greedy"), "κ"] == "not labelled"

    def test_a17_names_the_strongest_log_prob_control(self, made):
        table = audits.table_a17(made.controls(), made.SETTING)
        shown = read(table)
        best = shown.loc["answer log-prob, least (strongest log-prob control)"]
        assert best["S1 3B: NQ"] == "0.638" and best["D minus it"] == "0.170"
        assert best["the two intervals"] == "do not overlap" and best["against 0.5"] == "above"
        overlap = shown.loc["answer-evidence overlap"]
        assert overlap["the two intervals"] == "overlap" and overlap["S1 3B: NQ"] == "0.589"
        assert shown.loc["answer log-prob, mean", "S1 3B: NQ"] == "not in S1"
        assert shown.loc["D, reliance", "S1 3B: 2WikiMultiHopQA"] == "0.871"
        assert shown.loc["D on shuffled labels", "against 0.5"] == "not told apart"
        assert "holds no score of single rollouts" in table.caption

    def test_a17_shows_paired_gaps_where_they_are_given(self, made):
        gap = {"predictor": "search count", "value": 0.3, "low": 0.2, "high": 0.4, "n": 120}
        table = audits.table_a17(made.controls(), made.SETTING, pd.DataFrame([gap]))
        row = next(r for r in table.rows if r["predictor"] == "search count")
        assert (row["minus"].value, row["minus"].low, row["minus"].high) == (0.3, 0.2, 0.4)
        assert "both AUCs from the same draws" in table.caption

    def test_a17_knows_the_rows_of_the_calibration_room(self):
        from workbench.readouts import tables as rows

        assert audits.RELIANCE == rows.RELIANCE

    def test_a17_without_matched_rows_and_without_d(self, made):
        frame = made.controls()
        less = frame[frame["predictor"] != audits.MATCHED]
        shown = read(audits.table_a17(less, made.SETTING))
        assert shown.loc[audits.MATCHED, "AUC"] == "too few rollouts could be matched"
        with pytest.raises(WorkbenchError, match="D, reliance"):
            audits.table_a17(frame.iloc[1:], made.SETTING)

    def test_a22_shows_support_and_where_it_comes_from(self, made):
        table = audits.table_a22(made.groups(), made.SETTING, made.CONFIG)
        shown = read(table)
        row = shown.loc["Search-G1"]
        assert row["annotated support"].startswith("0.750")
        assert row["r within questions"] == "1.000 [1.000, 1.000] (5 x 2)"
        assert row["S1 3B: EM"] == "0.370 (sd 0.011)"
        assert row["S1 3B: advantage-support r"] == "0.41 [0.28, 0.52]"
        assert row["correct searched answers"] == "40"
        assert shown.loc["Cost only", "ρ (Spearman)"] == "undefined: no variation"
        assert "human annotation" in table.caption and "question graph" in table.caption
        few = read(audits.table_a22(made.groups(FEW), made.SETTING, made.CONFIG))
        assert few.loc["Cost only", "EM"] == few.loc["Cost only", "correct searched answers"] == NOT


class TestCosts:
    def test_overheads_beside_s1s_bound(self, made):
        frozen = made.history().drop(columns="refits_installed")
        none = pd.DataFrame(columns=made.rounds().columns)
        rounds = {"search_g1": made.rounds(3), "search_g1_k_10": made.rounds()}
        histories = {"search_g1": made.history(seeds=3), "search_g1_k_10": made.history()}
        table = costs.overheads_table(
            rounds | {"search_g1_frozen": none}, histories | {"search_g1_frozen": frozen},
            CALIBRATION, made.SETTING, {"search_g1": (900, 1000)},
        )  # fmt: skip
        shown = read(table)
        row = shown.loc["Search-G1"]
        assert row["bound M(1 + G)"] == "36 [36, 36] (3)"
        assert row["extra decodes / rollouts of K updates"] == "0.040 [0.040, 0.040] (3)"
        assert row["scoring: forward / rollout tokens"] == "0.90 (900 / 1000 tokens)"
        assert row["S1: of the rollouts of K updates"] == "0.11 to 0.12"
        assert row["S1: extra decodes at most"] == "1.8k"
        faster = shown.loc["K × 0.4 (S1: K = 10)"]
        assert faster["K"] == "4" and faster["extra decodes / rollouts of K updates"][:5] == "0.100"
        assert faster["S1: scoring"] == "not published"
        assert shown.loc["Frozen readouts", "bound M(1 + G)"] == "frozen readouts: no refit"

    def test_figure_4_as_a_table_with_its_mirror(self, made):
        histories = {
            "oo": made.history(credited=(0.0, 0.0)), "search_g1": made.history(seeds=3),
            "search_g1_frozen": made.history(correct=(0.0, 0.0)),
        }  # fmt: skip
        shown = read(costs.tied_groups_table(histories, made.SETTING))
        correct = "all-correct groups: share with non-zero advantages"
        wrong = "all-wrong groups: share with non-zero advantages"
        assert shown.iloc[1][correct] == "0.667 [0.667, 0.667] (3)"
        assert shown.iloc[1][wrong] == "0.250 [0.000, 0.871] (3)"
        assert shown.iloc[1]["all-correct groups (number)"] == "36"
        assert shown.iloc[0][correct] == "0.000 [0.000, 0.242] (12)"  # z² / (12 + z²)
        assert shown.iloc[2][correct] == "no all-correct group"
        assert shown.loc["Search-G1", "S1 NQ: share, all-correct"] == "0.466 to 0.487"
        assert shown.iloc[0]["S1 NQ: share, all-correct"] == "0 (EM only)"
        assert shown.loc["Frozen readouts", "S1 NQ: share, all-correct"] == "not in S1"


def test_every_table_is_whole_and_can_be_saved(made, tmp_path):
    grounded, evaluated, groups = made.grounded(), made.evaluated(), made.groups()
    about = (made.SETTING, made.CONFIG)
    histories = {"search_g1": made.history(seeds=3), "oo": made.history(credited=(0.0, 0.0))}
    all_tables = (
        tables.table_3(grounded, *about), tables.table_4(grounded, *about),
        tables.table_4_differences(evaluated, *about), tables.table_a13(grounded, *about),
        tables.table_a14(grounded, CALIBRATION, *about), boundary.table_a3(grounded, made.SETTING),
        boundary.table_a4(evaluated, *about), boundary.table_a7(grounded, *about),
        boundary.table_a8(grounded, groups, *about), boundary.table_a15(grounded, *about),
        audits.table_a6(made.labels(), *about), audits.table_a16(made.labels(), *about),
        audits.table_a17(made.controls(), made.SETTING), audits.table_a22(groups, *about),
        costs.overheads_table({"search_g1": made.rounds(3)}, histories, CALIBRATION, made.SETTING),
        costs.tied_groups_table(histories, made.SETTING),
    )  # fmt: skip
    assert len({table.name for table in all_tables}) == 16
    for table in all_tables:
        assert len(table.save(tmp_path)) == 3
        assert table.caption.endswith(".") and "  " not in table.caption, table.name
        cells = table.readable().to_numpy().ravel()
        assert all(cell.strip() and "nan" not in cell for cell in cells), table.name
