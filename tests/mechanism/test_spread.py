"""Within-question variance shares."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.inference.bootstrap import BootstrapConfig
from workbench.mechanism.spread import variance_by_copying, variance_shares


def _frame(**questions):
    rows = [(q, str(n), x) for q, values in questions.items() for n, x in enumerate(values)]
    return pd.DataFrame(rows, columns=["question_id", "rollout_id", "w"]).assign(correct=np.nan)


def _value(frame, config):
    return variance_shares(frame, ["w"], config=config).iloc[0]


def test_by_hand(few):
    # means 1 and 4, grand mean 2.5: within 1+1+1+1 = 4, total 4 + 4·1.5² = 13
    row = _value(_frame(a=[0, 2], b=[3, 5]), few)
    assert row["value"] == pytest.approx(4 / 13)
    assert (row["n"], row["rollouts"], row["single"], row["unscored"]) == (2, 4, 0, 0)


def test_questions_of_one_rollout_and_rollouts_without_score_are_counted(few):
    row = _value(_frame(a=[0, 2, np.nan], b=[3, 5], c=[9], d=[7, np.nan]), few)
    assert (row["n"], row["rollouts"], row["single"], row["unscored"]) == (2, 4, 2, 2)
    assert row["value"] == pytest.approx(4 / 13)


def test_undefined_shares_are_nan(few):
    assert np.isnan(_value(_frame(a=[0.1, 0.1], b=[0.1, 0.1, 0.1]), few)["value"])
    assert np.isnan(_value(_frame(a=[1], b=[2]), few)["value"])


def test_infinite_scores_are_refused(few):
    with pytest.raises(WorkbenchError, match="infinite"):
        _value(_frame(a=[0, np.inf]), few)


def test_extremes(few):
    assert _value(_frame(a=[0, 2], b=[0, 2]), few)["value"] == pytest.approx(1)
    flat = _value(_frame(a=[1, 1], b=[2, 2], c=[3, 3]), few)
    assert [flat["value"], flat["low"], flat["high"]] == pytest.approx([0, 0, 0])


SCORES = st.lists(
    st.lists(st.integers(-50, 50), min_size=2, max_size=5), min_size=2, max_size=5
)  # fmt: skip


@settings(max_examples=60)
@given(SCORES, st.floats(0.01, 100) | st.floats(-100, -0.01), st.floats(-100, 100))
def test_a_share_lies_in_0_1_and_no_affine_map_changes_it(lists, scale, shift):
    flat = [float(x) for values in lists for x in values]
    assume(len(set(flat)) > 1)
    config = BootstrapConfig(draws=100)
    frame = _frame(**{f"q{n}": values for n, values in enumerate(lists)})
    row = _value(frame, config)
    assert 0 <= row["value"] <= 1 and -1e-12 <= row["low"] <= row["high"] <= 1 + 1e-12
    mapped = _value(frame.assign(w=scale * frame["w"] + shift), config)
    for column in ("value", "low", "high"):
        assert mapped[column] == pytest.approx(row[column], abs=1e-6)
    within = sum(len(v) * np.var(v) for v in lists)
    assert row["value"] == pytest.approx(within / (len(flat) * np.var(flat)))


def _shares(**questions):
    return pd.DataFrame(
        [(q, x) for q, values in questions.items() for x in values],
        columns=["question_id", "share"],
    )


def test_bins_of_copy_share_by_hand(few):
    frame = _frame(a=[0, 2], b=[0, 2], c=[0, 0], d=[4, 4], e=[1, 2], f=[5])
    shares = _shares(a=[0.5], b=[0.7, 0.5], c=[0.9, 1.0], d=[1.0], e=[np.nan], f=[0.5])
    table = variance_by_copying(frame, "w", shares, [0.0, 0.9, 1.0], few).set_index("bin")
    assert table["value"].tolist() == pytest.approx([1, 0, -1])
    assert table["n"].tolist() == [2, 2, 4]
    assert table["copy_share"].tolist()[:2] == pytest.approx([0.55, 0.975])
    assert table.loc["last - first", "high"] == pytest.approx(-1)


def test_quantile_bins_survive_many_equal_shares(few):
    frame = _frame(a=[0, 2], b=[1, 2], c=[0, 1], d=[4, 5])
    table = variance_by_copying(frame, "w", _shares(a=[1], b=[1], c=[1], d=[0.5]), 4, few)
    assert table["n"].tolist()[:-1] and table.query("bin != 'last - first'")["n"].sum() == 4
    alone = variance_by_copying(frame, "w", _shares(a=[1], b=[1]), 4, few)
    assert alone["bin"].tolist() == ["1"] and alone["n"].tolist() == [2]


def test_edges_include_their_upper_end(few):
    frame = _frame(a=[0, 2], b=[1, 2], c=[0, 1])
    shares = _shares(a=[0.1], b=[0.5], c=[0.6])
    table = variance_by_copying(frame, "w", shares, [0.1, 0.5, 0.55], few)
    assert table["n"].tolist()[:2] == [2, 0]


def test_bad_bins_are_refused(few):
    frame = _frame(a=[0, 2])
    with pytest.raises(WorkbenchError, match="edges"):
        variance_by_copying(frame, "w", _shares(a=[1]), [0.5, 0.5], few)
    with pytest.raises(WorkbenchError, match="no question"):
        variance_by_copying(frame, "w", _shares(z=[1]), 2, few)
