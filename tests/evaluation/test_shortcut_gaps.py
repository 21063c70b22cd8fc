"""D minus its shortcuts: paired, with the sign and the size of the difference of the two AUCs."""

import numpy as np
import pytest

from test_co_evolution import BOOTSTRAP, LOGISTIC, made_up
from workbench.evaluation import shortcut_gaps
from workbench.readouts.controls import control_scores
from workbench.readouts.metrics import auc
from workbench.readouts.selection import held_out_scores


def test_gaps_are_differences_of_the_two_aucs(monkeypatch):
    targets = made_up(0).targets
    labels, questions = targets.reliance.changed, targets.questions
    noise = np.random.default_rng(3).normal(size=len(labels))
    found = {"noise": noise, "the label itself": labels.astype(float)}
    monkeypatch.setattr(shortcut_gaps, "shortcuts", lambda trajectories: found)
    table = shortcut_gaps.shortcut_gaps(targets, LOGISTIC, BOOTSTRAP).set_index("predictor")
    own = held_out_scores(targets.commit_states, labels, questions, targets.layers, LOGISTIC)
    for name, values in found.items():
        other = control_scores(values, labels, questions, LOGISTIC)
        assert table.loc[name, "value"] == pytest.approx(auc(labels, own) - auc(labels, other))
    assert table.loc["noise", "low"] > 0.2
    assert table.loc["the label itself", "value"] <= 0
    assert set(table["n"]) == {len(set(questions))}
