"""What intervals allow to say."""

import numpy as np
import pandas as pd
import pytest

from workbench.reporting.claims import claim, told_apart, verdict
from workbench.reporting.numbers import decimal


@pytest.mark.parametrize(
    ("low", "high", "metric", "said"),
    [
        (0.01, 0.09, "em", "better"),
        (-0.09, -0.01, "em", "worse"),
        (0.01, 0.09, "direct", "higher"),
        (-0.09, -0.01, "searches", "lower"),
        (-0.01, 0.09, "em", "no difference shown"),
        (0.0, 0.09, "em", "no difference shown"),
        (3e-17, 0.09, "em", "no difference shown"),
        (-0.09, -3e-17, "em", "no difference shown"),
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
    alone = claim({**row, "low": np.nan, "high": np.nan, "n": 1}, "oo", "base", "em")
    assert "is shown: +0.050 [no interval]" in alone
    none = claim({**row, "low": -0.01}, "search_r1", "base", "em")
    assert "no difference between Search-R1 and base policy is shown" in none


def test_what_rounds_to_zero_has_no_sign():
    row = {"value": 0.035, "low": -1e-17, "high": 0.07, "n": 200}
    assert claim(row, "rgv", "majority", "accuracy").endswith("+0.035 [0.000, +0.070], n = 200")


@pytest.mark.parametrize(
    ("value", "digits", "plain", "signed"),
    [
        (-1e-17, 3, "0.000", "0.000"),
        (-0.0, 0, "0", "0"),
        (0.00049, 3, "0.000", "0.000"),
        (-0.0005001, 3, "-0.001", "-0.001"),
        (0.5, 2, "0.50", "+0.50"),
        (10.0, 0, "10", "+10"),
        (np.nan, 3, "nan", "+nan"),
    ],
)
def test_decimals(value, digits, plain, signed):
    assert decimal(value, digits) == plain
    assert decimal(value, digits, signed=True) == signed


def test_only_what_intervals_tell_apart_is_printed(capsys):
    rows = pd.DataFrame(
        [("oo", "em", 0.2, 0.1, 0.3, 10, 1), ("oo", "f1", 0.2, -0.1, 0.3, 10, 2)],
        columns=["condition", "metric", "value", "low", "high", "n", "hops"],
    )
    told_apart(rows, "base", "sampled", "hops")
    first, only = capsys.readouterr().out.splitlines()
    assert first.startswith("1 of 2 ")
    assert only == claim(rows.iloc[0], "oo", "base", "em", "sampled, hops 1")
