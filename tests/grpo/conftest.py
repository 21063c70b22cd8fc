"""Fixtures: the tiny world, loaded by path because tests are not a package."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch


@pytest.fixture(scope="session")
def world():
    name = "grpo_tiny_world"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / "tiny_world.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
