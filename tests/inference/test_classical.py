"""Wilson, t and Holm against hand-computed values."""

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.inference import holm, t_interval, wilson


def test_wilson_by_hand():
    """3 of 10, z = 1.959964: centre (3 + z²/2)/(10 + z²), half z/(10 + z²)·sqrt(2.1 + z²/4)."""
    z2 = 1.959964**2
    centre = (3 + z2 / 2) / (10 + z2)
    half = 1.959964 / (10 + z2) * np.sqrt(2.1 + z2 / 4)
    share = wilson(3, 10)
    assert (share.value, share.n) == (0.3, 10)
    assert (share.low, share.high) == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert wilson(0, 5).low == 0.0 and wilson(0, 5).high > 0.3


@pytest.mark.parametrize(("k", "n"), [(1, 0), (3, 2), (-1, 4)])
def test_wilson_refuses_what_is_no_share(k, n):
    with pytest.raises(WorkbenchError):
        wilson(k, n)


def test_t_half_width_over_four_seeds_is_1_59_sd():
    runs = [0.1, 0.2, 0.4, 0.5]
    interval = t_interval(runs)
    assert interval.high - interval.value == pytest.approx(1.5912 * np.std(runs, ddof=1), rel=1e-4)
    assert (interval.n, interval.seeds) == (4, 4)
    assert np.isnan(t_interval([0.3]).low)


def test_a_t_interval_is_cut_at_the_values_that_are_possible():
    whole, cut = t_interval([0.0, 0.1]), t_interval([0.0, 0.1], within=(0.0, 1.0))
    assert whole.low < 0.0 == cut.low and cut.high == whole.high < 1.0
    assert t_interval([0.9, 1.0], within=(0.0, 1.0)).high == 1.0
    assert np.isnan(t_interval([0.3], within=(0.0, 1.0)).low)


def test_holm_by_hand_and_as_printed_in_s1():
    """Steps m·p, running maximum, cut at 1: the .001s of S1 Table 2 print as .004."""
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.001] * 4) == pytest.approx([0.004] * 4)
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    with pytest.raises(WorkbenchError):
        holm([0.2, np.nan])
