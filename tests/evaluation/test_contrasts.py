"""Conditions against the base policy and against one another."""

import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.contrasts import against, with_total
from workbench.inference.bootstrap import BootstrapConfig

CONFIG = BootstrapConfig(draws=200)


@pytest.fixture
def frame():
    rows = []
    for question in range(6):
        category = "a" if question < 2 else "b"
        rows.append(("base", -1, category, f"q{question}", float(question == 0)))
        for seed in (0, 1):
            rows.append(("one", seed, category, f"q{question}", 1.0))
            rows.append(("two", seed, category, f"q{question}", float(question != 5 - seed)))
    columns = ["condition", "training_seed", "category", "item_id", "em"]
    return pd.DataFrame(rows, columns=columns)


def test_differences_are_paired_by_question_and_averaged_over_seeds(frame):
    table = against(with_total(frame), ["em"], ["category"], config=CONFIG)
    found = table.set_index(["condition", "category"])
    assert found.loc[("one", "all"), "value"] == pytest.approx(5 / 6)
    assert found.loc[("one", "a"), "value"] == pytest.approx(1 / 2)
    assert found.loc[("two", "b"), "value"] == pytest.approx(3 / 4)
    assert found.loc[("one", "all"), ["n", "seeds"]].tolist() == [6, 2]


def test_two_trained_conditions_are_paired_seed_by_seed(frame):
    table = against(frame, ["em"], (), ["one"], "two", CONFIG)
    assert table["value"].tolist() == pytest.approx([1 / 6])
    other_seed = frame.replace({"training_seed": {0: 5, 1: 7}})
    mixed = pd.concat(
        [other_seed[other_seed["condition"] == "one"], frame.query("condition == 'two'")]
    )
    with pytest.raises(WorkbenchError, match="none is common"):
        against(mixed, ["em"], (), ["one"], "two", CONFIG)



def test_no_conditions_give_no_rows_and_no_reference_is_an_error(frame):
    assert against(frame, ["em"], (), []).empty
    with pytest.raises(WorkbenchError, match="no rows of 'base'"):
        against(frame[frame["condition"] != "base"], ["em"])


@pytest.mark.parametrize(("reference", "value"), [("full", -0.5), ("part", 0.5)])
def test_only_common_seeds_are_paired(reference, value):
    """Seed 0 is all that both have: neither side's other seeds are compared with it."""
    rows = [("full", 0, 1.0), ("full", 1, 0.0), ("part", 0, 0.5)]
    frame = pd.DataFrame(
        [
            {"item_id": item, "condition": name, "training_seed": seed, "em": value}
            for item in ("a", "b")
            for name, seed, value in rows
        ]
    )
    found = against(frame, ["em"], reference=reference).iloc[0]
    assert (found["value"], found["seeds"]) == (value, 1)
    with pytest.raises(WorkbenchError, match="no rows of 'zz'"):
        against(frame, ["em"], (), ["zz"], reference)
