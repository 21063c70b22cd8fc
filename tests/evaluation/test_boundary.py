"""The closed-book slices of S1 Tables A7 and A8 by hand."""

import numpy as np
import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.boundary import (
    SUFFICIENT,
    known_answers,
    unknown_answers,
    with_closed_book,
)
from workbench.evaluation.metrics import evaluate
from workbench.inference.bootstrap import BootstrapConfig
from workbench.interventions.closed_book import ClosedBookLabels

FEW = BootstrapConfig(draws=300)


def _labels(exact, sufficient=None):
    names = tuple(f"q{i}" for i in range(len(exact)))
    exact = np.array(exact, bool)
    inside = exact if sufficient is None else np.array(sufficient, bool)
    return ClosedBookLabels(names, ("x",) * len(exact), inside, exact)


@pytest.fixture
def frame(make_item, make_trajectory):
    """Three rollouts each of four questions; a wrong answer is Rome, None is invalid."""
    plan = {
        "q0": [("Bamako", 0), ("Bamako", 2), ("Rome", 1)],
        "q1": [("Bamako", 3), (None, 5), ("Rome", 0)],
        "q2": [("Rome", 1), ("Rome", 2), ("Bamako", 1)],
        "q3": [(None, 1), (None, 0), (None, 0)],
    }
    rollouts = [
        make_trajectory(name, answer=answer, searches=searches, sample=sample)
        for name, said in plan.items()
        for sample, (answer, searches) in enumerate(said)
    ]
    return evaluate([make_item(n) for n in plan], rollouts)


def _values(table):
    return dict(zip(table["metric"], table["value"]))


def test_known_answers_by_hand(frame):
    table = known_answers(with_closed_book(frame, _labels([1, 1, 0, 0])), config=FEW)
    assert _values(table) == pytest.approx(
        {
            "cb_em": 3 / 5,  # valid rollouts of q0 and q1
            "cb_searches": 6 / 5,
            "all_searches": 10 / 8,  # of all valid ones
            "over_search": 3 / 8,
            "cb_share": 5 / 8,
        }
    )
    assert table["n"].tolist() == [2, 2, 3, 3, 3]


def test_unknown_answers_by_hand(frame):
    table = unknown_answers(with_closed_book(frame, _labels([1, 0, 0, 0])), config=FEW)
    assert _values(table) == pytest.approx(
        {
            "cbw_em": 2 / 5,
            "searches": 7 / 5,
            "over_search": 2 / 5,
            "any_at_3": 1.0,  # q1 and q2; q3 has no valid rollout
        }
    )
    assert table["n"].tolist() == [2, 2, 2, 2]
    two = unknown_answers(with_closed_book(frame, _labels([1, 0, 0, 0])), samples=2, config=FEW)
    assert _values(two)["any_at_2"] == 0.5, "of q2 only the third rollout is right"


def test_inclusion_can_say_what_is_known(frame):
    told = with_closed_book(frame, _labels([0, 0, 0, 0], [1, 0, 0, 0]))
    assert np.isnan(_values(known_answers(told, config=FEW))["cb_em"])
    assert _values(known_answers(told, config=FEW, closed=SUFFICIENT))["cb_em"] == 2 / 3
    assert _values(unknown_answers(told, config=FEW, closed=SUFFICIENT))["cbw_em"] == 2 / 5


def test_groups_and_seeds(frame):
    one = with_closed_book(frame, _labels([1, 1, 0, 0])).assign(policy="a", training_seed=0)
    other = with_closed_book(frame, _labels([1, 0, 0, 0])).assign(policy="b", training_seed=0)
    both = pd.concat([one, other])
    table = known_answers(both, by=["policy"], config=FEW)
    em = table[table["metric"] == "cb_em"].set_index("policy")["value"]
    assert em.to_dict() == pytest.approx({"a": 3 / 5, "b": 2 / 3})
    table = unknown_answers(both, by=["policy"], config=FEW)
    assert table["policy"].tolist() == ["a"] * 4 + ["b"] * 4
    assert table["metric"].tolist()[:4] == ["cbw_em", "searches", "over_search", "any_at_3"]
    twice = pd.concat([one, one.assign(training_seed=1)])
    table = unknown_answers(twice, seed="training_seed", config=FEW)
    assert table["seeds"].tolist() == [2] * 4 and _values(table)["any_at_3"] == 1.0


def test_lost_rollouts_count_towards_any_at_k(make_item, make_trajectory):
    frame = evaluate([make_item("q0")], [make_trajectory("q0")], expected=3)
    told = with_closed_book(frame, _labels([0]))
    assert _values(unknown_answers(told, config=FEW))["any_at_3"] == 1.0
    with pytest.raises(WorkbenchError, match="fewer than 4 rollouts"):
        unknown_answers(told, samples=4, config=FEW)


def test_all_known_leaves_nothing_unknown(frame):
    table = unknown_answers(with_closed_book(frame, _labels([1, 1, 1, 1])), config=FEW)
    assert table["value"].isna().all() and (table["n"] == 0).all() and len(table) == 4


def test_odd_input_is_refused(frame):
    with pytest.raises(WorkbenchError, match="1 questions have no closed-book answer.*q3"):
        with_closed_book(frame, _labels([1, 1, 0]))
    for function in (known_answers, unknown_answers):
        with pytest.raises(WorkbenchError, match="with_closed_book"):
            function(frame)
        with pytest.raises(WorkbenchError, match="no rollouts"):
            function(with_closed_book(frame, _labels([1] * 4))[:0])
