"""Closing refits ends the process that runs one, and nothing of its round is a result."""

import importlib.util
import sys
import time
from pathlib import Path

import pytest

from workbench.policy.store import load_policy
from workbench.readouts.refit import ADAPTER, LOG, TASK, Refits


@pytest.fixture(scope="module")
def world():
    path = Path(__file__).with_name("refit_world.py")
    spec = importlib.util.spec_from_file_location("readouts_refit_world", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def task(world, tmp_path_factory):
    return world.refit_world(tmp_path_factory.mktemp("refits")).task


@pytest.fixture(scope="module")
def policy(world):
    import peft

    adapter = peft.LoraConfig(r=2, lora_alpha=4.0, target_modules=["q_proj"])
    return peft.get_peft_model(load_policy(world.POLICY)[0], adapter).eval()


def test_closing_ends_a_round_that_runs_and_leaves_no_result(world, task, policy, tmp_path):
    refits = Refits(tmp_path, task)
    refits.prepare(1, policy)
    refits.start(1)
    process = refits._running[1]
    while world.running_in(refits.round(1)) != [process.pid]:  # until it has become Python
        assert process.poll() is None
        time.sleep(0.01)
    refits.close()
    assert process.returncode == -9 and not world.running_in(tmp_path)
    assert {path.name for path in refits.round(1).iterdir()} == {TASK, ADAPTER, LOG}
    assert not refits.ready(1) and not Refits(tmp_path, task).ready(1)
    assert refits.report(1) == {}
    refits.close()  # there is nothing left to end
    # A run that goes on starts the round again; it is the same task.
    refits.start(1)
    assert world.running_in(tmp_path) or refits._running[1].poll() is None
    refits.close()
    assert not world.running_in(tmp_path)


def test_only_what_this_worker_started_is_ended(world, task, policy, tmp_path):
    first, other = Refits(tmp_path, task), Refits(tmp_path, task, first=False)
    first.prepare(1, policy)
    first.start(1)
    other.start(1)
    other.close()
    assert first._running[1].poll() is None
    first.close()
    assert first._running == {} and not world.running_in(tmp_path)
