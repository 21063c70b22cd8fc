"""Tables of the retrieval-credit study: ours beside theirs, and what is missing says so."""

import numpy as np
import pandas as pd
import pytest

from workbench.evaluation.credit_study import CONDITIONS
from workbench.methods.reversals import alpha_check
from workbench.questions.audits import GraphAudit, SplitOverlap
from workbench.reporting import audit_tables, credit_tables
from workbench.reporting.published_audit import Check, checks_table, retrieval_credit_checks


def by_condition(table):
    return table.readable().set_index(table.columns[0].title)


class TestScores:
    def test_table_8_has_all_thirteen_and_what_s3_prints(self, credit):
        table = by_condition(credit_tables.table_8(credit.scores(), credit.SETTING, "greedy"))
        assert len(table) == 14 and table.index[0] == "base policy"
        assert table.loc["Cov-local", "multi-hop F1"] == "0.440 [0.390, 0.490] (120 x 3)"
        assert table.loc["Cov-local", "S3: multi-hop F1"] == "0.5107"
        assert table.loc["outcome only (F1)", "S3: all F1"] == "0.5125"
        assert table.loc["AM-flat-only", "S3: single-hop F1"] == "0.5607"
        assert set(table.loc["base policy"].iloc[3:]) == {"not in S3"}

    def test_a_profile_with_two_conditions_says_what_is_missing(self, credit):
        made = credit_tables.table_8(credit.scores(("oo", "search_r1")), credit.SETTING, "greedy")
        table = by_condition(made)
        assert list(table.index[-2:]) == ["AM-flat-only", "Search-R1"]
        assert table.loc["Cov-local", "all F1"] == "not trained in this profile"
        assert table.loc["Cov-local", "S3: all F1"] == "0.5434"
        assert "Not trained in this profile: Cov-scalar, " in made.caption
        assert (
            "Not trained"
            not in credit_tables.table_8(credit.scores(), credit.SETTING, "greedy").caption
        )

    def test_captions_state_the_difference_in_setting(self, credit):
        caption = credit_tables.table_8(credit.scores(), credit.SETTING, "greedy").caption
        for words in ("2 M decoder", "Qwen3-4B-Instruct-2507", "KILT Wikipedia 2019",
                      "seven data sets", "greedy", "seeds, then questions"):  # fmt: skip
            assert words in caption

    def test_table_1_counts_questions_in_its_head(self, credit):
        table = by_condition(
            credit_tables.table_1(
                credit.scores(key="question_set", levels=credit.SETS), credit.SETTING, "greedy"
            )
        )
        assert table.columns[:4].tolist() == [
            "1-hop, single (n = 120)", "1-hop, single, named (n = 120)", "2-hop, chain (n = 120)",
            "Avg (n = 120)",
        ]  # fmt: skip
        assert table.loc["Cov-local", "Avg (n = 120)"] == "0.44 [0.39, 0.49]"
        assert table.loc["Cov-local", "S3: 2WikiMultiHopQA"] == "0.6282"
        assert table.loc["Cov-local", "S3: Avg"] == "0.5434"
        assert table.loc["Cov-permute", "S3: NQ"] == "not published"
        frame = credit.scores(key="question_set", levels=credit.SETS)
        em = credit_tables.table_1(frame, credit.SETTING, "greedy", "em", "s3_em")
        assert em.name == "s3_em" and not any("S3" in c.title for c in em.columns)

    def test_wide_tables_are_scaled_in_latex(self, credit):
        table = credit_tables.table_1(
            credit.scores(key="question_set", levels=credit.SETS), credit.SETTING, "greedy"
        )
        text = table.latex()
        assert r"\resizebox{\linewidth}{!}{\begin{tabular}" in text and r"\end{tabular}}" in text
        assert (
            "resizebox"
            not in credit_tables.table_8(credit.scores(), credit.SETTING, "greedy").latex()
        )


