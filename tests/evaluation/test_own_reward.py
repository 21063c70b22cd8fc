"""What another condition's training would pay for saved rollouts."""

import numpy as np

from workbench.evaluation.own_reward import rewards_of, yardstick
from workbench.evaluation.policies import BASE, PolicyName, prediction_path, save_predictions
from workbench.methods.base import NOTHING, Attached
from workbench.methods.registry import load_condition


def test_rewards_of_saved_rollouts(make_item, make_trajectory, tmp_path):
    """Search-R1 pays 1 for a right answer, and half as much again for one without a search."""
    items = [make_item("q1"), make_item("q2")]
    trained = PolicyName("search_r1", 2)
    said = {
        BASE: [make_trajectory("q1"), make_trajectory("q2", "Oslo", 1)],
        trained: [make_trajectory("q1", searches=1, sample=1), make_trajectory("q2", None)],
    }
    for name, trajectories in said.items():
        save_predictions(prediction_path(tmp_path, name, "sampled"), trajectories)
    method = yardstick(load_condition("search_r1"), NOTHING, None)
    frame = rewards_of(method, items, dict.fromkeys(said, tmp_path), "sampled")
    assert frame["reward"].tolist() == [1.5, 0.0, 1.0, 0.0]
    assert frame["condition"].tolist() == ["base"] * 2 + ["search_r1"] * 2
    assert frame["training_seed"].tolist() == [-1, -1, 2, 2]
    assert frame["sample"].tolist() == [0, 0, 1, 0]


def test_a_method_that_reads_states_keeps_the_evaluator_it_is_given(monkeypatch):
    """Nothing refits it: every policy's rollouts are read by the same evaluator."""
    from workbench.methods import search_g1

    attached = []
    monkeypatch.setattr(search_g1.SearchG1, "attach", lambda self, model: attached.append(model))
    context = search_g1.Context(evaluator="evaluator.safetensors")
    method = yardstick(load_condition("search_g1"), context, "model")
    assert isinstance(method, Attached) and attached == ["model"]
    assert method.params.interval is None and method.first == "evaluator.safetensors"
    assert np.all([method.after_update(step)["evaluator_age"] == step for step in (1, 50)])
