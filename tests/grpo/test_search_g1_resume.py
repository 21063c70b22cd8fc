"""Search-G1 killed while a refit is under way: the real trainer, policy, agent and refit process.

The round starts after update 2 and its evaluator is installed after update 3, so the fourth
step is scored by what the process fitted.
"""

import importlib.util
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from workbench.grpo import GRPOConfig, LoraConfig, OptimiserConfig, read_log
from workbench.grpo.runlog import METRICS
from workbench.grpo.trainer import Trainer
from workbench.methods.base import Context
from workbench.methods.search_g1 import Params, build
from workbench.policy.store import load_policy
from workbench.readouts.evaluator import Evaluator
from workbench.readouts.heads import head_of
from workbench.readouts.probes import fit_probe
from workbench.readouts.refit import RESULT, Refits
from workbench.readouts.snapshot import take_snapshot

STEPS, ROUNDS, LAYER = 4, "calibration", 2
SAME = (
    METRICS, "final/adapter_model.safetensors", f"{ROUNDS}/round-0001/{RESULT}",
    "checkpoints/step-000004/method.safetensors", "checkpoints/step-000004/optimiser.safetensors",
)  # fmt: skip


@pytest.fixture(scope="module")
def parts():
    path = Path(__file__).parents[1] / "readouts" / "refit_world.py"
    spec = importlib.util.spec_from_file_location("grpo_refit_world", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def place(parts, tmp_path_factory):
    return parts.refit_world(tmp_path_factory.mktemp("world"), every=2, lag=1, questions=24)


def first_evaluator(model):
    """Heads on random directions: what training starts with must differ from what it refits."""
    states = np.random.default_rng(0).normal(size=(40, model.config.hidden_size))
    heads = [
        head_of(fit_probe("logistic", states, states[:, column] > 0), "logistic", LAYER)
        for column in (0, 1)
    ]
    return Evaluator(take_snapshot(model), *heads)


def make_trainer(place, folder, task=None, steps=STEPS, on_step=()):
    task = task or place.task
    model, tokenizer = load_policy(task.policy)
    refits = Refits(folder / ROUNDS, task, last=steps)
    context = Context(evaluator=first_evaluator(model), refits=refits)
    config = GRPOConfig(
        steps=steps, questions_per_step=2, group_size=3, mini_batch_questions=None,
        micro_batch_rollouts=6, lora=LoraConfig(rank=2, alpha=8.0, dropout=0.1),
        optimiser=OptimiserConfig(lr=0.003, warmup_ratio=0.0), checkpoint_every=1,
    )  # fmt: skip
    return Trainer(
        model=model, tokenizer=tokenizer, searcher=place.searcher, items=place.items,
        method=build(Params(), context), agent=task.agent, config=config, folder=folder, seed=3,
        on_step=on_step,
    )  # fmt: skip


def train(place, folder, steps):
    os.setsid()  # a process group of its own: the refit that it starts is in it
    torch.set_num_threads(1)
    trainer = make_trainer(place, folder, on_step=[lambda report: steps.send(report.step)])
    torch.seed()  # no draw may come from the global generator
    trainer.run()
    steps.send(None)


def start(place, folder):
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=train, args=(place, folder, send))
    process.start()
    send.close()
    return process, receive


def killed_in_the_round(parts, place, folder, whole_group):
    """Train up to the second update and kill -9 while the refit that it started runs."""
    process, steps = start(place, folder)
    while steps.recv() != 2:
        pass
    round_one = folder / ROUNDS / "round-0001"
    while not parts.running_in(round_one):
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.5))
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL and not (folder / "final").exists()
    assert not (round_one / RESULT).exists(), "the refit was still under way"
    return round_one


def resume(parts, place, folder):
    """The steps that are trained anew, and the refits seen running after one of them."""
    process, steps = start(place, folder)
    seen = [(step, *parts.running_in(folder)) for step in iter(steps.recv, None)]
    process.join()
    return [step for step, *_ in seen], [pid for _, *pids in seen for pid in pids]


@pytest.fixture(scope="module")
def unbroken(place, tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("unbroken")
    trainer = make_trainer(place, folder)
    before = trainer.method.evaluator.hashes()
    trainer.run()
    # What the comparison below rests on: a refit took over and scored the last step.
    rows = read_log(folder)
    assert [row["refits_started"] for row in rows] == [0, 1, 1, 1]
    assert [row["refits_installed"] for row in rows] == [0, 0, 1, 1]
    assert [row["evaluator_age"] for row in rows] == [1, 2, 0, 1]
    found = trainer.method.evaluator
    assert found.snapshot.kind == "adapter" and found.hashes()["heads"] != before["heads"]
    return folder


def same_bytes(one, other):
    for name in SAME:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_killed_with_its_refit_the_round_is_run_again(parts, place, unbroken, tmp_path):
    killed_in_the_round(parts, place, tmp_path, whole_group=True)
    assert not parts.running_in(tmp_path)
    assert resume(parts, place, tmp_path)[0] == [3, 4]
    same_bytes(unbroken, tmp_path)


def test_killed_alone_the_refit_ends_and_its_result_is_taken(parts, place, unbroken, tmp_path):
    round_one = killed_in_the_round(parts, place, tmp_path, whole_group=False)
    while parts.running_in(round_one):  # it goes on without the training
        time.sleep(0.05)
    assert (round_one / RESULT).is_file()
    assert resume(parts, place, tmp_path) == ([3, 4], []), "no refit is run again"
    same_bytes(unbroken, tmp_path)


def test_a_training_that_ends_leaves_no_refit_running(parts, place, tmp_path):
    calibration = place.task.calibration.model_copy(update={"every": 1, "lag": None})
    task = place.task.model_copy(update={"calibration": calibration})
    trainer = make_trainer(place, tmp_path, task, steps=2)
    seen = []
    trainer.on_step = (lambda report: seen.append(parts.running_in(tmp_path)),)
    trainer.run()
    assert seen[0], "a round was started after the first update"
    assert not parts.running_in(tmp_path) and (tmp_path / "final").is_dir()
