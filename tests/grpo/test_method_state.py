"""A method that carries something from step to step resumes to the same bits."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from workbench.config import Settings
from workbench.errors import WorkbenchError
from workbench.grpo.method_state import load_state, save_state, state_hash, state_of
from workbench.grpo.runlog import METRICS
from workbench.methods.base import Scores, Stateful


class NoParams(Settings):
    """Nothing to set."""


@dataclass
class RunningBaseline:
    """Reward above an exponential mean of what was earned so far; state decides every update."""

    inner: object
    name: str = "running_baseline"
    params: NoParams = field(default_factory=NoParams)
    mean: np.ndarray = field(default_factory=lambda: np.zeros((), np.float64))
    recent: torch.Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.bfloat16))
    steps: int = 0
    seen: list = field(default_factory=list)

    def plan(self, items, group_size):
        return self.inner.plan(items, group_size)

    def score(self, items, trajectories):
        scores = self.inner.score(items, trajectories)
        return Scores(scores.reward * (1.0 + self.mean) + self.steps / 7, scores.parts)

    def advantages(self, items, trajectories, scores):
        gains = scores.reward - self.mean
        self.mean = np.asarray(0.9 * self.mean + 0.1 * scores.reward.mean())
        self.recent = torch.roll(self.recent, 1)
        self.recent[0] = float(self.mean)
        self.seen = [*self.seen[-4:], trajectories[0].item_id]
        return [(t.generated * g).astype(np.float32) for t, g in zip(trajectories, gains)]

    def shares(self, items, trajectories, scores, advantages):
        return {}

    def after_update(self, step):
        self.steps += 1
        return {"baseline": float(self.mean), "recent": float(self.recent.sum())}

    def state(self):
        return {"mean": self.mean, "recent": self.recent, "steps": self.steps, "seen": self.seen}

    def restore(self, state):
        self.mean, self.recent = state["mean"], state["recent"]
        self.steps, self.seen = state["steps"], state["seen"]


def train(world, folder, stop=None, method=None):
    method = method or RunningBaseline(world.toy_method())
    trainer = world.toy_trainer(
        folder, world.toy_config(steps=5, checkpoint_every=2), method=method
    )
    if stop is None:
        trainer.run()
    else:
        for _ in range(stop):
            trainer._train_step()
    return method


@pytest.mark.parametrize("stop", [2, 3])
def test_a_resumed_run_with_a_stateful_method_ends_in_the_same_bits(world, tmp_path, stop):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    unbroken = train(world, whole)
    train(world, broken, stop)
    resumed = train(world, broken)
    saved = "checkpoints/step-000005/method.safetensors"
    for name in ("final/adapter_model.safetensors", METRICS, saved):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    assert state_hash(resumed.state()) == state_hash(unbroken.state())
    assert resumed.steps == 5 and resumed.mean.shape == ()


def test_without_its_state_the_run_would_end_elsewhere(world, tmp_path, monkeypatch):
    """What the test above rests on: forgetting the state changes the weights."""
    train(world, tmp_path / "whole")
    train(world, tmp_path / "broken", 3)
    monkeypatch.setattr(RunningBaseline, "restore", lambda self, state: None)
    train(world, tmp_path / "broken")
    name = "final/adapter_model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() != (tmp_path / "broken" / name).read_bytes()


def test_a_method_that_was_used_before_is_refused(world, tmp_path):
    """The same object for two seeds: the second run could not be repeated after a kill."""
    used = train(world, tmp_path / "one")
    with pytest.raises(WorkbenchError, match=r"method\.state was .*, is "):
        train(world, tmp_path / "one", method=used)
    with pytest.raises(WorkbenchError, match=r"method\.state was .*, is '\(absent\)'"):
        stateless = world.toy_method()
        train(world, tmp_path / "one", method=RunningButForgetful(stateless))


class RunningButForgetful:
    """The same name and params, but nothing to restore."""

    name, params = "running_baseline", NoParams()

    def __init__(self, inner):
        for function in ("plan", "score", "advantages", "shares", "after_update"):
            setattr(self, function, getattr(inner, function))


def test_a_damaged_state_is_passed_over(world, tmp_path):
    train(world, tmp_path)
    path = tmp_path / "checkpoints" / "step-000005" / "method.safetensors"
    save_file({"mean": torch.zeros(1)}, path)
    with pytest.warns(UserWarning, match=r"passed over.*method\.safetensors"):
        trainer = world.toy_trainer(
            tmp_path, world.toy_config(steps=5, checkpoint_every=2),
            method=RunningBaseline(world.toy_method()),
        )  # fmt: skip
    assert trainer.step == 4 and trainer.method.steps == 4


def test_methods_without_state_need_nothing(world, tmp_path):
    method = world.toy_method()
    assert not isinstance(method, Stateful) and state_of(method) is None
    world.toy_trainer(tmp_path, world.toy_config(steps=2)).run()
    assert not (tmp_path / "checkpoints" / "step-000002" / "method.safetensors").exists()


STATE = {
    "f8": np.array([[np.nan, -0.0], [np.inf, 5e-324]]),
    "f2": np.float16([1 / 3]),
    "u2": np.arange(4, dtype=np.uint16)[::2],
    "flags": np.array([True, False]),
    "nothing": np.zeros((0, 3), np.float32),
    "point": np.array(1 / 3),
    "bf": torch.tensor([1 / 3, -0.0], dtype=torch.bfloat16),
    "turned": torch.arange(6).reshape(2, 3).T,
    "plain": {"a": [1, None, 0.1, float("inf")], "b": "é"},
    "count": 3,
}


def test_every_kind_of_value_comes_back_as_it_was(tmp_path):
    back = load_state(tmp_path / "s", save_state(tmp_path / "s", STATE))
    assert back.keys() == STATE.keys() and state_hash(back) == state_hash(STATE)
    for name, value in STATE.items():
        assert type(back[name]) is type(value), name
        if isinstance(value, np.ndarray):
            assert back[name].dtype == value.dtype and back[name].shape == value.shape, name
            assert back[name].tobytes() == value.tobytes(), name
        elif isinstance(value, torch.Tensor):
            assert back[name].dtype == value.dtype and torch.equal(back[name], value), name
        else:
            assert back[name] == value, name
    assert state_hash({**STATE, "f2": STATE["f2"].astype(np.float32)}) != state_hash(STATE)
    assert state_hash({**STATE, "point": torch.tensor(1 / 3).double()}) != state_hash(STATE)


@pytest.mark.parametrize(
    "value", [(1, 2), {1: 2}, {2}, object(), np.array(["a"]), np.float64(1.0), np.zeros(1, ">f8")]
)
def test_what_would_not_come_back_is_refused(world, value):
    method = RunningBaseline(world.toy_method(), seen=value)
    with pytest.raises(WorkbenchError, match="method running_baseline: 'seen' of its state"):
        state_of(method)
