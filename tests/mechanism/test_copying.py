"""Token tables, copy shares and their summary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.mechanism.copying import copy_shares, token_table
from workbench.mechanism.matching import NO_DOCUMENTS, NO_STREAM
from workbench.mechanism.shares import _median, share_summary


def test_the_table_has_a_row_per_kept_token(make_rollout):
    table = token_table(
        [
            make_rollout(
                ["ĠBamako", "Ġ,", "Ġthe", "Ġ1960"], ["Bamako"], logprobs=[-1, -2, -3, -np.inf],
                correct=True,
            ),
            make_rollout(["Ġword"], [], number=1),
            make_rollout(["ĠBamako"], ["Oslo"], number=2, logprobs=[np.nan], correct=False),
        ]
    )  # fmt: skip
    assert table["surface"].tolist() == ["bamako", "the", "1960", "bamako"]
    assert table["rollout_id"].tolist() == ["0", "0", "0", "2"]
    assert table["position"].tolist() == [0, 2, 3, 0]
    assert table["copy"].tolist() == [True, False, False, False]
    assert table["stopword"].tolist() == [False, True, False, False]
    assert table["digit"].tolist() == [False, False, True, False]
    assert table["capitalised"].tolist() == [True, False, False, True]
    assert table["length"].tolist() == [6, 3, 4, 6]
    assert table["verdict"].tolist() == ["right"] * 3 + ["wrong"]
    assert np.array_equal(table["logprob"], [-1, -3, np.nan, np.nan], equal_nan=True)


def test_no_rollouts_give_an_empty_table():
    assert len(token_table([])) == 0 and len(copy_shares([])) == 0
    assert "share" in copy_shares([])


def test_shares_count_what_was_discarded_and_why_there_are_none(make_rollout):
    shares = copy_shares(
        [
            make_rollout(["Ġan", "Ġmany", "<think>", "Ġx", "Ġoslo"], ["many"]),
            make_rollout(["Ġan"], [], number=1),
            make_rollout(None, ["many"], number=2),
        ]
    )
    assert shares["share"].tolist()[0] == pytest.approx(2 / 3)
    assert shares["whole_share"].tolist()[0] == pytest.approx(1 / 3)
    first = shares.loc[0, ["generated", "kept", "short", "markup", "copied", "whole"]]
    assert first.tolist() == [5, 3, 1, 1, 2, 1]
    assert shares["reason"].tolist() == ["", NO_DOCUMENTS, NO_STREAM]
    assert shares["share"].isna().tolist() == [False, True, True]


def test_the_summary_by_hand(make_rollout, few):
    def rollout(copied, question, number):
        tokens = ["Ġyes"] * copied + ["Ġnope"] * (10 - copied)
        return make_rollout(tokens, ["yes"], question=question, number=number)

    shares = copy_shares(
        [rollout(10, "a", 0), rollout(9, "a", 1), rollout(8, "b", 0), rollout(9, "b", 1)]
        + [make_rollout(["Ġyes"], [], question="b", number=2)]
    )
    table = share_summary(shares, config=few).query("test == 'share'").set_index("metric")
    assert table["value"].to_dict() == pytest.approx(
        {"median": 0.9, "heavy_rollouts": 3 / 4, "heavy_questions": 1 / 2}
    )
    assert (table["n"] == 2).all() and (table["rollouts"] == 4).all()
    assert (table["left_out"] == 1).all()
    assert (table["low"] <= table["value"]).all() and (table["high"] >= table["value"]).all()


def test_a_cell_without_shares_keeps_its_row(make_rollout, few):
    table = share_summary(copy_shares([make_rollout(["Ġyes"], [])]), config=few)
    assert table["value"].isna().all() and (table["left_out"] == 1).all()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=12),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_the_median_of_a_resample_is_that_of_its_rollouts(rows, counts):
    owner, values = np.array([r[0] for r in rows]), np.array([float(r[1]) for r in rows])
    drawn = np.repeat(values, np.array(counts)[owner])
    if len(drawn):
        found = _median(values, owner)(np.array([counts], dtype=float))
        assert found[0] == np.median(drawn)