class TestDifferences:
    def test_theirs_are_differences_of_two_cells(self, credit):
        table = credit_tables.contrasts_table(
            credit.contrasts(), credit.SETTING, "greedy"
        ).readable()
        rows = table.set_index(["condition", "minus", "questions"]).sort_index()
        assert rows.loc[("Cov-local", "outcome only (F1)", "multi-hop"), "S3"] == "0.0481"
        assert rows.loc[("AM-local", "AM-permute", "single-hop"), "S3"] == "0.0135"
        assert rows.loc[("Cov-local", "Cov-no-flat", "all"), "S3"] == "0.0032"
        assert rows.loc[("Cov-local", "Cov-no-flat", "all"), "figure"] == "3c"
        assert set(table["shown"]) == {"better", "worse", "no difference shown"}

    def test_only_f1_has_a_published_difference(self, credit):
        frame = credit.contrasts(("oo", "cov_local")).assign(metric="cov")
        table = credit_tables.contrasts_table(frame, credit.SETTING, "greedy").readable()
        assert set(table["S3"]) == {"not in S3"} and set(table["metric"]) == {"Cov"}

    def test_no_contrast_is_an_empty_table(self, credit):
        empty = credit.contrasts(("oo", "cov_local")).iloc[:0]
        assert credit_tables.contrasts_table(empty, credit.SETTING, "greedy").readable().empty

    def test_table_9_shows_both_families_of_sets(self, credit):
        left = credit.intervals(
            {"omitted": o, "condition": "cov_local", "reference": "oo", "metric": "f1", "value": v}
            for o, v in (("none", 0.05), ("2-hop, chain", 0.04))
        )
        table = (
            credit_tables.table_9(left, credit.SETTING, "greedy")
            .readable()
            .set_index("omitted set")
        )
        assert table.loc["none (all)", "S3: Cov-local minus OO"] == "0.0309"
        assert table.loc["2-hop, chain", "Cov-local minus OO"] == "0.040 [-0.010, 0.090] (120 x 3)"
        assert table.loc["2-hop, chain", "AM-local minus OO"] == "not trained in this profile"
        assert table.loc["S3: MuSiQue", "S3: AM-local minus OO"] == "0.0226"
        assert table.loc["S3: MuSiQue", "Cov-local minus OO"] == "not among our sets"


def test_table_3_on_a_group_worked_out_by_hand(credit):
    """F1 1, 0.5, 0.5 with progress 0, 1, 0: only alpha 1 turns a pair, and the second sign."""
    outcome, progress = np.array([1.0, 0.5, 0.5]), {"Cov-Dep": np.array([0.0, 1.0, 0.0])}
    check = alpha_check(outcome, progress, ["q"] * 3).assign(sample="base")
    made = credit_tables.table_3(check, {"base": "base policy"}, credit.SETTING, {"base": 1})
    table = made.readable().set_index(["alpha", "measured"])
    assert table.loc[("1.00", "Rank reversal"), "ours"] == "0.5000"
    assert table.loc[("1.00", "Rank reversal"), "count"] == "1 of 2"
    assert table.loc[("0.25", "Rank reversal"), "count"] == "0 of 2"
    assert table.loc[("0.25", "Rank reversal"), "S3"] == "0.0057"
    assert table.loc[("1.00", "Advantage sign reversal"), "S3"] == "0.0462"
    assert "base policy: 1 groups" in made.caption


