"""The study's sets, groups and contrasts, on a frame whose differences are known."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.credit_study import (
    CONDITIONS,
    CONTRASTS,
    GAINS,
    SETS,
    TABLE_9,
    differences,
    hop_group,
    leave_one_out,
    question_set,
    trained_of,
    with_sets,
)
from workbench.inference.bootstrap import BootstrapConfig
from workbench.methods.registry import load_condition
from workbench.questions.categories import CATEGORIES

CONFIG = BootstrapConfig(draws=200)
LIFT = {"oo": 0.0, "cov_local": 0.3, "cov_scalar": 0.1}


@pytest.fixture
def items(make_item):
    """Two one-hop, two chains of three hops, one that names its root."""
    made = [make_item(f"a{n}") for n in range(2)]
    made += [make_item(f"b{n}", category="3-hop-1, chain") for n in range(2)]
    return [*made, make_item("c0", category="2-hop, chain", roots="named")]


@pytest.fixture
def frame(items):
    """F1 is the condition's lift, only on multi-hop questions, plus what a question is worth."""
    rows = [
        (name, seed, item.item_id, item.category, place / 10 + lift * (item.category[0] != "1"))
        for (name, lift), seed, (place, item) in itertools.product(
            LIFT.items(), (0, 1), enumerate(items)
        )
    ]
    columns = ["condition", "training_seed", "item_id", "category", "f1"]
    return with_sets(pd.DataFrame(rows, columns=columns), items)


def test_every_condition_is_an_entry_of_params_and_every_contrast_is_of_them():
    for name in CONDITIONS:
        assert load_condition(name).paper.startswith("S3")
    assert len(CONDITIONS) == 13 == len(GAINS) + 1
    for contrast in (*CONTRASTS, *GAINS, *TABLE_9):
        assert {contrast.ours, contrast.reference} <= set(CONDITIONS)
    assert {c.panel for c in CONTRASTS} == {"a", "b", "c"}


def test_sets_and_groups(items, frame):
    assert [question_set(i) for i in items] == [
        "1-hop, single", "1-hop, single", "3-hop-1, chain", "3-hop-1, chain", "2-hop, chain",
    ]  # fmt: skip
    assert question_set(replace(items[0], roots="named")) == "1-hop, single, named"
    assert {c: hop_group(c) for c in CATEGORIES} == {
        c: "single-hop" if c.startswith("1") else "multi-hop" for c in CATEGORIES
    }
    assert hop_group("12-hop") == "multi-hop"
    assert frame["hop_group"].value_counts().to_dict() == {"multi-hop": 18, "single-hop": 12}
    assert set(frame["question_set"]) <= set(SETS)
    with pytest.raises(WorkbenchError, match="how many hops"):
        hop_group("NQ")
    with pytest.raises(WorkbenchError, match="not given"):
        with_sets(frame, items[:1])


def test_differences_weigh_every_question_the_same(frame):
    table = differences(frame, [*CONTRASTS, *GAINS], config=CONFIG)
    pairs = set(zip(table["condition"], table["reference"]))
    assert pairs == {("cov_local", "cov_scalar"), ("cov_local", "oo"), ("cov_scalar", "oo")}
    rows = table.set_index(["condition", "reference", "hop_group"]).sort_index()
    gain = rows.loc[("cov_local", "oo")]
    assert gain["value"].to_dict() == pytest.approx(
        {"all": 0.3 * 3 / 5, "multi-hop": 0.3, "single-hop": 0.0}
    )
    assert gain["n"].to_dict() == {"all": 5, "multi-hop": 3, "single-hop": 2}
    assert set(table["seeds"]) == {2}
    assert rows.loc[("cov_local", "cov_scalar", "multi-hop"), "panel"] == "a"
    assert gain.loc["multi-hop", "low"] == pytest.approx(0.3)  # every question gains the same


def test_costs_are_compared_over_all_questions_only(frame):
    wider = frame.assign(searches=frame["f1"] * 2)
    table = differences(wider, GAINS, overall=["searches"], config=CONFIG)
    kept = table.groupby("metric")["hop_group"].unique().map(sorted).to_dict()
    assert kept == {"f1": ["all", "multi-hop", "single-hop"], "searches": ["all"]}
    values = table[table["hop_group"] == "all"].pivot(
        index="condition", columns="metric", values="value"
    )
    assert values["searches"].tolist() == pytest.approx((2 * values["f1"]).tolist())


def test_leaving_a_set_out_changes_the_weights(frame):
    table = leave_one_out(frame, config=CONFIG)
    assert set(table["condition"]) == {"cov_local"}
    left = table.set_index("omitted")
    assert list(left.index) == ["none", "1-hop, single", "2-hop, chain", "3-hop-1, chain"]
    assert left["n"].tolist() == [5, 3, 4, 3]
    assert left["value"].tolist() == pytest.approx([0.18, 0.3, 0.15, 0.1])


def test_a_single_set_cannot_be_left_out(frame):
    one = frame[frame["question_set"] == "2-hop, chain"]
    assert leave_one_out(one, config=CONFIG)["omitted"].tolist() == ["none"]


def test_conditions_that_were_not_trained_leave_empty_tables(frame):
    lonely = frame[frame["condition"] == "oo"]
    assert trained_of(CONTRASTS, {"oo", "cov_local"}) == []
    for table in (differences(lonely, GAINS, config=CONFIG), leave_one_out(lonely, config=CONFIG)):
        assert table.empty and "value" in table.columns


def test_pairs_are_taken_seed_by_seed(frame):
    """Seeds that move both conditions alike leave no trace in the difference."""
    moved = frame.assign(f1=frame["f1"] + frame["training_seed"] * 5.0)
    table = differences(moved, GAINS, config=CONFIG)
    assert np.ptp(table[["low", "value", "high"]].to_numpy(), axis=1).max() < 0.31
    kept = differences(frame, GAINS, config=CONFIG)
    assert table["high"].tolist() == pytest.approx(kept["high"].tolist())
