"""Question means, mean intervals and paired differences of tidy frames."""

import numpy as np
import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.inference import BootstrapConfig, bootstrap_mean, hierarchical_bootstrap
from workbench.inference.paired import (
    difference_matrix,
    mean_intervals,
    paired_differences,
    question_means,
)

FEW = BootstrapConfig(draws=500)


def frame(rows, columns=("item_id", "em")):
    return pd.DataFrame(rows, columns=list(columns))


def test_samples_of_a_question_are_averaged_first():
    data = frame([("a", 1.0), ("a", 0.0), ("a", 0.0), ("a", 0.0), ("b", 1.0)])
    row = mean_intervals(data, ["em"], config=FEW).iloc[0]
    assert row["value"] == pytest.approx((0.25 + 1.0) / 2), "not the 2/5 of pooled rollouts"
    assert row["n"] == 2
    expected = bootstrap_mean([0.25, 1.0], FEW)
    assert (row["low"], row["high"]) == (expected.low, expected.high)


def test_booleans_and_missing_samples():
    data = frame([("a", True), ("a", None), ("b", False), ("c", None)])
    assert question_means(data, ["em"])["em"].tolist()[:2] == [1.0, 0.0]
    assert mean_intervals(data, ["em"], config=FEW)["n"].tolist() == [2]
    empty = mean_intervals(frame([("c", np.nan)]), ["em"], config=FEW).iloc[0]
    assert empty["n"] == 0 and np.isnan(empty["value"])


def test_groups_and_metrics_give_one_row_each():
    data = frame(
        [("a", 1, 2.0, "x"), ("b", 0, 4.0, "x"), ("c", 1, np.nan, "y")],
        ("item_id", "em", "searches", "category"),
    )
    table = mean_intervals(data, ["em", "searches"], by=["category"], config=FEW)
    assert table[["category", "metric"]].values.tolist() == [
        ["x", "em"], ["x", "searches"], ["y", "em"], ["y", "searches"],
    ]  # fmt: skip
    assert table["value"].tolist()[:3] == [0.5, 3.0, 1.0]
    assert table["n"].tolist() == [2, 2, 1, 0]


def test_pairing_is_by_question_and_order_does_not_matter():
    ours = frame([("b", 1.0), ("a", 0.5), ("c", 1.0)])
    base = frame([("a", 0.0), ("c", 1.0), ("b", 0.0), ("b", 1.0)])
    row = paired_differences(ours, base, ["em"], config=FEW).iloc[0]
    assert row["value"] == pytest.approx((0.5 + 0.5 + 0.0) / 3)
    expected = bootstrap_mean([0.5, 0.5, 0.0], FEW)
    assert (row["low"], row["high"], row["n"]) == (expected.low, expected.high, 3)


def test_pairing_removes_what_the_questions_share():
    hard = np.random.default_rng(0).random(80).round()
    ours = frame([(f"q{i}", h) for i, h in enumerate(hard)])
    base = frame([(f"q{i}", h - 0.1) for i, h in enumerate(hard)])
    row = paired_differences(ours, base, ["em"], config=FEW).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx((0.1, 0.1))


def test_seeds_are_paired_by_value_or_with_one_reference():
    columns = ("item_id", "seed", "em")
    ours = frame([("a", 1, 1.0), ("b", 1, 0.0), ("a", 2, 1.0), ("b", 2, 1.0)], columns)
    base = frame([("a", 0, 0.0), ("b", 0, 0.5)], columns)
    matrix = difference_matrix(ours, base, "em", seed="seed")
    assert matrix.tolist() == [[1.0, -0.5], [1.0, 0.5]]
    row = paired_differences(ours, base, ["em"], seed="seed", config=FEW).iloc[0]
    expected = hierarchical_bootstrap(matrix, FEW)
    assert (row["value"], row["low"], row["seeds"]) == (expected.value, expected.low, 2)
    other = ours.assign(em=ours["em"] - ours["seed"])
    assert difference_matrix(ours, other, "em", seed="seed").tolist() == [[1, 1], [2, 2]]
    with pytest.raises(WorkbenchError, match="seeds differ"):
        difference_matrix(ours, ours.assign(seed=ours["seed"] + 1), "em", seed="seed")


def test_unmatched_questions_are_refused_and_named():
    ours, base = frame([("a", 1.0), ("b", 1.0)]), frame([("a", 0.0)])
    with pytest.raises(WorkbenchError, match="1 questions lack 'em'.*b"):
        paired_differences(ours, base, ["em"])
    with pytest.raises(WorkbenchError, match="no rows for"):
        paired_differences(
            ours.assign(category="x"), base.assign(category="y"), ["em"], by=["category"]
        )
    with pytest.raises(WorkbenchError, match="no column 'f1'"):
        paired_differences(ours, base, ["f1"])


def test_means_over_seeds_resample_the_seeds():
    rows = [("a", 1, 1.0), ("b", 1, 1.0), ("a", 2, 0.0), ("b", 2, 0.0), ("c", 1, 1.0)]
    data = frame(rows, ("item_id", "seed", "em"))
    row = mean_intervals(data, ["em"], seed="seed", config=FEW).iloc[0]
    expected = hierarchical_bootstrap([[1.0, 1.0], [0.0, 0.0]], FEW)
    assert (row["value"], row["low"], row["high"]) == (0.5, expected.low, expected.high)
    assert (row["n"], row["seeds"]) == (2, 2), "c lacks a seed"
    one = mean_intervals(data[data["seed"] == 1], ["em"], seed="seed", config=FEW).iloc[0]
    assert (one["value"], one["seeds"], one["n"]) == (1.0, 1, 3)
