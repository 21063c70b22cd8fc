"""Checkpoints: resume to the same bits, refuse damage and other params."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch

from workbench.errors import WorkbenchError
from workbench.grpo import read_log
from workbench.grpo.runlog import METRICS


def train(world, folder: Path, steps) -> None:
    torch.set_num_threads(1)
    config = world.toy_config(**world.KILLED)
    trainer = world.toy_trainer(folder, config, on_step=[lambda r: steps.send(r.step)])
    torch.seed()  # no draw may come from the global generator
    trainer.run()
    steps.send(None)


def start(world, folder: Path):
    """A process of its own that trains in ``folder``, and the pipe that tells its steps."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=train, args=(world, folder, send))
    process.start()
    send.close()
    return process, receive


def test_a_run_killed_at_a_random_step_ends_in_the_same_bits(world, tmp_path):
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    killed, steps = start(world, broken)
    stop_at = random.randint(3, 8)
    while steps.recv() != stop_at:
        pass
    time.sleep(random.uniform(0, 0.05))
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert not (broken / "final").exists()
    resumed, steps = start(world, broken)
    redone = list(iter(steps.recv, None))
    resumed.join()
    world.toy_trainer(unbroken, world.toy_config(**world.KILLED)).run()
    assert stop_at - 1 <= redone[0] <= stop_at + 1 and redone[-1] == 9
    names = ("final/adapter_model.safetensors", METRICS)
    for name in (*names, "checkpoints/step-000009/optimiser.safetensors"):
        assert (unbroken / name).read_bytes() == (broken / name).read_bytes(), name


@pytest.fixture(scope="module")
def run_once(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    torch.set_num_threads(1)
    world.toy_trainer(folder, world.toy_config(steps=4)).run()
    return folder


@pytest.fixture
def finished(run_once, tmp_path):
    return shutil.copytree(run_once, tmp_path, dirs_exist_ok=True)


def newest(folder: Path) -> Path:
    return sorted((folder / "checkpoints").glob("step-*"))[-1]


def test_checkpoints_are_kept_in_number_and_parts_are_ignored(world, finished):
    assert [p.name for p in sorted((finished / "checkpoints").iterdir())] == [
        "step-000002",
        "step-000004",
    ]
    (finished / "checkpoints" / ".step-000006.part").mkdir()
    assert world.toy_trainer(finished, world.toy_config(steps=4)).step == 4


def test_a_finished_run_is_not_trained_again(world, finished):
    before = (finished / METRICS).read_bytes()
    trainer = world.toy_trainer(finished, world.toy_config(steps=4))
    trainer.run()
    assert (finished / METRICS).read_bytes() == before


@pytest.mark.parametrize("name", ["weights.safetensors", "optimiser.safetensors", "state.json"])
@pytest.mark.parametrize("how", ["cut", "flip", "gone"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(world, finished, name, how):
    path = newest(finished) / name
    content = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.warns(UserWarning, match=f"passed over.*{name}"):
        trainer = world.toy_trainer(finished, world.toy_config(steps=4))
    assert trainer.step == 2
    assert [row["step"] for row in read_log(finished)] == [1, 2]


def test_only_damaged_checkpoints_are_an_error(world, finished):
    for path in (finished / "checkpoints").glob("step-*/weights.safetensors"):
        path.write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="passed over"),
        pytest.raises(WorkbenchError, match="every checkpoint is damaged"),
    ):
        world.toy_trainer(finished, world.toy_config(steps=4))


def test_other_params_are_refused_by_name(world, finished):
    config = world.toy_config(steps=4, optimiser={"lr": 0.01, "warmup_ratio": 0.2})
    with pytest.raises(WorkbenchError, match=r"grpo\.optimiser\.lr was 0\.02, is 0\.01"):
        world.toy_trainer(finished, config)
    with pytest.raises(WorkbenchError, match="policy was"):
        world.toy_trainer(finished, world.toy_config(steps=4), model=world.tiny_model(seed=1))
    with pytest.raises(WorkbenchError, match="questions was"):
        world.toy_trainer(finished, world.toy_config(steps=4), items=world.items(12))


def test_a_log_shorter_than_its_checkpoint_is_refused(world, finished):
    (finished / METRICS).write_text("")
    with pytest.raises(WorkbenchError, match="shorter than its checkpoint"):
        world.toy_trainer(finished, world.toy_config(steps=4))


def test_state_names_step_and_identity(finished):
    state = json.loads((newest(finished) / "state.json").read_text())
    assert state["step"] == 4 and state["updates"] == 4
    assert state["identity"]["seed"] == 3
    assert torch.tensor(state["logged"][METRICS]) == (finished / METRICS).stat().st_size
