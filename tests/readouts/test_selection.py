"""Selection: no question on both sides, the better layer wins, ties and failures are stated."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from workbench.errors import WorkbenchError
from workbench.readouts.metrics import auc
from workbench.readouts.selection import (
    SelectionConfig,
    Unfit,
    group_folds,
    held_out_scores,
    select,
)

FAST = SelectionConfig(architectures=["logistic"])
SMALL = SelectionConfig(architectures=["mlp-64", "logistic"])


@settings(max_examples=60)
@given(st.data())
def test_no_question_is_on_both_sides(data):
    questions = data.draw(st.lists(st.integers(0, 9), min_size=4, max_size=40))
    names = [f"q{q}" for q in questions]
    folds = data.draw(st.integers(2, 4))
    assume(len(set(names)) >= folds)
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(names), max_size=len(names)))
    seed = data.draw(st.integers(0, 3))
    found = group_folds(labels, names, folds, seed)
    assert sorted(np.concatenate(found)) == list(range(len(names)))
    assert len(found) == folds
    sides = [{names[row] for row in held_out} for held_out in found]
    assert sum(map(len, sides)) == len(set(names))
    for first, second in zip(found, group_folds(labels, names, folds, seed)):
        np.testing.assert_array_equal(first, second)


def test_the_split_depends_on_the_seed(separable):
    _, labels, names = separable()
    first, second = (group_folds(labels, names, 4, seed)[0].tolist() for seed in (0, 1))
    assert first != second


def test_the_layer_with_the_signal_is_chosen(separable):
    values, labels, names = separable(signal=2)
    chosen = select(values, labels, names, (5, 6, 9))
    assert chosen.head.layer == 9
    assert chosen.validation_auc == max(chosen.table.values()) > 0.9
    assert len(chosen.table) == 12
    assert (chosen.rows, chosen.positives, chosen.questions) == (120, labels.sum(), 40)
    new, truth, _ = separable(signal=2, seed=8)
    assert auc(truth, chosen.head.score(new[:, 2])) > 0.9


def test_a_tie_goes_to_the_simplest_and_earliest(separable):
    values, labels, names = separable(questions=100, layers=1, signal=0, shift=60.0)
    values = np.repeat(values, 3, axis=1)  # every candidate reaches AUC 1
    config = SelectionConfig(architectures=["mlp-256-128", "logistic"])
    chosen = select(values, labels, names, (4, 2, 3), config)
    assert len(chosen.table) == 6 and set(chosen.table.values()) == {1.0}
    assert (chosen.head.architecture, chosen.head.layer) == ("logistic", 2)


def test_validation_auc_is_that_of_held_out_questions():
    # Each question has a state of its own and one label: only leakage can tell it.
    rng = np.random.default_rng(0)
    own, kinds = rng.normal(size=(30, 60)), np.arange(30) % 2
    values = np.repeat(own, 4, axis=0)[:, None].astype(np.float32)
    names, labels = [f"q{i // 4}" for i in range(120)], np.repeat(kinds, 4)
    config = SelectionConfig(folds=5, rounds=5, architectures=["logistic"])
    assert abs(select(values, labels, names, (1,), config).validation_auc - 0.5) < 0.2
    honest = held_out_scores(values, labels, names, (1,), config)
    assert abs(auc(labels, honest) - 0.5) < 0.25
    leaky = [f"row{i}" for i in range(120)]
    assert select(values, labels, leaky, (1,), config).validation_auc == 1.0
    assert auc(labels, held_out_scores(values, labels, leaky, (1,), config)) == 1.0


def test_equal_input_is_equal_output(separable):
    values, labels, names = separable()
    first, second = (select(values, labels, names, (0, 1, 2), SMALL, seed=2) for _ in range(2))
    assert first.table == second.table
    np.testing.assert_array_equal(first.head.weights[0], second.head.weights[0])


def test_more_rounds_are_a_mean_over_folds(separable):
    values, labels, names = separable(shift=1.0)
    one, every = (
        select(values, labels, names, (0, 1, 2), FAST.model_copy(update={"rounds": rounds}))
        for rounds in (1, 4)
    )
    assert one.validation_auc != every.validation_auc


def test_few_rows_leave_the_logistic_alone(separable):
    values, labels, names = separable(questions=8, each=2)
    chosen = select(values, labels, names, (0, 1, 2), SelectionConfig(folds=2))
    assert {architecture for architecture, _ in chosen.table} == {"logistic"}
    with pytest.raises(Unfit, match="too few rows"):
        select(values, labels, names, (0, 1, 2), SelectionConfig(folds=2, architectures=["mlp-64"]))


def test_held_out_scores_rank_without_having_seen(separable):
    values, labels, names = separable(shift=1.5)
    scores = held_out_scores(values, labels, names, (0, 1, 2), FAST)
    assert scores.shape == labels.shape and np.isfinite(scores).all()
    assert 0.75 < auc(labels, scores) < 0.97
    shuffled = np.random.default_rng(0).permutation(labels)
    assert (
        abs(auc(shuffled, held_out_scores(values, shuffled, names, (0, 1, 2), FAST)) - 0.5) < 0.15
    )


def unfit(values, labels, names, match, **changes):
    with pytest.raises(Unfit, match=match) as error:
        select(values, labels, names, (0, 1, 2), SelectionConfig(**changes))
    assert isinstance(error.value, WorkbenchError)
    again = pickle.loads(pickle.dumps(error.value))  # it may come from another process
    assert type(again) is Unfit and str(again) == str(error.value)


def test_what_carries_no_readout(separable):
    values, labels, names = separable()
    unfit(values[:0], labels[:0], [], "no rows")
    unfit(values, np.zeros(120), names, "all 120 labels are 0")
    unfit(values, np.ones(120), names, "all 120 labels are 1")
    unfit(values[:9], labels[:9], names[:9], "3 questions for 4 folds")
    one = np.array([name == "q7" for name in names])  # the only question of its class
    unfit(values, one, names, "no group split has both classes on both sides")


def test_nan_features_are_an_error_not_unfit(separable):
    values, labels, names = separable()
    values[3, 2, 1] = np.nan
    with pytest.raises(WorkbenchError, match="1 of 120 rows") as error:
        select(values, labels, names, (0, 1, 2))
    assert not isinstance(error.value, Unfit)


def test_shapes_must_agree(separable):
    values, labels, names = separable()
    with pytest.raises(WorkbenchError, match="3 rows and 3 layers|120 rows and 2 layers"):
        select(values, labels, names, (0, 1))


def test_settings_are_checked():
    with pytest.raises(ValidationError, match="more than folds"):
        SelectionConfig(folds=2, rounds=3)
    with pytest.raises(ValidationError, match="svm"):
        SelectionConfig(architectures=["svm"])
    with pytest.raises(ValidationError, match="choose from"):
        SelectionConfig(architectures=[])
