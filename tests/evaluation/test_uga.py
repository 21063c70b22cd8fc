"""The five buckets and UGA of S1 Table A19."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.evaluation.metrics import evaluate
from workbench.evaluation.uga import BUCKETS, annotated_support, buckets, grounded_accuracy
from workbench.inference.bootstrap import BootstrapConfig

FEW = BootstrapConfig(draws=300)


def _row(name, em, searches, support):
    return {"item_id": name, "em": em, "searches": searches, "support": support}


def _frame(*rows):
    return pd.DataFrame([_row(f"q{i:03}", *row) for i, row in enumerate(rows)])


def test_published_shares_give_the_published_uga():
    """Table A19, Search-G1: .12 direct, .20 full, .08 partial, .03 unsupported: UGA .360."""
    rows = [(1, 0, np.nan)] * 12 + [(1, 1, 1.0)] * 20 + [(1, 2, 0.5)] * 8 + [(1, 1, 0.0)] * 3
    table = grounded_accuracy(buckets(_frame(*rows, *[(0, 1, np.nan)] * 57)), config=FEW)
    values = dict(zip(table["metric"], table["value"]))
    assert values == pytest.approx(
        dict(zip(BUCKETS, (0.12, 0.20, 0.08, 0.03, 0.57))) | {"uga": 0.36}
    )
    row = table.set_index("metric").loc["uga"]
    assert row["low"] < 0.36 < row["high"] and row["n"] == 100


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1]), st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0])),
        min_size=1,
    )
)
def test_every_rollout_is_in_one_bucket(rows):
    told = buckets(_frame(*rows))
    assert (told[list(BUCKETS)].sum(axis=1) == 1).all()
    assert told["uga"].between(0, told["em"]).all()


def test_lost_and_invalid_rollouts_are_incorrect(make_item, make_trajectory):
    items = [make_item("q1"), make_item("q2")]
    invalid = make_trajectory("q1", searches=1, valid=False)
    frame = evaluate(items, [invalid], expected=1).assign(support=1.0)
    assert buckets(frame)["incorrect"].tolist() == [1, 1]
    assert buckets(frame)["uga"].tolist() == [0, 0]


def test_support_from_annotated_passages():
    frame = pd.DataFrame({"cov": [1.0, 0.5, 0.0], "all_evidence": [1.0, 0.0, 0.0]})
    assert annotated_support(frame).tolist() == [1.0, 0.5, 0.0]
    with pytest.raises(WorkbenchError, match="evaluation.evidence"):
        annotated_support(frame[["cov"]])


def test_odd_input_is_refused():
    with pytest.raises(WorkbenchError, match="2 correct searched.*q000"):
        buckets(_frame((1, 1, np.nan), (1, 1, 0.7), (0, 1, np.nan)))
    with pytest.raises(WorkbenchError, match="no column 'labels'"):
        buckets(_frame((1, 1, 1.0)), support="labels")
    with pytest.raises(WorkbenchError, match="uga.buckets"):
        grounded_accuracy(_frame((1, 1, 1.0)))
