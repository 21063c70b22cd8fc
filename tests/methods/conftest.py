"""Fixtures: the small world, and a maker of trajectories for reward tests."""

import importlib.util
import sys
from pathlib import Path

import pytest

from workbench.agent.trajectory import SearchRecord, Trajectory


@pytest.fixture(scope="session")
def small():
    name = "methods_small_world"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / "small_world.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rolled_out(small):
    def make(answer, searches=0, valid=True, group="q", segments=(0, 1, 5)) -> Trajectory:
        record = SearchRecord("a query", 0, (0, 0), (0, 0), (0, 0), [], [], [], [])
        return small.trajectory(
            segments,
            answer,
            group,
            searches=[record] * searches,
            valid=valid,
            invalid_reason="" if valid else "truncated",
            truncated=not valid,
            turns=1 + searches,
        )

    return make
