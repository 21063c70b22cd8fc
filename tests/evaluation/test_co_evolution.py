"""Readouts while the policy moves: made-up states that turn, hand values, and a real policy."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation import shortcut_gaps
from workbench.evaluation.checkpoints import (
    Checkpoint,
    Measured,
    find_checkpoints,
    measure,
    policy_at,
)
from workbench.evaluation.co_evolution import (
    FROZEN_EVALUATOR,
    FROZEN_HEADS,
    REFITTED,
    fidelity,
    moved,
)
from workbench.evaluation.evaluator_series import (
    Readings,
    evaluator_drift,
    necessity_distribution,
    read_rollouts,
)
from workbench.evaluation.refreshes import (
    AT_REFRESH,
    DIFFERENCE,
    QUIET,
    performance_jump,
    refresh_shift,
    reward_changes,
)
from workbench.inference.bootstrap import BootstrapConfig
from workbench.interventions.closed_book import ClosedBookLabels
from workbench.interventions.variants import RelianceLabels
from workbench.methods.shaping import Outcomes, Shaping
from workbench.readouts.calibration import Targets, fit
from workbench.readouts.config import CalibrationConfig
from workbench.readouts.controls import control_scores
from workbench.readouts.evaluator import Scored
from workbench.readouts.metrics import auc, auc_interval, scale_drift
from workbench.readouts.refit import RESULT
from workbench.readouts.selection import (
    SelectionConfig,
    group_folds,
    held_out_scores,
    select,
)
from workbench.readouts.tables import RELIANCE, SUFFICIENCY

BOOTSTRAP = BootstrapConfig(draws=200)
LOGISTIC = SelectionConfig(folds=3, architectures=["logistic"])
QUESTIONS, WIDTH = 60, 8


def made_up(step, seed=-1, turn=False, draw=0, labels=None, log_ratio=0.0, em=None):
    """A checkpoint whose states tell the label along one axis, turned to another with ``turn``.

    Read through the base policy the axis stays what it was.  Two searched rollouts a question.
    """
    rng = np.random.default_rng([draw, 7])
    items = [SimpleNamespace(item_id=f"q{i:02d}") for i in range(QUESTIONS)]
    asked = [item.item_id for item in items for _ in range(2)]
    z = np.arange(QUESTIONS) % 2 == 0
    changed = rng.random(len(asked)) < 0.5

    def states(truth):
        values = rng.normal(size=(len(truth), 1, WIDTH)).astype(np.float32)
        values[:, 0, 0] += 4.0 * truth
        return values

    prompt, commit = states(z), states(changed)
    now = (np.roll(prompt, 1, axis=2), np.roll(commit, 1, axis=2)) if turn else (prompt, commit)
    if labels is not None:
        changed = np.full(len(asked), labels)
    names = tuple(item.item_id for item in items)
    targets = Targets(
        items, [], [SimpleNamespace(item_id=q) for q in asked],
        ClosedBookLabels(names, (None,) * QUESTIONS, z, z),
        RelianceLabels("deletion", (), (), changed), (2,), *now, {},
    )  # fmt: skip
    rollouts = pd.DataFrame(
        {"item_id": asked, "sample": [0, 1] * QUESTIONS, "em": 0.0 if em is None else em,
         "generated": 4, "log_ratio": log_ratio}
    )  # fmt: skip
    folder = None if step == 0 else Path("somewhere")
    return Measured(Checkpoint(seed, step, folder), targets, prompt, commit, rollouts)


def cell(table, readout, reading, step):
    own = (table["readout"] == readout) & (table["reading"] == reading) & (table["step"] == step)
    return table[own].iloc[0]


class TestFidelity:
    @pytest.fixture(scope="class")
    def table(self):
        measured = [made_up(0), made_up(10, 0, turn=True, draw=1)]
        return fidelity(measured, LOGISTIC, BOOTSTRAP)

    @pytest.mark.parametrize("readout", [RELIANCE, SUFFICIENCY])
    def test_turned_states_defeat_frozen_heads_alone(self, table, readout):
        frozen, heads, refitted = (
            cell(table, readout, reading, 10)
            for reading in (FROZEN_EVALUATOR, FROZEN_HEADS, REFITTED)
        )
        assert refitted["value"] > 0.97 and frozen["value"] > 0.97
        assert heads["low"] < 0.5 < heads["high"] and heads["high"] < 0.85
        assert heads["gap_low"] > 0.2
        assert heads["gap"] == pytest.approx(refitted["value"] - heads["value"], abs=1e-12)
        assert frozen["gap_low"] <= 0 <= frozen["gap_high"]

    @pytest.mark.parametrize("readout", [RELIANCE, SUFFICIENCY])
    def test_all_readings_are_one_at_the_start(self, table, readout):
        found = [cell(table, readout, r, 0) for r in (FROZEN_EVALUATOR, FROZEN_HEADS, REFITTED)]
        assert len({f["value"] for f in found}) == 1
        assert all(f[c] == 0 for f in found[:2] for c in ("gap", "gap_low", "gap_high"))
        assert np.isnan(found[2]["gap"])

    def test_values_are_those_of_a_fit_by_hand(self, table):
        start, later = made_up(0), made_up(10, 0, turn=True, draw=1)
        names = [item.item_id for item in start.targets.items]
        z, asked = start.targets.closed_book.sufficient, np.array(later.targets.questions)
        scores = np.full(len(asked), np.nan)
        for rows in group_folds(z, names, 3, 0):
            out = np.isin(asked, [names[row] for row in rows])
            head = select(
                start.targets.commit_states[~out], start.targets.reliance.changed[~out],
                asked[~out], [2], LOGISTIC,
            ).head  # fmt: skip
            scores[out] = head.score(later.targets.commit_states[out, 0])
        found = cell(table, RELIANCE, FROZEN_HEADS, 10)
        truth = later.targets.reliance.changed
        expected = auc_interval(truth, scores, asked, BOOTSTRAP)
        assert found["value"] == pytest.approx(auc(truth, scores), abs=1e-12)
        assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))
        assert found["n"] == QUESTIONS and found["rows"] == 2 * QUESTIONS
        assert found["positives"] == truth.sum()

    def test_seeds_are_averaged_and_their_sd_told(self):
        measured = [made_up(0), *(made_up(10, s, turn=s == 1, draw=1 + s) for s in (0, 1))]
        both = cell(fidelity(measured, LOGISTIC, BOOTSTRAP), RELIANCE, FROZEN_HEADS, 10)
        each = [
            cell(fidelity([measured[0], m], LOGISTIC, BOOTSTRAP), RELIANCE, FROZEN_HEADS, 10)
            for m in measured[1:]
        ]
        values = [one["value"] for one in each]
        assert both["value"] == pytest.approx(np.mean(values))
        assert both["sd"] == pytest.approx(np.std(values, ddof=1)) and both["sd"] > 0.2
        assert both["seeds"] == 2 and np.isnan(each[0]["sd"])

    def test_one_class_at_a_checkpoint_says_so(self):
        measured = [made_up(0), made_up(10, 0, labels=True), made_up(10, 1, draw=3)]
        table = fidelity(measured, LOGISTIC, BOOTSTRAP)
        found = cell(table, RELIANCE, REFITTED, 10)
        assert found["absent"] == "seed 0: all 120 labels are 1" and found["seeds"] == 1
        assert found["value"] > 0.9
        alone = cell(fidelity(measured[:2], LOGISTIC, BOOTSTRAP), RELIANCE, FROZEN_HEADS, 10)
        assert np.isnan(alone["value"]) and alone["absent"] == "all 120 labels are 1"
        assert cell(table, SUFFICIENCY, REFITTED, 10)["absent"] == ""

    def test_one_class_at_the_start_leaves_the_refits(self):
        table = fidelity([made_up(0, labels=False), made_up(10, 0)], LOGISTIC, BOOTSTRAP)
        frozen = cell(table, RELIANCE, FROZEN_EVALUATOR, 10)
        assert frozen["absent"] == "not fitted at the start: all 80 labels are 0"
        assert np.isnan(frozen["gap"]) and cell(table, RELIANCE, REFITTED, 10)["value"] > 0.9

    def test_fewer_questions_than_folds(self):
        many = SelectionConfig(folds=QUESTIONS + 1, architectures=["logistic"])
        table = fidelity([made_up(0)], many, BOOTSTRAP)
        assert table["value"].isna().all()
        assert table["absent"].str.contains("60 questions for 61 folds").all()

    def test_what_cannot_be_compared_is_refused(self):
        start, later = made_up(0), made_up(10, 0)
        with pytest.raises(WorkbenchError, match="0 of 1 checkpoints are at step 0"):
            fidelity([later], LOGISTIC)
        fewer = replace(later, targets=replace(later.targets, items=later.targets.items[:-1]))
        with pytest.raises(WorkbenchError, match="other questions") as error:
            fidelity([start, fewer], LOGISTIC)
        assert error.value.where == "seed 0, step 10"
        with pytest.raises(WorkbenchError, match="other layers"):
            fidelity([start, replace(later, targets=replace(later.targets, layers=(3,)))], LOGISTIC)


def test_moved_by_hand():
    right = np.array([1.0, 0.0] * (QUESTIONS // 2) + [1.0, 1.0] * (QUESTIONS // 2))
    start = made_up(0, em=right)
    end = [made_up(20, s, log_ratio=v, em=1.0, draw=1) for s, v in ((0, 0.4), (1, 0.8))]
    table = moved([start, *end], BOOTSTRAP).set_index(["metric", "step"])
    assert table.loc[("kl", 0), ["value", "low", "high"]].tolist() == [0, 0, 0]
    # 0.4 nats over 4 tokens are 0.1 a token, 0.8 are 0.2: 0.15 over the seeds.
    assert table.loc[("kl", 20), "value"] == pytest.approx(0.15)
    assert (table.loc[("kl", 20), ["low", "high"]] == [0.1, 0.2]).all()
    assert table.loc[("em", 0), "value"] == pytest.approx(0.75)
    assert table.loc[("em", 20), "value"] == 1.0
    change = table.loc[("em_change", 20)]
    assert change["value"] == pytest.approx(0.25) and change["low"] > 0
    assert (change["n"], change["seeds"]) == (QUESTIONS, 2)
    assert table.loc[("em_change", 0), ["value", "low", "high"]].tolist() == [0, 0, 0]


def readings(scores, correct=(1, 1, 0, 1), searches=(1, 1, 1, 0)):
    """Two questions with two rollouts; ``scores`` maps (seed, step) to (d [4], b [2])."""
    questions = ["a", "a", "b", "b"]
    found = Outcomes(
        np.ones(4, bool), np.array(correct, bool), np.array(searches), questions, questions
    )
    scored = {}
    for number, ((seed, step), (d, b)) in enumerate(scores.items()):
        checkpoint = Checkpoint(seed, step, None, number, Path("e"), step + 4)
        searched = found.searches > 0
        scored[checkpoint] = Scored(
            np.array(d) * searched, np.repeat(b, 2).astype(float), searched, 1, 1
        )
    return Readings(found, scored)


class TestSeries:
    SCORES = {
        (-1, 0): ([0.5, 0.5, 0.5, 0], [0.2, 0.8]),
        (0, 10): ([1.0, 0.5, 0.5, 0], [0.4, 0.8]),
        (0, 20): ([1.0, 0.0, 0.5, 0], [0.4, 0.2]),
    }

    def test_scale_drift_by_hand(self):
        table = evaluator_drift(readings(self.SCORES), BOOTSTRAP).set_index("readout")
        # D: means 1/2, 2/3, 1/2; B by question: means 0.5, 0.6, 0.3.
        assert table.loc[RELIANCE, "value"] == pytest.approx(1 / 6)
        assert table.loc[SUFFICIENCY, "value"] == pytest.approx(0.2)
        d = [np.array(s[0][:3]) for s in self.SCORES.values()]
        assert table.loc[RELIANCE, "value"] == pytest.approx(scale_drift(d))
        assert table["refits"].tolist() == [2, 2] and table["seeds"].tolist() == [1, 1]
        assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()

    def test_seeds_share_the_first_evaluator(self):
        first, second = self.SCORES[0, 10], self.SCORES[0, 20]
        scores = {(-1, 0): self.SCORES[-1, 0], (0, 10): first, (1, 10): second}
        table = evaluator_drift(readings(scores), BOOTSTRAP).set_index("readout")
        assert table.loc[SUFFICIENCY, "value"] == pytest.approx((0.1 + 0.2) / 2)
        assert table["refits"].tolist() == [2, 2] and table["seeds"].tolist() == [2, 2]

    def test_nothing_replaced(self):
        alone = evaluator_drift(readings({(-1, 0): self.SCORES[-1, 0]}), BOOTSTRAP)
        assert set(alone["absent"]) == {"no evaluator was replaced"}
        assert alone["value"].isna().all()
        direct = evaluator_drift(readings(self.SCORES, searches=(0, 0, 0, 0)), BOOTSTRAP)
        assert direct["absent"].tolist() == ["no searched rollout", ""]

    def test_reward_changes_by_hand(self):
        shaping = Shaping(lambda_g=0.6, eta=0.02, alpha_cb=0.5)
        changes = reward_changes(readings(self.SCORES), shaping)
        # 1 + 0.6·d·(1 - b) when searched and right, 1 + 0.5·b when direct, wrong ones never move.
        first = changes[changes["number"] == 1]
        assert first["reward"].tolist() == pytest.approx(
            [abs(0.6 * 1.0 * 0.6 - 0.6 * 0.5 * 0.8), abs(0.6 * 0.5 * 0.6 - 0.6 * 0.5 * 0.8), 0, 0]
        )
        second = changes[changes["number"] == 2]
        assert second["reward"].tolist() == pytest.approx([0, 0.6 * 0.5 * 0.6, 0, 0.5 * 0.6])
        assert second["correct_reward"].isna().tolist() == [False, False, True, False]
        assert changes["step"].tolist() == [14] * 4 + [24] * 4
        # Equal rewards of question a become unequal: from 0, 0 to ±1/√2.
        assert first["advantage"].tolist()[:2] == pytest.approx([2**-0.5] * 2, abs=1e-4)

    def test_shift_over_all_refreshes_and_each(self):
        table = refresh_shift(readings(self.SCORES), Shaping(), BOOTSTRAP)
        value = table.set_index(["number", "metric"])["value"]
        assert value["all", "reward"] == pytest.approx((0.12 + 0.06 + 0.18 + 0.3) / 8)
        assert value[1, "reward"] == pytest.approx(0.18 / 4)
        # By question: a has (0.12 + 0.06 + 0.18) / 4, b's right rollout 0.3 / 2.
        assert value["all", "correct_reward"] == pytest.approx((0.09 + 0.15) / 2)
        counts = table.groupby("number")["refreshes"].first()
        assert counts["all"] == 2 and counts[2] == 1
        assert refresh_shift(readings({(-1, 0): self.SCORES[-1, 0]}), Shaping()).empty

    def test_necessity_by_hand(self):
        rng = np.random.default_rng(0)
        b, z = rng.random(40), np.arange(40) < 12
        names = [f"q{i:02d}" for i in range(40)]
        checkpoint = Checkpoint(0, 10, None, 1, Path("e"), 14)
        found = Outcomes(np.ones(40, bool), np.ones(40, bool), np.ones(40, int), names, names)
        series = Readings(found, {checkpoint: Scored(b, b, found.valid, 1, 1)})
        labels = ClosedBookLabels(tuple(names), (None,) * 40, z, z)
        measured = SimpleNamespace(
            checkpoint=checkpoint, targets=SimpleNamespace(closed_book=labels)
        )
        table = necessity_distribution([measured], series, BOOTSTRAP).set_index("metric")
        n, value = 1 - b, table["value"]
        assert (value["hard_s"], value["hard_n"]) == (12, 28)
        assert value["mean"] == pytest.approx(n.mean()) and value["sd"] == pytest.approx(n.std())
        for name, share in (("q10", 0.1), ("median", 0.5), ("q90", 0.9)):
            assert value[name] == pytest.approx(np.quantile(n, share))
        assert value["predicted_n"] == (n >= 0.5).sum()
        assert value["predicted_share"] == pytest.approx((n >= 0.5).mean())
        assert value["auc"] == pytest.approx(auc(z, b)) and set(table["n"]) == {40}
        inside = table.drop(index=["hard_s", "hard_n", "predicted_n"])
        assert ((inside["low"] <= inside["value"]) & (inside["value"] <= inside["high"])).all()
        labels.sufficient[:] = True
        one = necessity_distribution([measured], series, BOOTSTRAP).set_index("metric").loc["auc"]
        assert np.isnan(one["value"]) and one["absent"] == "all 40 labels are 1"
        with pytest.raises(WorkbenchError, match="no labels of the same questions"):
            necessity_distribution([], series, BOOTSTRAP)


class TestJumps:
    def history(self, values, installed, seed=0, metric="outcome_mean"):
        steps = range(1, len(values) + 1)
        count = [sum(s <= step for s in installed) for step in steps]
        return pd.DataFrame(
            {"seed": seed, "step": steps, metric: values, "refits_installed": count}
        )

    def test_a_jump_is_seen_where_the_new_evaluator_has_trained(self):
        # Installed behind update 6: rollouts of step 7 are still the old evaluator's policy.
        values = [0.2] * 7 + [0.7] * 7
        table = performance_jump(self.history(values, [6]), 3).set_index("when")
        assert table.loc[AT_REFRESH, "value"] == pytest.approx(0.5)
        assert table.loc[AT_REFRESH, "count"] == 1
        # Quiet steps are 3 or more away: from 2 on (window 1 to 3) to 3, and from 9 to 10.
        assert table.loc[QUIET, "value"] == 0 and table.loc[QUIET, "count"] == 4
        assert table.loc[DIFFERENCE, "value"] == pytest.approx(0.5)
        assert np.isnan(table.loc[DIFFERENCE, "low"])

    def test_held_out_metrics_are_taken_behind_their_update(self):
        values = [0.2] * 6 + [0.7] * 6
        table = performance_jump(self.history(values, [6], metric="eval_em"), 3, "eval_em")
        assert table.set_index("when").loc[AT_REFRESH, "value"] == pytest.approx(0.5)

    def test_seeds_are_the_unit(self):
        histories = [
            self.history([0.0] * 7 + [size] * 7, [6], seed) for seed, size in enumerate((0.2, 0.4))
        ]
        table = performance_jump(pd.concat(histories), 3).set_index("when")
        assert table.loc[AT_REFRESH, ["value", "n", "count"]].tolist() == pytest.approx([0.3, 2, 2])
        # t = 12.706 with one degree of freedom, cut at 0.
        high = 0.3 + 12.706 * np.std([0.2, 0.4], ddof=1) / np.sqrt(2)
        assert table.loc[AT_REFRESH, "high"] == pytest.approx(high, abs=1e-3)
        assert table.loc[AT_REFRESH, "low"] == 0 and table.loc[DIFFERENCE, "low"] < 0

    def test_without_refreshes_and_with_nothing_but_them(self):
        frozen = self.history([0.5] * 10, []).drop(columns="refits_installed")
        table = performance_jump(frozen, 3).set_index("when")
        assert table.loc[AT_REFRESH, ["n", "count"]].tolist() == [0, 0]
        assert table.loc[QUIET, "count"] == 5 and np.isnan(table.loc[DIFFERENCE, "value"])
        dense = performance_jump(self.history([0.5] * 12, range(1, 13)), 3).set_index("when")
        assert dense.loc[QUIET, "count"] == 0 and dense.loc[AT_REFRESH, "count"] == 7
        with pytest.raises(WorkbenchError, match="no jump of 'em'"):
            performance_jump(frozen, 3, "em")


def run_folder(folder, rounds, failed=(), kind="adapter"):
    for number in range(1, rounds + 1):
        place = folder / "seed-0" / "calibration" / f"round-{number:04d}"
        (place / kind).mkdir(parents=True)
        (place / ("failed.json" if number in failed else RESULT)).write_text("{}")
    (folder / "seed-0" / "final").mkdir(parents=True)


class TestFinding:
    STARTED = [0, 0, 1, 1, 2, 2, 3, 3]
    INSTALLED = [0, 0, 0, 1, 1, 1, 1, 2]
    FAILED = [0, 0, 0, 0, 0, 1, 1, 1]

    def history(self, **changes):
        columns = {"refits_started": self.STARTED, "refits_installed": self.INSTALLED,
                   "refits_failed": self.FAILED}  # fmt: skip
        steps = pd.DataFrame({"seed": 0, "step": range(1, 9), **(columns | changes)})
        return pd.concat([pd.DataFrame({"seed": [0], "step": [0]}), steps], ignore_index=True)

    def test_steps_are_read_off_the_metrics(self, tmp_path):
        run_folder(tmp_path, 3, failed=[2])
        found = find_checkpoints(tmp_path, [0], self.history(), tmp_path / "first")
        assert [(c.seed, c.step, c.number, c.installed) for c in found] == [
            (-1, 0, 0, 0), (0, 3, 1, 4), (0, 5, 2, None), (0, 7, 3, 8), (0, 8, None, None),
        ]  # fmt: skip
        assert found[0].folder is None and found[0].evaluator == tmp_path / "first"
        assert [c.evaluator is None for c in found[1:]] == [False, True, False, True]
        assert found[1].folder.parts[-2:] == ("round-0001", "adapter")
        assert found[-1].folder.name == "final"

    def test_a_round_under_way_at_the_end_was_never_installed(self, tmp_path):
        run_folder(tmp_path, 3, failed=[2])
        history = self.history(refits_installed=[0, 0, 0, 1, 1, 1, 1, 1])
        third = find_checkpoints(tmp_path, [0], history)[3]
        assert (third.number, third.evaluator, third.installed) == (3, None, None)

    def test_without_refits_there_are_start_and_end(self, tmp_path):
        run_folder(tmp_path, 0)
        history = self.history()[["seed", "step"]]
        assert [c.step for c in find_checkpoints(tmp_path, [0], history)] == [0, 8]

    def test_what_is_gone_is_named(self, tmp_path):
        run_folder(tmp_path, 2)
        with pytest.raises(WorkbenchError, match="its policy is gone") as error:
            find_checkpoints(tmp_path, [0], self.history())
        assert str(error.value.where).endswith("round-0003")
        with pytest.raises(WorkbenchError, match="no metrics of this seed"):
            find_checkpoints(tmp_path, [1], self.history())
        (tmp_path / "seed-0" / "final").rmdir()
        with pytest.raises(WorkbenchError, match="no final weights"):
            find_checkpoints(tmp_path, [0], self.history()[["seed", "step"]])


class TestRealPolicy:
    """The committed policy, and an adapter that moves it, on eight pages."""

    @pytest.fixture(scope="class")
    def place(self, tmp_path_factory):
        import peft
        import torch

        from workbench.agent.config import AgentConfig
        from workbench.corpus.chunking import ChunkConfig, chunk_pages
        from workbench.corpus.embedded import load_pages, select_fields
        from workbench.corpus.store import save_corpus
        from workbench.policy.recipe import closed_book_agent
        from workbench.policy.store import load_policy
        from workbench.questions.build import QuestionConfig, build_items
        from workbench.questions.names import page_names
        from workbench.questions.relations import FIELDS
        from workbench.retrieval.config import RetrievalConfig
        from workbench.retrieval.index import build_index
        from workbench.retrieval.searcher import load_searcher

        torch.set_num_threads(1)
        run = tmp_path_factory.mktemp("run")
        everything = load_pages()
        pages = [
            p
            for p in select_fields(everything, FIELDS)
            if p.page_id in ("ag", "ml", "fr", "gm", "it", "ek", "sw", "no")
        ]
        corpus = save_corpus(
            run / "corpus.parquet", chunk_pages(pages, ChunkConfig(words=30, boundary="paragraph"))
        )
        retrieval = RetrievalConfig(encoder="bm25", top_k=3)
        build_index(corpus, retrieval, run / "index")
        items = [
            i
            for i in build_items(pages, QuestionConfig(), page_names(everything)).items
            if i.hops == 1
        ][:8]
        agent = AgentConfig(
            passage="({rank}) {title}: {text}", separator=" ", max_observation_tokens=200,
            max_rounds=4, max_start_tokens=160, max_prompt_tokens=900, max_response_tokens=96,
            max_total_tokens=1000,
        )  # fmt: skip
        config = CalibrationConfig(
            questions=8, rollouts=2, layers=(2, 4),
            selection=SelectionConfig(folds=2, architectures=["logistic"]),
        )  # fmt: skip
        adapted = peft.get_peft_model(
            load_policy("data/policy")[0],
            peft.LoraConfig(r=2, lora_alpha=4.0, target_modules=["q_proj", "down_proj"]),
        )
        draws = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for name, parameter in adapted.named_parameters():
                if "lora_B" in name:
                    parameter.copy_(torch.randn(parameter.shape, generator=draws) * 0.06)
        round_1 = run / "seed-0" / "calibration" / "round-0001"
        adapted.save_pretrained(round_1 / "adapter")
        adapted.save_pretrained(run / "seed-0" / "final")
        (round_1 / RESULT).write_bytes(b"")
        history = pd.DataFrame(
            {"seed": 0, "step": [1, 2, 3], "refits_started": [0, 1, 1],
             "refits_installed": [0, 0, 1], "refits_failed": 0}
        )  # fmt: skip
        base, tokenizer = load_policy("data/policy")
        return SimpleNamespace(
            run=run, base=base, tokenizer=tokenizer, items=items, agent=agent, config=config,
            searcher=load_searcher(run / "index", corpus, retrieval), round=round_1,
            closed_book=closed_book_agent(agent, "From memory: {question} <think>"),
            checkpoints=find_checkpoints(run, [0], history, run / "first.safetensors"),
        )  # fmt: skip

    @pytest.fixture(scope="class")
    def measured(self, place):
        return [
            measure(
                checkpoint, place.base, place.tokenizer, place.searcher, place.items, place.agent,
                place.closed_book, place.config,
            )
            for checkpoint in place.checkpoints[:2]
        ]  # fmt: skip

    def test_the_base_policy_has_not_moved(self, measured):
        start = measured[0]
        assert (start.rollouts["log_ratio"] == 0).all()
        np.testing.assert_array_equal(start.base_prompt_states, start.targets.prompt_states)
        np.testing.assert_array_equal(start.base_commit_states, start.targets.commit_states)

    def test_log_ratios_are_those_of_transformers(self, place, measured):
        import torch

        later = measured[1]
        row = int(later.rollouts["log_ratio"].abs().idxmax())
        trajectory = later.targets.trajectories[row]
        at = np.flatnonzero(trajectory.generated)
        ids = torch.as_tensor(trajectory.tokens[None].astype(np.int64))
        found = []
        for checkpoint in (place.checkpoints[1], place.checkpoints[0]):
            with policy_at(place.base, checkpoint) as model, torch.no_grad():
                logs = model(input_ids=ids).logits[0].log_softmax(-1)
            found.append(logs[at - 1, trajectory.tokens[at].astype(np.int64)].sum().item())
        assert later.rollouts["generated"][row] == len(at)
        assert later.rollouts["log_ratio"][row] == pytest.approx(found[0] - found[1], abs=2e-3)
        assert abs(found[0] - found[1]) > 0.01

    def test_base_and_own_states_differ_where_the_policy_moved(self, place, measured):
        from workbench.readouts.contexts import commit_context
        from workbench.readouts.features import features

        later = measured[1]
        contexts = [commit_context(t) for t in later.targets.searched]
        expected = features(place.base, contexts, place.config.layers).values
        np.testing.assert_allclose(later.base_commit_states, expected, atol=1e-4)
        assert np.abs(later.targets.commit_states - expected).max() > 0.1
        # The prompts are the start's, so the base policy has the same states there.
        start = measured[0].targets.prompt_states
        np.testing.assert_allclose(later.base_prompt_states, start, atol=1e-4)

    def test_the_base_policy_is_left_as_it_was(self, place, measured):
        from workbench.policy.store import load_policy
        from workbench.readouts.snapshot import base_hash

        fresh = load_policy("data/policy")[0]
        assert base_hash(place.base) == base_hash(fresh)
        assert list(dict(place.base.named_modules())) == list(dict(fresh.named_modules()))

    @pytest.fixture(scope="class")
    def labelled(self, measured):
        """Real states, labels by turns: eight questions need not have both of each."""
        found = []
        for m in measured:
            t = m.targets
            changed = np.arange(len(t.searched)) % 2 == 0
            sufficient = np.arange(len(t.items)) % 2 == 0
            targets = replace(
                t, reliance=replace(t.reliance, changed=changed),
                closed_book=replace(t.closed_book, sufficient=sufficient),
            )  # fmt: skip
            found.append(replace(m, targets=targets))
        return found

    def test_tables_of_a_real_run(self, place, labelled):
        table = fidelity(labelled, place.config.selection, BOOTSTRAP)
        assert table["step"].tolist() == [0] * 3 + [2] * 3 + [0] * 3 + [2] * 3
        assert table["value"].between(0, 1).all() and (table["absent"] == "").all()
        far = moved(labelled, BOOTSTRAP).set_index(["metric", "step"])
        rollouts = labelled[1].rollouts
        expected = rollouts["log_ratio"].sum() / rollouts["generated"].sum()
        assert far.loc[("kl", 2), "value"] == pytest.approx(expected)
        assert far.loc[("kl", 2), "n"] == 8 and expected != 0

    def test_real_labels_are_told_or_missing_with_a_reason(self, place, measured):
        table = fidelity(measured, place.config.selection, BOOTSTRAP)
        assert (table["value"].notna() == (table["absent"] == "")).all()

    def test_evaluators_read_anchors_through_their_own_snapshots(self, place, labelled):
        start, later = labelled
        first = fit(start.targets, place.base, place.config, 0).evaluator
        first.save(place.run / "first.safetensors")
        with policy_at(place.base, place.checkpoints[1]) as model:
            second = fit(later.targets, model, place.config, 0).evaluator
            second.save(place.round / RESULT)
        anchors = start.targets.trajectories
        found = read_rollouts(place.base, place.checkpoints, place.items, anchors)
        assert [c.number for c in found.scored] == [0, 1]
        expected = first.score(place.base, anchors)
        np.testing.assert_array_equal(found.scored[place.checkpoints[0]].d, expected.d)
        with policy_at(place.base, place.checkpoints[1]) as model:
            moved_on = second.score(model, anchors)
        np.testing.assert_array_equal(found.scored[place.checkpoints[1]].b, moved_on.b)
        assert not np.array_equal(moved_on.b, expected.b)
        series = necessity_distribution(labelled, found, BOOTSTRAP)
        assert set(series["number"]) == {0, 1}
        assert evaluator_drift(found, BOOTSTRAP)["refits"].tolist() == [1, 1]
        shift = refresh_shift(found, Shaping(), BOOTSTRAP)
        assert (shift["value"].dropna() >= 0).all() and set(shift["number"]) == {"all", 1}

    def test_damaged_weights_are_told(self, place, tmp_path):
        (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
        with pytest.raises(WorkbenchError, match="no trained weights that can be read"):
            with policy_at(place.base, Checkpoint(0, 5, tmp_path)):
                pass


def test_gaps_to_shortcuts_are_differences_of_two_aucs(monkeypatch):
    targets = made_up(0).targets
    labels, questions = targets.reliance.changed, targets.questions
    noise = np.random.default_rng(3).normal(size=len(labels))
    found = {"noise": noise, "the label itself": labels.astype(float)}
    monkeypatch.setattr(shortcut_gaps, "shortcuts", lambda trajectories: found)
    table = shortcut_gaps.shortcut_gaps(targets, LOGISTIC, BOOTSTRAP).set_index("predictor")
    own = held_out_scores(targets.commit_states, labels, questions, targets.layers, LOGISTIC)
    for name, values in found.items():
        other = control_scores(values, labels, questions, LOGISTIC)
        assert table.loc[name, "value"] == pytest.approx(auc(labels, own) - auc(labels, other))
    assert table.loc["noise", "low"] > 0.2
    assert table.loc["the label itself", "value"] <= 0
    assert set(table["n"]) == {len(set(questions))}
