"""The Search-G1 study: hand values, and SciPy where a value is not one to count."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import cohen_kappa_score

from workbench.errors import WorkbenchError
from workbench.evaluation import search_g1_credit as credit
from workbench.evaluation import search_g1_overheads as costs
from workbench.evaluation import search_g1_study as study
from workbench.methods.shaping import Shaping
from workbench.readouts.config import CalibrationConfig

CHAIN = "2-hop, chain"


@pytest.fixture(scope="module")
def made():
    """The frames of tests/reporting/search_g1_frames.py."""
    path = Path(__file__).parents[1] / "reporting" / "search_g1_frames.py"
    spec = importlib.util.spec_from_file_location("search_g1_frames_of_study", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def values(frame, *keys):
    return frame.set_index(list(keys))["value"].sort_index()


class TestBehaviour:
    def test_hand_values_over_all_and_on_chains(self, made):
        rows = study.with_category(made.grounded(("search_g1",)))
        found = study.behaviour(rows, study.MAIN, ["questions"], made.CONFIG)
        value = values(found, "condition", "questions", "metric")
        full = value["search_g1", "all"]
        assert full["em"] == 5 / 8 and full["searches"] == 2
        assert full["tc"] == pytest.approx((1 + 0.3 + 0.6 + 0.6) / 4)
        assert full["d_inv"] == 1 / 4 and full["d_inv_all"] == full["unclassified"] == 1 / 5
        chain = value["search_g1", CHAIN]
        assert chain["em"] == 0.5 and chain["tc"] == pytest.approx(0.45) and chain["d_inv"] == 0.5
        counted = found.set_index(["condition", "questions", "metric"])
        assert counted.loc[("search_g1", "all", "tc"), ["n", "seeds"]].tolist() == [4, 2]
        assert counted.loc[("base", "all", "em"), ["n", "seeds"]].tolist() == [8, 1]
        assert ("search_r1", "all", "em") not in counted.index

    def test_nothing_correct_has_no_tc_and_no_count(self, made):
        frame = made.grounded(("search_g1",))
        zero = frame.assign(**{c: 0.0 for c in ("em", "tc_in", "classified", "correct_searched")})
        found = study.behaviour(zero, None, (), made.CONFIG).set_index(["condition", "metric"])
        assert np.isnan(found.loc[("base", "tc"), "value"]) and found.loc[("base", "tc"), "n"] == 0
        assert found.loc[("base", "em"), "value"] == 0

    def test_classified_counts_add_seeds_up(self, made):
        counts = study.classified_counts(made.grounded(("search_g1",)))
        assert counts == {("base",): "2 of 3", ("search_g1",): "8 of 10"}

    def test_differences_are_paired_with_full_search_g1(self, made):
        found = study.against_full(made.grounded(), config=made.CONFIG)
        assert list(dict.fromkeys(found["condition"])) == list(study.VARIANTS[1:])
        row = found.set_index(["condition", "metric"]).loc[("search_g1_frozen", "searches")]
        assert row[["value", "low", "high", "n", "seeds"]].tolist() == [1, 1, 1, 8, 2]
        em = found.set_index(["condition", "metric"]).loc[("search_g1_frozen", "em")]
        assert em["value"] == -1 / 8 and em["low"] < em["value"] < em["high"]

    def test_without_the_reference_or_a_variant_there_is_nothing_to_compare(self, made):
        assert study.against_full(made.grounded(("search_g1_frozen",))).empty
        assert study.against_full(made.grounded(("search_g1",))).empty

    def test_a_frame_of_something_else_is_refused(self):
        with pytest.raises(WorkbenchError, match="condition"):
            study.of_conditions(pd.DataFrame({"item_id": ["q"]}), None)
        with pytest.raises(WorkbenchError, match="decoded"):
            study.greedy_rows(pd.DataFrame({"item_id": ["q"]}))


class TestClosedBook:
    def test_every_question_counts_once(self, made):
        found = study.closed_book_shares(made.grounded()).set_index(["stratum", "label"])
        assert found["n"].to_dict() == {
            (s, k): n
            for s, n in (("all", 8), ("1-hop, memorised", 4), (CHAIN, 4))
            for k in ("exact", "sufficient", "disagree")
        }
        assert found.loc["all", "count"].tolist() == [2, 3, 1]
        assert found.loc["1-hop, memorised", "count"].tolist() == [1, 2, 1]
        whole = found.loc[("all", "exact")]
        # Wilson: (p + z²/2n ± z √(pq/n + z²/4n²)) / (1 + z²/n) with p = 1/4, n = 8
        assert whole["low"] == pytest.approx(0.0715, abs=1e-4)
        assert whole["high"] == pytest.approx(0.5907, abs=1e-4)

    def test_two_labels_of_a_question_and_none_are_refused(self, made):
        frame = made.grounded(("search_g1",))
        other = frame.assign(base_closed_exact=1 - frame["base_closed_exact"])
        with pytest.raises(WorkbenchError, match="or two"):
            study.closed_book_shares(pd.concat([frame, other]))
        with pytest.raises(WorkbenchError, match="8 questions"):
            study.closed_book_shares(frame.assign(base_closed_exact=np.nan))
        with pytest.raises(WorkbenchError, match="base_closed_exact"):
            study.closed_book_shares(frame.drop(columns="base_closed_exact"))


class TestTiedGroups:
    def test_one_seed_pools_steps_by_their_groups(self, made):
        found = study.tied_groups({"oo": made.history()}).set_index(["kind", "metric"])
        share = found.loc[("all_correct", "credited")]  # (8 of 16 groups · 0.5 + 4 · 1) / 12
        assert share["value"] == pytest.approx(8 / 12) and share["n"] == 12
        assert [share["low"], share["high"]] == pytest.approx([0.3906, 0.8619], abs=1e-4)
        sd = found.loc[("all_correct", "reward_sd")]
        assert sd["value"] == pytest.approx(0.2) and np.isnan(sd["low"])
        assert found.loc[("all_wrong", "credited"), ["value", "n"]].tolist() == [0, 4]

    def test_several_seeds_have_t_intervals_cut_at_what_is_possible(self, made):
        found = study.tied_groups({"x": made.history(seeds=3)}).set_index(["kind", "metric"])
        share = found.loc[("all_wrong", "credited")]  # 0, 1/4, 1/2: t(2) = 4.3027
        assert share[["value", "low", "n", "seeds"]].tolist() == [0.25, 0.0, 12, 3]
        assert share["high"] == pytest.approx(0.25 + 4.3027 * 0.25 / np.sqrt(3), abs=1e-4)

    def test_a_training_without_such_groups_is_no_zero(self, made):
        history = made.history(correct=(0.0, 0.0))
        assert "all_correct_credited" not in history.columns
        found = study.tied_groups({"x": history}).set_index(["kind", "metric"])
        row = found.loc[("all_correct", "credited")]
        assert np.isnan(row["value"]) and row["n"] == 0

    def test_logs_that_do_not_tell_are_refused(self, made):
        with pytest.raises(WorkbenchError, match="all_correct_groups"):
            study.tied_groups({"x": made.history().drop(columns="all_correct_groups")})
        silent = made.history().assign(all_correct_credited=np.nan)
        with pytest.raises(WorkbenchError, match="does not say"):
            study.tied_groups({"x": silent})


class TestReliability:
    def test_hand_values(self, made):
        found = credit.reliability(made.labels(), ["strict", "paired_sampling"], None, made.CONFIG)
        value = values(found, "condition", "construction", "metric")
        strict = value["base", "strict"]
        assert strict["agreement"] == pytest.approx(0.9)
        assert strict["reference_rate"] == pytest.approx(0.6)
        assert strict["rate"] == pytest.approx(0.7)
        assert strict["rate_delta"] == pytest.approx(0.1)
        assert strict["kappa"] == pytest.approx(0.36 / 0.46)
        assert np.isnan(strict["sign_flips"])
        counts = found.set_index(["condition", "construction", "metric"])
        row = counts.loc[("search_g1", "strict", "kappa")]
        assert row[["n", "seeds", "rollouts"]].tolist() == [10, 2, 20]
        assert row["low"] < row["value"] <= row["high"]
        assert value["search_g1", "paired_sampling"]["agreement"] == pytest.approx(0.8)

    def test_kappa_is_that_of_scikit_learn(self, made):
        rng = np.random.default_rng(0)
        frame = made.labels(("base",), questions=60)
        frame["changed"] = rng.random(len(frame)) < 0.4
        found = credit.reliability(frame, ["strict"], None, made.CONFIG)
        one, two = (
            frame[frame["construction"] == c].sort_values("item_id")["changed"]
            for c in ("deletion", "strict")
        )
        kappa = values(found, "metric")["kappa"]
        assert kappa == pytest.approx(cohen_kappa_score(one, two))

    def test_constant_labels_have_no_kappa(self, made):
        frame = made.labels(("base",)).assign(changed=True)
        found = credit.reliability(frame, ["strict"], None, made.CONFIG)
        assert np.isnan(values(found, "metric")["kappa"])
        assert values(found, "metric")["agreement"] == 1

    def test_a_construction_that_was_not_made_has_no_row(self, made):
        frame = made.labels(("base",))
        frame = frame[frame["construction"] != "strict"]
        assert credit.reliability(frame, ["strict"], None, made.CONFIG).empty

    def test_two_labels_of_a_rollout_are_refused(self, made):
        frame = made.labels(("base",))
        with pytest.raises(WorkbenchError, match="two labels"):
            credit.reliability(pd.concat([frame, frame]), ["strict"])

    def test_advantages_of_a_label_by_hand(self):
        changed, correct = np.array([1, 0, 0, 1]), np.array([1, 1, 1, 0])
        found = credit.label_advantages(changed, correct, ["g"] * 4, Shaping())
        rewards = np.array([1.6, 1.0, 1.0, 0.05])
        assert found == pytest.approx((rewards - rewards.mean()) / rewards.std(ddof=1), abs=1e-5)

    def test_signs_are_compared_where_there_are_groups(self, made):
        frame = pd.DataFrame({
            "condition": "base", "training_seed": -1, "item_id": "q0", "group": "q0",
            "sample": [0, 1, 0, 1], "correct": True,
            "construction": ["deletion", "deletion", "strict", "strict"],
            "changed": [True, False, False, True],
        })  # fmt: skip
        found = credit.reliability(frame, ["strict"], Shaping(), made.CONFIG)
        assert values(found, "metric")["sign_flips"] == 1


class TestCreditUsefulness:
    def test_credit_for_support_for_nothing_and_none(self, made):
        deltas = dict.fromkeys(study.CREDIT_CONTROLS, 1e-6)
        found = credit.credit_usefulness(made.groups(), deltas, made.CONFIG)
        value = values(found, "condition", "metric")
        assert value["search_g1"]["em"] == 5 / 8
        assert value["search_g1"]["support"] == pytest.approx(0.75)
        for metric in ("pearson", "spearman", "within"):
            assert value["search_g1"][metric] == pytest.approx(1)
            assert value["search_g1_permuted"][metric] == pytest.approx(0, abs=1e-9)
            assert np.isnan(value["search_g1_cost_only"][metric])
        rows = found.set_index(["condition", "metric"])
        assert rows.loc[("search_g1", "within"), ["n", "seeds", "rollouts"]].tolist() == [5, 2, 40]

    def test_easy_questions_make_a_pooled_correlation_but_none_within(self, made):
        frame = made.groups(("search_g1",))
        # Questions differ in support, rollouts of a question do not; credit is by question, too.
        hard = frame["item_id"].isin(["q0", "q1"])
        wrong = hard & (frame["sample"] > 1)
        frame = frame.assign(
            em=frame["em"] * ~wrong, cov=np.where(hard, 1.0, 0.5), all_evidence=hard.astype(float),
            reward=np.where((frame["em"] == 1) & ~wrong, 1.0, 0.05),
        )  # fmt: skip
        found = values(credit.credit_usefulness(frame, {"search_g1": 1e-6}, made.CONFIG), "metric")
        assert found["pearson"] > 0.99 and np.isnan(found["within"])

    def test_rewards_are_needed(self, made):
        frame = made.groups(("search_g1",)).drop(columns="reward")
        with pytest.raises(WorkbenchError, match="reward"):
            credit.credit_usefulness(frame, {"search_g1": 1e-6})

    def test_nothing_correct_leaves_only_em(self, made):
        frame = made.groups(("search_g1",)).assign(em=0.0)
        found = values(credit.credit_usefulness(frame, {"search_g1": 1e-6}, made.CONFIG), "metric")
        assert found["em"] == 0 and found.drop("em").isna().all()

    @pytest.mark.parametrize("ranked, scipy", [(False, pearsonr), (True, spearmanr)])
    def test_resamples_are_what_scipy_says_of_the_repeated_rows(self, ranked, scipy):
        rng = np.random.default_rng(1)
        x = rng.integers(0, 6, 40).astype(float)
        y = x + rng.integers(0, 8, 40)
        weights = rng.integers(0, 4, (5, 40)).astype(float)
        found = credit.weighted_correlation(x, y, weights, ranked)
        for got, counts in zip(found, weights.astype(int)):
            wanted = scipy(np.repeat(x, counts), np.repeat(y, counts)).statistic
            assert got == pytest.approx(wanted)

    def test_questions_are_resampled_and_counted(self, made):
        rng = np.random.default_rng(2)
        x = rng.normal(size=60)
        y = x + rng.normal(size=60)
        found = credit.correlation(x, y, [f"q{i % 20}" for i in range(60)], config=made.CONFIG)
        assert found.n == 20 and found.low < found.value < found.high
        assert found.value == pytest.approx(pearsonr(x, y).statistic)


class TestOverheads:
    CALIBRATION = CalibrationConfig(every=10, questions=150, rollouts=5)

    def test_schedules_multiply_the_profiles(self):
        schedule = costs.refit_schedule
        assert schedule({"interval": 0.4, "questions": 1.0}, self.CALIBRATION) == (4, 150)
        assert schedule({"interval": 1.0, "questions": 0.3333}, self.CALIBRATION) == (10, 50)
        assert schedule({"interval": None}, self.CALIBRATION) == (None, 150)

    def test_hand_values_of_one_seed(self, made):
        found = costs.overheads(made.rounds(), made.history(), 10, 5)
        value = values(found, "metric")
        wanted = {
            "rounds": 2, "failed": 1, "extra_decodes": 32, "bound": 36, "decode_share": 32 / 800,
            "decode_share_all": 62 / 800, "token_share": 400 / 40000,
            "token_share_all": 1900 / 40000, "interval": 2, "seconds_round": 7,
            "seconds_updates": 100, "score_share": 0.1,
        }  # fmt: skip
        assert value.to_dict() == pytest.approx(wanted)
        assert found["low"].isna().all() and (found["n"] == 1).all()

    def test_several_seeds_have_an_interval(self, made):
        found = costs.overheads(made.rounds(3), made.history(seeds=3), 10, 5)
        assert (found["n"] == 3).all() and not found["low"].isna().any()

    def test_frozen_readouts_have_no_rounds(self, made):
        none = pd.DataFrame(columns=costs.COLUMNS)
        history = made.history().drop(columns="refits_installed")
        found = costs.overheads(none, history, None, 5).set_index("metric")
        assert found.loc["rounds", "value"] == 0 and found.loc["decode_share", "n"] == 0
        assert np.isnan(found.loc["interval", "value"])

    def test_later_installations_follow_one_another(self, made):
        history = pd.DataFrame({
            "seed": 0, "step": range(1, 13), "rollouts": 1.0, "generated_tokens": 1.0,
            "seconds": 1.0, "seconds_score": 0.0,
            "refits_installed": [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2],
        })  # fmt: skip
        found = costs.overheads(made.rounds(), history, 4, 5)
        assert values(found, "metric")["interval"] == 4

    def test_reports_and_failures_are_read_and_unfinished_rounds_are_not(self, tmp_path):
        for number, (file, told) in enumerate(
            (("report.json", {"cost": {"rollouts": 30, "seconds": 7.5}, "heads": {}}),
             ("failed.json", {"reason": "one class only"}), (None, None)), 1,
        ):  # fmt: skip
            place = tmp_path / "seed-0" / "calibration" / f"round-{number:04d}"
            place.mkdir(parents=True)
            if file:
                (place / file).write_text(json.dumps(told))
        calibration = tmp_path / "seed-0" / "calibration"
        (calibration / "round-0001" / "evaluator.safetensors").touch()
        # Ended between its report and its evaluator: a failure, whatever the report says.
        (calibration / "round-0002" / "report.json").write_text('{"cost": {"rollouts": 9}}')
        found = costs.calibration_rounds(tmp_path, [0, 1])
        assert found["number"].tolist() == [1, 2]
        assert found["failed"].tolist() == ["", "one class only"]
        assert found["rollouts"].tolist()[0] == 30 and tuple(found.columns) == costs.COLUMNS
        assert costs.calibration_rounds(tmp_path, [1]).empty
        for broken in ('{"cost": {', "[1]", '{"cost": null}', "{}"):
            (calibration / "round-0001" / "report.json").write_text(broken)
            with pytest.raises(WorkbenchError, match="round-0001/report.json: no report"):
                costs.calibration_rounds(tmp_path, [0])
