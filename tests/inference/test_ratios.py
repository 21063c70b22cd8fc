"""Ratios of sums: hand values, sets that differ between seeds, and their intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import bootstrap

from workbench.errors import WorkbenchError
from workbench.inference.bootstrap import BootstrapConfig, bootstrap_mean
from workbench.inference.ratios import ratio_interval, ratio_intervals

FEW = BootstrapConfig(draws=500)


def test_the_value_is_a_ratio_of_sums():
    found = ratio_interval([1.0, 0.0, 3.0, 0.0], [2.0, 1.0, 3.0, 0.0], FEW)
    assert found.value == pytest.approx(4 / 6)
    assert (found.n, found.seeds) == (3, 1)
    assert found.low < found.value < found.high and np.isnan(found.p)
    assert ratio_interval([1.0, 0.0, 3.0, 0.0], [2.0, 1.0, 3.0, 0.0], FEW) == found


def test_with_denominators_of_one_it_is_the_bootstrap_of_a_mean():
    values = np.random.default_rng(0).random(80)
    config = BootstrapConfig(draws=20_000)
    ratio, mean = ratio_interval(values, np.ones(80), config), bootstrap_mean(values, config)
    assert ratio.value == pytest.approx(mean.value)
    assert (ratio.low, ratio.high) == pytest.approx((mean.low, mean.high), abs=3e-3)


def test_intervals_agree_with_scipys_paired_bootstrap():
    rng = np.random.default_rng(1)
    below = rng.integers(0, 4, 60).astype(float)
    above = rng.binomial(below.astype(int), 0.3).astype(float)
    found = ratio_interval(above, below, BootstrapConfig(draws=20_000))
    theirs = bootstrap(
        (above, below), lambda a, b, axis=-1: a.sum(axis) / b.sum(axis), paired=True,
        vectorized=True, method="percentile", n_resamples=20_000, rng=rng,
    ).confidence_interval  # fmt: skip
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_seeds_have_sets_of_their_own():
    """Seed 0: 1 of 2; seed 1: 3 of 4 on other questions; their mean, not 4 of 6."""
    above = np.array([[1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0]], float)
    below = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]], float)
    found = ratio_interval(above, below, FEW)
    assert found.value == pytest.approx((0.5 + 0.75) / 2)
    assert (found.n, found.seeds) == (6, 2)
    below[0] = 0
    assert ratio_interval(np.zeros_like(above) + above * below, below, FEW).value == 0.75


def test_seeds_are_resampled():
    """Two seeds that are constant in themselves: what varies is which of them are drawn."""
    below = np.ones((2, 50))
    found = ratio_interval(np.array([[0.2], [0.8]]) * below, below, FEW)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.2, 0.8))


def test_a_constant_ratio_has_no_width():
    below = np.array([1.0, 2, 0, 3, 1])
    found = ratio_interval(0.25 * below, below, FEW)
    assert (found.value, found.low, found.high) == (0.25, 0.25, 0.25)


def test_nothing_to_divide_by():
    found = ratio_interval([0.0, 0.0], [0.0, 0.0], FEW)
    assert np.isnan([found.value, found.low, found.high]).all() and found.n == 0
    one = ratio_interval([1.0, 0.0], [2.0, 0.0], FEW)
    assert one.value == 0.5 and np.isnan(one.low) and one.n == 1


@pytest.mark.parametrize(
    ("above", "below"),
    [([1], [1, 2]), ([], []), ([np.nan, 1], [1, 1]), ([1, 1], [1, -1]), ([1, 1], [1, np.inf])],
)
def test_what_is_no_ratio_is_refused(above, below):
    with pytest.raises(WorkbenchError, match="a ratio of"):
        ratio_interval(above, below)


FRAME = pd.DataFrame(
    {
        "item_id": ["a", "a", "b", "a", "b", "c"],
        "policy": ["x", "x", "x", "y", "y", "y"],
        "seed": [0, 1, 0, 0, 0, 1],
        "hit": [1.0, 0.0, 1.0, np.nan, 2.0, 1.0],
        "of": [1.0, 1.0, 2.0, 1.0, np.nan, 4.0],
    }
)


def test_frames_are_summed_per_question():
    table = ratio_intervals(FRAME, {"m": ("hit", "of"), "n": ("of", "of")}, config=FEW)
    assert table["metric"].tolist() == ["m", "n"]
    assert table["value"].tolist() == pytest.approx([3 / 8, 1.0])
    assert table.loc[0, "n"] == 3
    by = ratio_intervals(FRAME, {"m": ("hit", "of")}, by=["policy"], config=FEW)
    assert dict(zip(by["policy"], by["value"])) == {"x": 0.5, "y": 0.25}
    seeds = ratio_intervals(FRAME, {"m": ("hit", "of")}, seed="seed", config=FEW)
    assert seeds.loc[0, "value"] == pytest.approx((2 / 3 + 1 / 5) / 2)
    assert seeds.loc[0, "seeds"] == 2
    empty = ratio_intervals(FRAME[:0], {"m": ("hit", "of")}, config=FEW)
    assert empty.loc[0, "n"] == 0 and np.isnan(empty.loc[0, "value"])


def test_a_missing_column_is_named():
    with pytest.raises(WorkbenchError, match="'gone'"):
        ratio_intervals(FRAME, {"m": ("hit", "gone")})
