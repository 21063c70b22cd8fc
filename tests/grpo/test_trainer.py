"""The loop: learns, logs, shares the plan of the method, evaluates."""

import json
from dataclasses import replace

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.grpo import ObjectiveConfig, read_log
from workbench.grpo.stream import QuestionStream

KEYS = {
    "reward_mean", "reward_sd", "outcome_mean", "reward_variance", "outcome_variance",
    "zero_variance_groups", "phantom_groups", "clip_low", "clip_high", "clip_dual", "kl",
    "kl_grad_norm", "entropy", "grad_norm", "searches", "direct", "valid", "tokens",
    "seconds_rollout", "seconds_score", "seconds_update", "prefill_ratio", "logprob_gap", "lr",
}  # fmt: skip


def test_reward_rises_and_everything_is_logged(world, tmp_path):
    trainer = world.toy_trainer(tmp_path, world.toy_config(steps=20))
    final = trainer.run()
    rows = read_log(tmp_path)
    assert [row["step"] for row in rows] == list(range(1, 21))
    assert all(KEYS <= row.keys() for row in rows)
    assert all(np.isfinite(value) for row in rows for value in row.values())
    first, last = (np.mean([r["reward_mean"] for r in part]) for part in (rows[:4], rows[-4:]))
    assert last > first + 0.15
    assert rows[0]["kl"] == pytest.approx(0, abs=1e-9) and rows[-1]["kl"] > 1e-3
    # One update a step: ratios are 1, so nothing is clipped; engine and training agree.
    assert all(row["clip_low"] == row["clip_high"] == 0 for row in rows)
    assert max(row["logprob_gap"] for row in rows) < 1e-5
    files = ["adapter_config.json", "adapter_model.safetensors"]
    assert sorted(path.name for path in final.iterdir()) == files
    settings = json.loads((final / files[0]).read_text())
    assert settings["base_model_name_or_path"] is None
    layers = settings["target_modules"]
    assert len(layers) >= 7 and layers == sorted(layers), "the same bytes in every process"


def test_warm_up_then_constant(world, tmp_path):
    config = world.toy_config(steps=10)
    rates = [config.learning_rate(update) for update in range(10)]
    assert rates == pytest.approx([0.01] + [0.02] * 9)
    assert world.toy_config(optimiser={"lr": 1.0, "warmup_ratio": 0.0}).learning_rate(0) == 1.0


def test_the_saved_adapter_gives_the_trained_policy(world, tmp_path):
    import peft
    import torch

    trainer = world.toy_trainer(tmp_path, world.toy_config(steps=3))
    final = trainer.run()
    loaded = peft.PeftModel.from_pretrained(world.tiny_model(), final)
    ids = torch.arange(12)[None]
    expected = trainer.policy.model(ids).logits
    assert torch.equal(loaded(ids).logits, expected)
    with trainer.policy.reference() as reference:
        assert torch.equal(reference(ids).logits, world.tiny_model()(ids).logits)


@pytest.mark.parametrize("kl", [0.0, 0.01])
def test_full_training_keeps_its_reference(world, tmp_path, kl):
    import torch

    config = world.toy_config(steps=2, trained="full", objective=ObjectiveConfig(kl_coefficient=kl))
    trainer = world.toy_trainer(tmp_path, config)
    final = trainer.run()
    ids = torch.arange(12)[None]
    base = world.tiny_model()(ids).logits
    assert not torch.equal(trainer.policy.model(ids).logits, base)
    assert ("kl" in read_log(tmp_path)[-1]) == bool(kl)
    if kl:
        with trainer.policy.reference() as reference:
            assert torch.equal(reference(ids).logits, base)
    else:
        with pytest.raises(WorkbenchError, match="no reference"), trainer.policy.reference():
            pass
    assert (final / "model.safetensors").is_file()


def test_mini_batches_make_the_later_updates_off_policy(world, tmp_path):
    config = world.toy_config(steps=2, mini_batch_questions=2, epochs=2)
    assert config.updates_per_step == 4
    trainer = world.toy_trainer(tmp_path, config)
    trainer.run()
    rows = read_log(tmp_path)
    assert trainer.updater.updates == 8
    assert rows[-1]["clip_low"] + rows[-1]["clip_high"] > 0


def test_a_method_may_give_questions_groups_of_different_size(world, tmp_path):
    method = world.toy_method()

    class Uneven:
        name, params = "uneven", method.params
        score, advantages, after_update = method.score, method.advantages, method.after_update
        shares = method.shares

        def plan(self, items, group_size):
            return [0] * 6 + [1] * 2 + [3] * 2  # item 2 gets none

    seen = []
    trainer = world.toy_trainer(
        tmp_path, world.toy_config(steps=1), method=Uneven(), on_step=[seen.append]
    )
    trainer.run()
    report = seen[0]
    asked = [trainer.items[row].item_id for row in trainer.stream.rows(0)]
    sizes = {q: sum(t.item_id == q for t in report.trajectories) for q in asked}
    assert list(sizes.values()) == [6, 2, 0, 2]
    assert report.metrics["rollouts"] == 10 and report.metrics["groups"] == 3


def test_shares_of_a_method_are_logged_and_those_of_others_are_not(world, tmp_path):
    def log(trajectories, scores, advantages, delta):
        return {"a_share": (float(len(trajectories)), 64.0), "without_a_whole": (0.0, 0.0)}

    method = replace(world.toy_method(), log=log)
    for folder, chosen in (("with", method), ("without", world.toy_method())):
        world.toy_trainer(tmp_path / folder, world.toy_config(steps=1), method=chosen).run()
    (logged,), (plain,) = (read_log(tmp_path / folder) for folder in ("with", "without"))
    assert logged["a_share"] == 16 / 64
    assert logged.keys() - plain.keys() == {"a_share"}


def test_evaluation_before_at_intervals_and_at_the_end(world, tmp_path):
    trainer = world.toy_trainer(
        tmp_path, world.toy_config(steps=5, eval_every=2), eval_items=world.items(3)
    )
    trainer.run()
    rows = read_log(tmp_path)
    assert [row["step"] for row in rows if "eval_f1" in row] == [0, 2, 4, 5]
    assert all(row["eval_em"] == row["eval_f1"] == 1.0 for row in rows if "eval_f1" in row)


def test_questions_come_once_an_epoch_in_an_order_named_by_the_seed():
    stream = QuestionStream(11, 4, seed=1)
    epoch = np.concatenate([stream.rows(0), stream.rows(1)])
    assert len(set(epoch)) == 8
    assert not np.array_equal(stream.rows(0), stream.rows(2))
    assert not np.array_equal(stream.rows(0), QuestionStream(11, 4, seed=2).rows(0))
    np.testing.assert_array_equal(stream.rows(7), QuestionStream(11, 4, seed=1).rows(7))
    with pytest.raises(WorkbenchError, match="3 training questions, but a step draws 4"):
        QuestionStream(3, 4, seed=0)
