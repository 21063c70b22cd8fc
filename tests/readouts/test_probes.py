"""Probes: stored heads equal scikit-learn's, fits are reproducible, bad input is told."""

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.readouts.heads import Head, head_of
from workbench.readouts.metrics import auc
from workbench.readouts.probes import ARCHITECTURES, ProbeConfig, Unfit, fit_probe


def flat(separable, **changes):
    values, labels, _ = separable(**changes)
    return values[:, 1], labels


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_head_computes_what_the_pipeline_does(separable, architecture):
    states, labels = flat(separable)
    states[:, 3] = 2.5  # a constant column: its scale is 1
    probe = fit_probe(architecture, states, labels)
    head = head_of(probe, architecture, 7)
    new = np.random.default_rng(1).normal(size=(50, 8)) * 4
    np.testing.assert_allclose(head.score(new), probe.predict_proba(new)[:, 1], atol=1e-9)
    again = Head.of(architecture, 7, head.arrays())
    np.testing.assert_array_equal(again.score(new), head.score(new))
    assert (again.architecture, again.layer) == (architecture, 7)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_signal_is_found(separable, architecture):
    states, labels = flat(separable, questions=100)
    new, truth = flat(separable, seed=5)
    probe = fit_probe(architecture, states, labels)
    assert auc(truth, probe.predict_proba(new)[:, 1]) > 0.9  # 0.98 is possible at this shift


def test_architectures_are_those_of_the_paper(separable):
    states, labels = flat(separable)
    sizes = {}
    for architecture in ARCHITECTURES:
        sizes[architecture] = [w.shape[1] for w in head_of(
            fit_probe(architecture, states, labels, ProbeConfig(epochs=1)), architecture, 0
        ).weights]  # fmt: skip
    assert sizes == {
        "logistic": [1],
        "mlp-64": [64, 1],
        "mlp-128": [128, 1],
        "mlp-256-128": [256, 128, 1],
    }
    mlp = fit_probe("mlp-64", states, labels)[-1]
    assert mlp.alpha == 1e-4 and mlp.early_stopping and mlp.n_iter_ < 200


def test_classes_are_balanced_in_the_logistic(separable):
    rng = np.random.default_rng(0)
    labels = (np.arange(200) < 20).astype(int)
    states = rng.normal(size=(200, 2)) + labels[:, None]
    score = head_of(fit_probe("logistic", states, labels), "logistic", 0).score(states)
    assert 0.3 < score.mean() < 0.6  # unbalanced, the mean score is that of the labels, 0.1


@pytest.mark.parametrize("architecture", ["logistic", "mlp-64"])
def test_equal_seeds_are_equal_bits(separable, architecture):
    states, labels = flat(separable)
    first, second, other = (
        head_of(fit_probe(architecture, states, labels, seed=seed), architecture, 0)
        for seed in (3, 3, 4)
    )
    for a, b in zip(first.weights, second.weights):
        np.testing.assert_array_equal(a, b)
    if architecture != "logistic":
        assert not np.array_equal(first.weights[0], other.weights[0])


def test_scores_are_probabilities_even_far_out(separable):
    states, labels = flat(separable)
    head = head_of(fit_probe("logistic", states, labels), "logistic", 0)
    score = head.score(np.array([[1e6] * 8, [-1e6] * 8]))
    assert np.isfinite(score).all() and score.min() >= 0 and score.max() <= 1
    assert head.score(np.zeros((0, 8))).shape == (0,)


def test_one_class_is_unfit(separable):
    states, _ = flat(separable)
    with pytest.raises(Unfit, match="one class only"):
        fit_probe("logistic", states, np.ones(len(states)))
    with pytest.raises(Unfit, match="0 rows"):
        fit_probe("logistic", states[:0], np.zeros(0))


def test_too_few_rows_to_stop_early(separable):
    states = np.random.default_rng(0).normal(size=(30, 4))
    labels = (np.arange(30) < 9).astype(int)
    with pytest.raises(Unfit, match="9 rows of a class are too few"):
        fit_probe("mlp-64", states, labels)
    labels[9] = 1
    fit_probe("mlp-64", states, labels)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite(separable, value):
    states, labels = flat(separable)
    head = head_of(fit_probe("logistic", states, labels), "logistic", 0)
    states[4, 2] = value
    for call in (lambda: fit_probe("logistic", states, labels), lambda: head.score(states)):
        with pytest.raises(WorkbenchError, match="NaN or infinite") as error:
            call()
        assert error.value.where == "row 4" and not isinstance(error.value, Unfit)


def test_other_bad_input(separable):
    states, labels = flat(separable)
    with pytest.raises(WorkbenchError, match="no architecture 'svm'"):
        fit_probe("svm", states, labels)
    with pytest.raises(WorkbenchError, match="one 0 or 1 per row"):
        fit_probe("logistic", states, labels[:-1])
    with pytest.raises(WorkbenchError, match="one 0 or 1 per row"):
        fit_probe("logistic", states, labels * 2)
    head = head_of(fit_probe("logistic", states, labels), "logistic", 2)
    with pytest.raises(WorkbenchError, match=r"this head reads \[N, 8\]") as error:
        head.score(states[:, :5])
    assert "layer 2" in error.value.where
