"""What intervals allow to say."""

import numpy as np
import pytest

from workbench.reporting.claims import claim, verdict


@pytest.mark.parametrize(
    ("low", "high", "metric", "said"),
    [
        (0.01, 0.09, "em", "better"),
        (-0.09, -0.01, "em", "worse"),
        (0.01, 0.09, "direct", "higher"),
        (-0.09, -0.01, "searches", "lower"),
        (-0.01, 0.09, "em", "no difference shown"),
        (0.0, 0.09, "em", "no difference shown"),
        (np.nan, np.nan, "em", "no difference shown"),
    ],
)
def test_only_the_interval_decides(low, high, metric, said):
    assert verdict({"low": low, "high": high}, metric) == said


def test_a_claim_names_both_sides_numbers_and_what_they_rest_on():
    row = {"value": 0.05, "low": 0.01, "high": 0.09, "n": 300, "seeds": 3}
    assert claim(row, "search_r1", "base", "em", "greedy") == (
        "EM (greedy): Search-R1 is better than base policy: "
        "+0.050 [+0.010, +0.090], n = 300 x 3 seeds"
    )
    none = claim({**row, "low": -0.01}, "search_r1", "base", "em")
    assert "no difference between Search-R1 and base policy is shown" in none
