"""The bootstrap against SciPy, exact enumeration and hand cases."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from workbench.errors import WorkbenchError
from workbench.inference import (
    BootstrapConfig,
    bootstrap_mean,
    bootstrap_means,
    hierarchical_bootstrap,
)
from workbench.inference import bootstrap as module
from workbench.seeding import generator

FEW = BootstrapConfig(draws=400)
FLOATS = st.floats(-5, 5, allow_nan=False, width=32)


def test_equals_scipy_given_the_same_generator():
    values = np.random.default_rng(3).gamma(0.5, size=137)
    config = BootstrapConfig(draws=2_000, level=0.9, seed=11)
    ours = bootstrap_mean(values, config)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=2_000, confidence_level=0.9, method="percentile",
        vectorized=True, rng=generator("bootstrap", 11, 137),
    ).confidence_interval  # fmt: skip
    assert ours.value == pytest.approx(values.mean())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert (ours.n, ours.level, ours.seeds) == (137, 0.9, 1)


def test_block_size_does_not_change_the_draws(monkeypatch):
    values = np.random.default_rng(0).normal(size=(50, 2))

    def ends():
        intervals = [*bootstrap_means(values, FEW), hierarchical_bootstrap(values.T, FEW)]
        return [end for i in intervals for end in (i.low, i.high)]

    whole = ends()
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", 50 * 7)
    assert ends() == pytest.approx(whole, rel=1e-12)


def test_against_exact_enumeration():
    """All 3^3 resamples of [0, 0, 3]: P(mean 0) = 8/27, so the 20 % tail starts at 0."""
    values = [0.0, 0.0, 3.0]
    exact = sorted(np.mean(r) for r in itertools.product(values, repeat=3))
    config = BootstrapConfig(draws=40_000, level=0.6)
    interval = bootstrap_mean(values, config)
    assert interval.low == pytest.approx(np.quantile(exact, 0.2)) == 0.0
    assert interval.high == pytest.approx(np.quantile(exact, 0.8))
    assert interval.p == pytest.approx(2 * 8 / 27, abs=0.01)


def test_p_value_of_a_clear_and_of_no_difference():
    config = BootstrapConfig(draws=999)
    assert bootstrap_mean(np.linspace(1, 2, 40), config).p == pytest.approx(2 / 1000)
    assert bootstrap_mean(np.zeros(40), config).p == 1.0


def test_same_questions_are_resampled_together():
    values = np.random.default_rng(5).normal(size=60)
    first, second = bootstrap_means(np.stack([values, values + 10], axis=1), FEW)
    assert second.low - first.low == pytest.approx(10)
    assert second.high - first.high == pytest.approx(10)


def test_constant_values_have_an_interval_of_no_width():
    interval = bootstrap_mean(np.full(31, 0.1), FEW)
    assert (interval.low, interval.high) == (0.1, 0.1)


def test_one_question_gives_no_interval():
    interval = bootstrap_mean([0.7])
    assert interval.value == 0.7 and np.isnan(interval.low) and np.isnan(interval.high)
    assert not interval.excludes(0.0)


@pytest.mark.parametrize("bad", [[], [1.0, np.nan], [np.inf, 0.0], [[1.0, 2.0]]])
def test_bad_values_are_refused(bad):
    with pytest.raises(WorkbenchError):
        bootstrap_mean(bad)


def test_hierarchical_variance_matches_its_formula():
    """Var = [between-seed variance + mean within-seed variance / n] / S, all with divisor S, n."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=(4, 30)) + np.array([0.0, 0.3, 0.6, 0.9])[:, None]
    variance = (values.mean(1).var() + values.var(1).mean() / 30) / 4
    interval = hierarchical_bootstrap(values, BootstrapConfig(draws=20_000))
    assert interval.value == pytest.approx(values.mean())
    half = (interval.high - interval.low) / 2
    assert half == pytest.approx(1.96 * np.sqrt(variance), rel=0.03)
    assert (interval.n, interval.seeds) == (30, 4)


def test_hierarchical_of_equal_constant_seeds_and_of_distinct_ones():
    assert hierarchical_bootstrap(np.full((3, 5), 2.0), FEW).low == 2.0
    apart = hierarchical_bootstrap([[0.0] * 6, [1.0] * 6], BootstrapConfig(draws=4_000))
    assert (apart.low, apart.value, apart.high) == (0.0, 0.5, 1.0), "2.5 % < P(both seeds 0)"


def test_seeds_widen_the_interval():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3, 200)) + np.array([-1.0, 0.0, 1.0])[:, None]
    flat = bootstrap_mean(values.mean(axis=0))
    deep = hierarchical_bootstrap(values)
    assert deep.high - deep.low > 3 * (flat.high - flat.low)


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(2, 40), elements=FLOATS))
def test_interval_contains_the_mean_and_lies_in_the_range(values):
    interval = bootstrap_mean(values, FEW)
    slack = 1e-9
    assert interval.low - slack <= interval.value <= interval.high + slack
    assert values.min() - slack <= interval.low and interval.high <= values.max() + slack
    assert 0 < interval.p <= 1


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, st.integers(2, 30), elements=FLOATS), FLOATS, st.floats(0.125, 4))
def test_interval_moves_and_scales_with_the_data(values, shift, scale):
    base, moved = bootstrap_mean(values, FEW), bootstrap_mean(values * scale + shift, FEW)
    assert moved.low == pytest.approx(base.low * scale + shift, abs=1e-6)
    assert moved.high == pytest.approx(base.high * scale + shift, abs=1e-6)
