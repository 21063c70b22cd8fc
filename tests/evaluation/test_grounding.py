"""TC and D-Inv by hand, and what is counted beside them (S1 §7.3.1, Table A15)."""

import numpy as np
import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.grounding import (
    GroundingConfig,
    cost_controlled,
    grounded,
    grounding,
    outcome_counts,
)
from workbench.evaluation.metrics import evaluate
from workbench.inference.bootstrap import BootstrapConfig
from workbench.interventions.replacement import NO_ALTERNATIVE, Counterfactual

FEW = BootstrapConfig(draws=300)


def _found(outcome, regenerated="answer"):
    return Counterfactual(outcome=outcome, regenerated=regenerated, injected=("Oslo",))


@pytest.fixture
def rolled(make_item, make_trajectory):
    """Two direct (one right), and right searched ones: 2 true, 1 amb, 1 hall, 1 unclassified;
    one wrong, one invalid, one lost."""
    names = [f"q{i}" for i in range(10)]
    items = [make_item(n) for n in names]
    rollouts = [
        make_trajectory("q0"),
        make_trajectory("q1", answer="Rome"),
        *(make_trajectory(f"q{i}", searches=1) for i in range(2, 6)),
        make_trajectory("q6", searches=3),
        make_trajectory("q7", searches=1, answer="Rome"),
        make_trajectory("q8", searches=2, valid=False),
    ]
    outcomes = [_found("true"), _found("true", "turn"), _found("amb"), _found("hall", "turn")]
    found = [None, None, *outcomes, Counterfactual(NO_ALTERNATIVE), None, None]
    return evaluate(items, rollouts, expected=1), found


def _values(table):
    return dict(zip(table["metric"], table["value"]))


def test_tc_and_d_inv_by_hand(rolled):
    table = grounding(grounded(*rolled), config=FEW)
    searched = 1.0 + 1.0 + 0.6 + 0.3
    assert _values(table) == pytest.approx(
        {
            "tc": (1.0 + searched) / 5,
            "tc_searched": searched / 4,
            "d_inv": 1 / 4,
            "d_inv_all": 1 / 5,
            "unclassified": 1 / 5,
        }
    )
    assert table["n"].tolist() == [5, 4, 4, 5, 5]
    assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()


def test_every_rollout_has_one_outcome(rolled):
    frame = grounded(*rolled)
    assert frame["outcome"].tolist() == [
        "direct", "not correct", "true", "true", "amb", "hall", "unclassified", "not correct",
        "not correct", "not correct",
    ]  # fmt: skip
    counts = outcome_counts(frame)
    assert counts["rollouts"].sum() == len(frame)
    lost = counts[counts["outcome"] == "unclassified"].iloc[0]
    assert (lost["reason"], lost["rollouts"]) == (NO_ALTERNATIVE, 1)
    assert counts["outcome"].tolist() == [
        "direct", "true", "amb", "hall", "unclassified", "not correct",
    ]  # fmt: skip


def test_scores_come_from_the_settings(rolled):
    config = GroundingConfig(direct=0.0, true=1.0, amb=0.5, hall=0.0)
    values = _values(grounding(grounded(*rolled, config), config=FEW))
    assert values["tc"] == pytest.approx(2.5 / 5) and values["tc_searched"] == 2.5 / 4
    assert values["d_inv"] == 0.25, "a score does not change who is invariant"
    with pytest.raises(ValueError):
        GroundingConfig(amb=1.5)


def test_the_cost_controlled_table(rolled):
    values = _values(cost_controlled(grounded(*rolled), config=FEW))
    assert values["em"] == pytest.approx(6 / 10), "invalid and lost rollouts are wrong"
    assert values["searches"] == pytest.approx(10 / 9), "of a lost rollout none are known"
    assert values["em_per_search"] == pytest.approx(6 / 10)
    assert values["tc_searched"] == pytest.approx(2.9 / 4)


def test_seeds_condition_on_sets_of_their_own(rolled):
    frame, found = rolled
    first = grounded(frame, found).assign(training_seed=0)
    right = [n for n, c in enumerate(found) if c is not None]
    worse = [_found("hall") if n in right else None for n in range(len(found))]
    second = grounded(frame, worse).assign(training_seed=1)
    both = pd.concat([first, second])
    table = grounding(both, seed="training_seed", config=FEW).set_index("metric")
    assert table.loc["d_inv", "value"] == pytest.approx((1 / 4 + 1.0) / 2)
    assert table.loc["d_inv", "seeds"] == 2
    split = grounding(first, by=["regenerated"], config=FEW)
    d_inv = split[split["metric"] == "d_inv"].set_index("regenerated")["value"]
    assert (d_inv["answer"], d_inv["turn"]) == (0.0, 0.5)


def test_nothing_correct_gives_nan_and_no_guess(make_item, make_trajectory):
    frame = evaluate([make_item()], [make_trajectory(answer="Rome")])
    table = grounding(grounded(frame, [None]), config=FEW)
    assert table["value"].isna().all() and (table["n"] == 0).all()


def test_what_does_not_belong_together_is_refused(rolled):
    frame, found = rolled
    for wrong in (found[:-1], [*found, None], [found[2], *found[1:]], [None] * 9):
        with pytest.raises(WorkbenchError, match="do not belong"):
            grounded(frame, wrong)
    for function in (grounding, cost_controlled, outcome_counts):
        with pytest.raises(WorkbenchError, match="evaluation.grounding.grounded"):
            function(frame)


def test_real_counts_stay_integers(rolled):
    frame = grounded(*rolled)
    for column in ("correct_searched", "classified", "unclassified", "invariant", "tc_in"):
        assert set(np.unique(frame[column])) <= {0.0, 1.0}
