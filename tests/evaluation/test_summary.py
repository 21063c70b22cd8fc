"""Means over questions, exposure bins and group shares."""

import numpy as np
import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.metrics import evaluate
from workbench.evaluation.summary import exposure_bin, exposure_curve, group_shares, summarise
from workbench.inference import BootstrapConfig, bootstrap_mean, wilson

FEW = BootstrapConfig(draws=300)


@pytest.fixture
def frame(make_item, make_trajectory):
    """q1: 2 of 2 right, direct and searched; q2: 1 of 2, searched; q3: lost altogether."""
    items = [make_item(f"q{i}", exposures=e) for i, e in ((1, 64), (2, 0), (3, 1))]
    rollouts = [
        make_trajectory("q1"),
        make_trajectory("q1", sample=1, searches=1),
        make_trajectory("q2", searches=2),
        make_trajectory("q2", sample=1, searches=1, answer="Oslo"),
    ]
    return evaluate(items, rollouts, expected=2)


def test_missing_rollouts_stay_in_the_denominator(frame):
    table = summarise(frame, config=FEW).set_index("metric")
    assert table.loc["em", "value"] == pytest.approx((1.0 + 0.5 + 0.0) / 3)
    assert (table.loc["em", "n"], table.loc["em", "rollouts"]) == (3, 6)
    expected = bootstrap_mean([1.0, 0.5, 0.0], FEW)
    assert (table.loc["em", "low"], table.loc["em", "high"]) == (expected.low, expected.high)
    assert table.loc["missing", "value"] == pytest.approx(1 / 3)
    assert table.loc["searches", "value"] == pytest.approx((0.5 + 1.5) / 2)
    assert table.loc["searches", "n"] == 2, "no searches are known of a lost rollout"


def test_groups(frame):
    frame = frame.assign(condition=["a", "a", "b", "b", "b", "b"])
    table = summarise(frame, by=["condition"], metrics=["em"], config=FEW)
    assert table["value"].tolist() == [1.0, 0.25]
    assert table["rollouts"].tolist() == [2, 4]


def test_exposure_bins_are_powers_of_two():
    counts = [0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 63, 64, 1000]
    names = "0 1 2-3 2-3 4-7 4-7 8-15 16-31 16-31 32-63 32-63 64+ 64+".split()
    assert list(exposure_bin(np.array(counts))) == names
    assert exposure_bin(pd.Series([64, 0])).ordered
    with pytest.raises(WorkbenchError):
        exposure_bin([-1])


def test_exposure_curve_is_in_the_order_of_exposure(frame):
    curve = exposure_curve(frame, config=FEW)
    assert curve["exposure_bin"].astype(str).tolist() == ["0", "1", "64+"]
    assert curve["value"].tolist() == [0.5, 0.0, 1.0]
    direct = exposure_curve(frame, metric="direct", config=FEW)
    assert direct["value"].tolist()[0] == 0.0 and direct["value"].tolist()[2] == 0.5


def test_group_shares_with_wilson_intervals(frame):
    table = group_shares(frame).set_index("metric")
    assert table["value"].to_dict() == {
        "mixed": pytest.approx(1 / 3), "both_modes": pytest.approx(1 / 3),
        "all_right": pytest.approx(1 / 3), "all_wrong": pytest.approx(1 / 3),
    }  # fmt: skip
    assert table.loc["mixed", "n"] == 3
    assert table.loc["mixed", "high"] == wilson(1, 3).high
    with pytest.raises(WorkbenchError, match="two rollouts"):
        group_shares(frame.drop_duplicates("item_id"))
    split = group_shares(frame.assign(half=frame["item_id"] == "q1"), by=["half"])
    assert len(split) == 8 and split["n"].sum() == 4 * 3
