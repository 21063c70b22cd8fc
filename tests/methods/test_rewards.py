"""Outcome F1 and Search-R1: rewards, parts, and the advantages that follow."""

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.methods import build_method, load_condition
from workbench.questions.graph import Item

BAMAKO = Item("q", "capital of Mali?", ("Bamako", "Bamako city"), "1-hop, single", (), "train")


@pytest.mark.parametrize(
    ("answer", "valid", "reward"),
    [
        ("Bamako", True, 1.0),
        ("the city of Bamako", True, 2 * (2 / 3 * 1) / (2 / 3 + 1)),  # best alias: bamako city
        ("Paris", True, 0.0),
        (None, False, 0.0),
        ("Bamako", False, 0.0),  # an answer the output parser refused
    ],
)
def test_outcome_f1(rolled_out, answer, valid, reward):
    method = build_method(load_condition("oo"))
    scores = method.score([BAMAKO], [rolled_out(answer, valid=valid)])
    assert scores.reward[0] == pytest.approx(reward)
    assert scores.parts["outcome"][0] == scores.reward[0]


@pytest.mark.parametrize(
    ("answer", "searches", "valid", "reward", "outcome"),
    [
        ("bamako.", 0, True, 1.5, 1.0),
        ("bamako.", 1, True, 1.0, 1.0),
        ("bamako.", 3, True, 1.0, 1.0),
        ("old Bamako", 0, True, 0.0, 0.0),
        ("Bamako", 0, False, 0.0, 0.0),
        (None, 0, False, 0.0, 0.0),
    ],
)
def test_search_r1(rolled_out, answer, searches, valid, reward, outcome):
    method = build_method(load_condition("search_r1"))
    scores = method.score([BAMAKO], [rolled_out(answer, searches, valid)])
    assert scores.reward[0] == reward
    assert scores.parts["outcome"][0] == outcome
    assert scores.parts["direct_bonus"][0] == reward - outcome


def test_the_bonus_is_a_param(rolled_out):
    condition = load_condition("search_r1").model_copy(update={"settings": {"direct_bonus": 0.0}})
    scores = build_method(condition).score([BAMAKO], [rolled_out("Bamako")])
    assert scores.reward[0] == 1.0


def test_the_bonus_makes_credit_in_a_group_that_is_all_right(rolled_out):
    method = build_method(load_condition("search_r1"))
    group = [rolled_out("Bamako", searches) for searches in (0, 1, 1, 2)]
    scores = method.score([BAMAKO] * 4, group)
    advantages = [a.max() or a.min() for a in method.advantages([BAMAKO] * 4, group, scores)]
    np.testing.assert_allclose(advantages, [1.5, -0.5, -0.5, -0.5], atol=1e-5)
    assert np.ptp(scores.parts["outcome"]) == 0


def test_default_plan_is_each_question_in_a_row():
    method = build_method(load_condition("oo"))
    assert method.plan([BAMAKO, BAMAKO], 3) == [0, 0, 0, 1, 1, 1]
    assert method.after_update(1) == {}


def test_items_and_trajectories_must_pair_up(rolled_out):
    method = build_method(load_condition("oo"))
    with pytest.raises((WorkbenchError, ValueError)):
        method.score([BAMAKO], [rolled_out("x"), rolled_out("y")])