class TestAudits:
    def test_table_4_keeps_named_roots_apart(self, credit):
        counts = pd.DataFrame(
            [("1-hop, single", "described", "train", 7), ("1-hop, single", "named", "train", 9),
             ("2-hop, chain", "described", "test", 3)],
            columns=["category", "roots", "split", "questions"],
        )  # fmt: skip
        table = audit_tables.table_4(counts).readable().set_index(["category", "roots"])
        assert len(table) == 22
        single = table.loc[("1-hop, single", "described")]
        assert single.tolist() == ["7", "0", "1200", "150"]
        assert table.loc[("Total", "described")].tolist() == ["7", "3", "14000", "1200"]
        assert table.loc[("Total", "named"), "train"] == "9"
        assert table.loc[("Total", "named"), "S3: train"] == "S3 describes every root"

    def test_table_5_counts_of_ours_and_theirs(self, credit):
        audit = GraphAudit(5, 12, 3, 15, 0, 0, 0, 15, 2, 16, 4)
        rollouts = pd.DataFrame(
            {"roots": ["described"] * 4, "mention_cut": [1.0, 0, 0, 0],
             "cov_above": [1.0, 1, 0, 0], "delayed": [0.0] * 4}
        )  # fmt: skip
        table = audit_tables.table_5({"described": audit}, rollouts).readable().set_index("check")
        ours, theirs = table["ours, described roots"], table["S3 (described roots)"]
        assert set(table["ours, named roots"]) == {"none"}
        assert ours.iloc[:3].tolist() == ["5", "12", "3"]
        assert theirs.iloc[:3].tolist() == ["15200", "44385", "8050"]
        label = "annotation records without full-mention chunk coverage"
        assert (ours[label], theirs[label]) == ("2 of 15", "265 of 52435")
        label = "annotation-chunk pairs with a start but no complete mention"
        assert (ours[label], theirs[label]) == ("4 of 16", "271")
        label = "trajectories with Cov above Cov-Dep at some point"
        assert (ours[label], theirs[label]) == ("2 of 4", "310 of 7680")

    def test_overlap_and_exclusions(self, credit):
        overlap = SplitOverlap(10, 4, 0, 0, 1, 0, 1, 1, 2, 2, 3)
        table = audit_tables.overlap_table({"test": overlap}).readable()
        assert table["ours: test"].tolist() == [
            "10", "4", "0", "0", "1", "0", "1", "1", "2", "2", "3",
        ]  # fmt: skip
        assert table["S3: dev"].tolist() == [
            "14000", "1200", "0", "0", "57", "5", "225", "282", "693", "531", "606",
        ]  # fmt: skip
        left = audit_tables.exclusions_table({"graph shortcut": 6, "odd": 2}, 40).readable()
        rows = dict(zip(left["reason"], zip(left["ours"], left["S3"])))
        assert rows["kept"] == ("40", "86681") and rows["graph shortcut"] == ("6", "297")
        assert rows["missing grounding"] == ("0", "168")
        assert rows["odd"] == ("2", "not a reason in S3")

    def test_evidence_counts_stand_beside_the_means(self, credit):
        metrics = ("cov", "cov_dep", "am", "no_evidence", "all_evidence", "searches")
        summary = credit.intervals(
            {"condition": c, "metric": m, "value": 0.3}
            for c in ("oo", "cov_local")
            for m in metrics
        )
        counts = pd.DataFrame(
            [("oo", 120, 1, 3, 2, 0), ("cov_local", 120, 0, 4, 1, 0)],
            columns=["condition", "rollouts", "lost", "no_answer", "truncated", "cut"],
        )
        table = by_condition(audit_tables.evidence_table(summary, counts, credit.SETTING, "greedy"))
        assert len(table) == 13
        local = table.loc["Cov-local"]
        assert (local["Cov"], local["no answer"]) == ("0.300 [0.250, 0.350] (120 x 3)", "4")
        assert (local["S3: Cov"], local["S3: no evidence (of 1200)"]) == ("0.3197", "551")
        assert table.loc["outcome only (F1)", "S3: truncated (of 1200)"] == "12"
        assert table.loc["AM-local", "rollouts"] == "not trained in this profile"


class TestPublishedArithmetic:
    def test_every_published_number_agrees_with_the_others(self, credit):
        checks = retrieval_credit_checks()
        assert len(checks) > 90 and [c for c in checks if not c.holds] == []
        found = {(c.printed, c.rule[:3]) for c in checks}
        assert (8050.0, "one") in found and (52435.0, "nod") in found

    def test_a_wrong_cell_would_be_seen(self, monkeypatch):
        from workbench.reporting import published_audit

        read = published_audit.published

        def changed(paper, table):
            frame = read(paper, table).copy()
            if table == "8":
                row = (frame["method"] == "Cov-local") & (frame["group"] == "Multi-hop")
                frame.loc[row, "value"] = "51.70"
            return frame

        monkeypatch.setattr(published_audit, "published", changed)
        wrong = [c for c in retrieval_credit_checks() if not c.holds]
        assert {c.where.split(",")[0] for c in wrong} >= {"Table 8", "text"}
        assert "NO" in set(checks_table(wrong).readable()["holds"])

    @pytest.mark.parametrize(("gap", "holds"), [(0.009, True), (0.0101, False)])
    def test_rounding_is_the_only_tolerance(self, gap, holds):
        assert Check("", "", 1.0, 1.0 + gap, 0.01).holds == holds


def test_conditions_have_the_names_of_s3():
    from workbench.reporting.comparisons import PUBLISHED_METHODS
    from workbench.reporting.published import published
    from workbench.reporting.style import display

    theirs = list(dict.fromkeys(published("retrieval_credit", "8")["method"]))
    assert [PUBLISHED_METHODS[c][1] for c in CONDITIONS] == theirs
    assert [display(c) for c in CONDITIONS[1:]] == theirs[1:]
