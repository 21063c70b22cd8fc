"""Made-up frames in the shapes that figures and tables take."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.evaluation.summary import exposure_bin

CATEGORIES = ["1-hop, single", "2-hop, chain"]


def _with_ends(rows, half=0.05):
    frame = pd.DataFrame(rows)
    return frame.assign(
        low=frame["value"] - half, high=frame["value"] + half, n=200, seeds=3, p=0.01
    )


@pytest.fixture
def curves():
    rng = np.random.default_rng(0)
    rows = [
        (name, seed, step, "training", start + gain * step / 60 + rng.normal(0, 0.06))
        for name, start, gain in (("oo", 0.45, 0.2), ("search_r1", 0.6, 0.4))
        for seed in range(3)
        for step in range(1, 61)
    ] + [
        (name, seed, step, "held-out", 0.5 + gain * step / 60 + rng.normal(0, 0.012))
        for name, gain in (("oo", 0.12), ("search_r1", 0.1))
        for seed in range(3)
        for step in range(0, 61, 10)
    ]
    return pd.DataFrame(rows, columns=["condition", "seed", "step", "series", "value"])


@pytest.fixture
def shift():
    counts = np.array([0, 1, 2, 4, 8, 16, 32, 64])
    before = 0.25 + 0.4 * np.arange(8) / 7
    after = {"oo": before * 0.15, "search_r1": np.minimum(0.97, before * 0.6 + 0.4)}
    rows = [
        {"condition": c, "phase": phase, "exposure_bin": exposure_bin([e])[0], "value": v}
        for c in after
        for phase, values in (("before", before), ("after", after[c]))
        for e, v in zip(counts, values)
    ]
    frame = _with_ends(rows)
    frame["exposure_bin"] = pd.Categorical(
        frame["exposure_bin"], exposure_bin([0]).categories, ordered=True
    )
    return frame


@pytest.fixture
def curve(shift):
    part = shift[(shift["condition"] == "oo") & (shift["phase"] == "before")]
    return part.drop(columns=["condition", "phase"]).reset_index(drop=True)


@pytest.fixture
def votes():
    rows = [
        ("single", 0.55, -0.06), ("majority", 0.61, 0.0), ("rgv", 0.64, 0.03),
        ("oracle", 0.82, 0.21),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["rule", "accuracy", "delta"])
    return frame.assign(
        low=frame["accuracy"] - 0.04, high=frame["accuracy"] + 0.04, n=240,
        delta_low=frame["delta"] - 0.02, delta_high=frame["delta"] + 0.02, delta_p=0.01,
        comparator="majority", tied=[0.0, 0.11, 0.04, 0.0], rollouts=8.0,
    )  # fmt: skip


@pytest.fixture
def scores():
    rows = [
        {"condition": c, "category": k, "metric": m, "value": base + 0.08 * (k[0] == "1") + lift}
        for c, lift in (("base", 0.0), ("oo", 0.12), ("search_r1", 0.09))
        for k in CATEGORIES
        for m, base in (("em", 0.5), ("f1", 0.55))
    ]
    return _with_ends(rows)


@pytest.fixture
def differences(scores):
    trained = scores[scores["condition"] != "base"].copy()
    shift = trained["condition"].map({"oo": 0.12, "search_r1": 0.09})
    return trained.assign(value=shift, low=shift - 0.03, high=shift + 0.03)


def _load(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def credit():
    """Frames of the retrieval-credit study (credit_frames.py)."""
    return _load("reporting_credit_frames", Path(__file__).parent / "credit_frames.py")


@pytest.fixture(scope="session")
def small():
    """The small corpus and the makers of trajectories that the tests of methods use."""
    folder = Path(__file__).parents[1] / "methods"
    return _load("reporting_small_world", folder / "small_world.py")
