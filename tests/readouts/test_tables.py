"""Tables of a calibration round over synthetic targets whose answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from workbench.inference.bootstrap import BootstrapConfig
from workbench.inference.classical import wilson
from workbench.interventions.closed_book import ClosedBookLabels
from workbench.interventions.variants import RelianceLabels
from workbench.readouts.calibration import Targets
from workbench.readouts.metrics import auc
from workbench.readouts.selection import SelectionConfig
from workbench.readouts.tables import (
    RELIANCE,
    SUFFICIENCY,
    control_table,
    held_out,
    layer_table,
    quality_table,
    shares_by_kind,
)

QUESTIONS, EACH = 40, 2
LINEAR = SelectionConfig(architectures=["logistic"])
DRAWS = BootstrapConfig(draws=200, level=0.95, seed=0)


@pytest.fixture(scope="module")
def targets(make_trajectory):
    """Layer 2 tells both labels, layer 1 nothing."""
    rng = np.random.default_rng(0)
    names = tuple(f"q{i}" for i in range(QUESTIONS))
    searched = [
        make_trajectory(q, 1 + q % 2, seed=s) for q in range(QUESTIONS) for s in range(EACH)
    ]
    changed, sufficient = rng.random(len(searched)) < 0.5, rng.random(QUESTIONS) < 0.5
    commit = rng.normal(size=(len(searched), 2, 4)).astype(np.float32)
    prompt = rng.normal(size=(QUESTIONS, 2, 4)).astype(np.float32)
    commit[:, 1, 0] += 4.0 * changed
    prompt[:, 1, 0] += 4.0 * sufficient
    none = ("",) * len(searched)
    return Targets(
        [SimpleNamespace(item_id=name) for name in names], searched, searched,
        ClosedBookLabels(names, (None,) * QUESTIONS, sufficient, sufficient),
        RelianceLabels("deletion", none, none, changed), (1, 2), prompt, commit, {},
    )  # fmt: skip


def test_shares_are_wilsons():
    table = shares_by_kind(["b", "a", "b", "b"], np.array([True, False, True, False]))
    assert table["kind"].tolist() == ["a", "b"] and table["n"].tolist() == [1, 3]
    expected = wilson(2, 3)
    assert table.iloc[1][["value", "low", "high"]].tolist() == [
        expected.value, expected.low, expected.high,
    ]  # fmt: skip


def test_the_layer_that_tells_stands_out(targets):
    table = layer_table(targets, LINEAR, DRAWS).set_index(["readout", "layer"])
    for name in (RELIANCE, SUFFICIENCY):
        assert table.loc[(name, 2), "low"] > 0.9 and table.loc[(name, 1), "value"] < 0.75
        assert table.loc[(name, 2), "n"] == QUESTIONS


def test_quality_is_of_the_held_out_scores(targets):
    scores = held_out(targets, LINEAR)
    table = quality_table(targets, scores, DRAWS).set_index("readout")
    changed = targets.reliance.changed
    assert table.loc[RELIANCE, "value"] == pytest.approx(auc(changed, scores[RELIANCE]))
    assert table.loc[RELIANCE, "brier"] == pytest.approx(np.mean((scores[RELIANCE] - changed) ** 2))
    assert table.loc[RELIANCE, "label_share"] == pytest.approx(changed.mean())
    assert table["rows"].tolist() == [QUESTIONS * EACH, QUESTIONS]


def test_controls_tell_nothing_that_was_not_put_there(targets):
    scores = held_out(targets, LINEAR)[RELIANCE]
    table = control_table(targets, scores, LINEAR, DRAWS).set_index("predictor")
    assert table.loc[RELIANCE, "value"] > 0.95
    assert table.loc["D, matched on count and length", "value"] > 0.9
    others = table.drop(index=[RELIANCE, "D, matched on count and length"])
    assert (others["low"] < 0.6).all() and len(others) == 8
