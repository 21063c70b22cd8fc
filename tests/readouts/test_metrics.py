"""AUC, Brier, ECE and drift against scikit-learn, statistics by hand, and their intervals."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

from workbench.errors import WorkbenchError
from workbench.inference.bootstrap import BootstrapConfig, bootstrap_mean
from workbench.inference.statistic import bootstrap_statistic
from workbench.readouts.metrics import (
    auc,
    auc_interval,
    brier,
    expected_calibration_error,
    reliability,
    scale_drift,
)

CONFIG = BootstrapConfig(draws=400)
rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 8).map(lambda k: k / 8)), min_size=2, max_size=40
)


@given(rows)
def test_against_scikit_learn(pairs):
    labels, scores = (np.array(column) for column in zip(*pairs))
    assume(0 < labels.sum() < len(labels))
    assert auc(labels, scores) == pytest.approx(roc_auc_score(labels, scores))
    assert brier(labels, scores) == pytest.approx(brier_score_loss(labels, scores))
    for bins in (1, 4, 10):
        truth, predicted = calibration_curve(labels, scores, n_bins=bins)
        score, label, count = reliability(labels, scores, bins)
        np.testing.assert_allclose(label[count > 0], truth)
        np.testing.assert_allclose(score[count > 0], predicted)
        expected = np.abs(truth - predicted) @ count[count > 0] / len(labels)
        assert expected_calibration_error(labels, scores, bins) == pytest.approx(expected)


def test_by_hand():
    labels, scores = [0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]
    assert auc(labels, scores) == 3.5 / 4
    assert brier(labels, scores) == pytest.approx((0.01 + 0.16 + 0.36 + 0.01) / 4)
    # Two bins: (0, .5] holds three rows, mean score .3 and label 1/3; (.5, 1] one, .9 and 1.
    assert expected_calibration_error(labels, scores, 2) == pytest.approx(
        0.75 * abs(1 / 3 - 0.3) + 0.25 * 0.1
    )
    assert scale_drift([np.array([0.2, 0.4]), np.array([0.5]), np.array([0.1])]) == pytest.approx(
        (0.2 + 0.4) / 2
    )


def test_edges_of_bins_belong_to_the_lower_one():
    _, _, count = reliability([0, 1, 1, 0], [0.0, 0.5, 1.0, 0.50001], 2)
    assert count.tolist() == [2, 2]


def test_the_interval_resamples_questions():
    """A draw's AUC is that of the rows laid out as often as their question was drawn."""
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 30), rng.integers(0, 6, 30) / 6
    names = np.array([f"q{i // 3}" for i in range(30)])
    from workbench.seeding import generator

    draws = generator("bootstrap", 0, 10).integers(0, 10, (400, 10))
    values = []
    for draw in draws:
        index = np.concatenate([np.flatnonzero(names == f"q{q}") for q in draw])
        values.append(roc_auc_score(labels[index], scores[index]))
    found = auc_interval(labels, scores, names, CONFIG)
    assert found.value == pytest.approx(roc_auc_score(labels, scores)) and found.n == 10
    np.testing.assert_allclose((found.low, found.high), np.percentile(values, [2.5, 97.5]))


def test_copies_of_a_row_in_its_question_narrow_nothing():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 60)
    scores, names = rng.random(60) + 0.4 * labels, [f"q{i}" for i in range(60)]
    once = auc_interval(labels, scores, names, CONFIG)
    often = auc_interval(np.repeat(labels, 5), np.repeat(scores, 5), np.repeat(names, 5), CONFIG)
    assert (often.low, often.high, often.n) == pytest.approx((once.low, once.high, once.n))
    rows = auc_interval(np.repeat(labels, 5), np.repeat(scores, 5), range(300), CONFIG)
    assert rows.high - rows.low < 0.6 * (once.high - once.low)


def test_p_is_about_one_half():
    rng = np.random.default_rng(2)
    labels, names = np.arange(80) % 2, range(80)
    blind, sharp = rng.random(80), rng.random(80) + labels
    assert auc_interval(labels, blind, names, CONFIG).p > 0.1
    found = auc_interval(labels, sharp, names, CONFIG)
    assert found.p < 0.01 and found.excludes(0.5)


def test_resamples_without_an_auc_are_left_out():
    labels, scores, names = [1, 0, 0], [0.9, 0.1, 0.95], ["a", "b", "c"]
    found = auc_interval(labels, scores, names, CONFIG)
    assert found.value == 0.5 and 0 <= found.low <= found.high <= 1
    alone = auc_interval(labels, scores, ["a", "a", "a"], CONFIG)
    assert alone.value == 0.5 and np.isnan(alone.low) and alone.n == 1


def test_of_a_mean_it_is_the_other_bootstrap():
    values = np.random.default_rng(3).normal(size=25)
    found = bootstrap_statistic(lambda counts: counts @ values / 25, 25, CONFIG)
    other = bootstrap_mean(values, CONFIG)
    assert (found.value, found.low, found.high, found.p) == pytest.approx(
        (other.value, other.low, other.high, other.p)
    )


@pytest.mark.parametrize("measure", [auc, brier, expected_calibration_error])
def test_bad_scores(measure):
    with pytest.raises(WorkbenchError, match="1 of 3 scores"):
        measure([0, 1, 1], [0.2, np.nan, 0.4])
    with pytest.raises(WorkbenchError, match="one 0 or 1 per row"):
        measure([0, 1], [0.2, 0.3, 0.4])
    with pytest.raises(WorkbenchError, match="0 of 0 scores"):
        measure([], [])


def test_more_bad_input():
    with pytest.raises(WorkbenchError, match="one class"):
        auc([1, 1], [0.2, 0.4])
    with pytest.raises(WorkbenchError, match="undefined"):
        auc_interval([1, 1], [0.2, 0.4], ["a", "b"])
    with pytest.raises(WorkbenchError, match="3 questions for 2 rows"):
        auc_interval([1, 0], [0.2, 0.4], ["a", "b", "c"])
    with pytest.raises(WorkbenchError, match=r"outside \[0, 1\]"):
        brier([1, 0], [1.2, 0.4])
    for means in ([], [np.ones(3)], [np.ones(3), np.array([])], [np.ones(2), np.array([np.nan])]):
        with pytest.raises(WorkbenchError, match="no drift"):
            scale_drift(means)
