"""Rank and sign reversals, and the alpha check of Table 3, by hand."""

import numpy as np
import pytest

from workbench.methods.advantages import group_advantages
from workbench.methods.reversals import ALPHAS, Reversals, alpha_check, count_reversals

OUTCOME = np.array([1.0, 0.8, 0.0, 0.5, 0.5, 0.0, 0.0])
PROGRESS = np.array([0.0, 1.0, 0.5, 1.0, 0.0, 1.0, 0.0])
GROUPS = ["a", "a", "a", "b", "b", "c", "c"]


def test_counts_by_hand():
    reward = OUTCOME + 0.25 * PROGRESS  # a: 1, 1.05, .125 - one of its three pairs is reversed
    shaped = group_advantages(reward, GROUPS, 1e-6)
    assert count_reversals(OUTCOME, shaped, GROUPS) == Reversals(pairs=3, rank=1, nonzero=3, sign=0)
    # α = 1: a: 1, 1.8, .5 - the best answer falls below the mean of 1.1
    shaped = group_advantages(OUTCOME + PROGRESS, GROUPS, 1e-6)
    assert count_reversals(OUTCOME, shaped, GROUPS) == Reversals(pairs=3, rank=1, nonzero=3, sign=1)
    # unequal outcomes everywhere reversed
    assert count_reversals(OUTCOME, -OUTCOME, GROUPS).rank == 3


def test_a_tie_or_a_zero_is_no_reversal():
    outcome, groups = np.array([0.25, 0.0, 0.125]), ["q"] * 3
    level = group_advantages(outcome + 0.25 * np.array([0.0, 1.0, 0.5]), groups, 1e-6)
    found = count_reversals(outcome, level, groups)
    assert (found.pairs, found.rank, found.nonzero, found.sign) == (3, 0, 2, 0)


def test_alpha_check_has_the_rows_of_table_3():
    table = alpha_check(OUTCOME, {"Cov-Dep": PROGRESS, "AM": np.zeros(7)}, GROUPS)
    assert len(table) == len(ALPHAS) * 2 * 2
    rows = table.set_index(["alpha", "signal", "metric"])
    assert (rows.loc[(slice(None), "AM"), "count"] == 0).all()
    rank = rows.loc[(0.25, "Cov-Dep", "Rank reversal")]
    assert rank["value"] == pytest.approx(100 / 3) and (rank["count"], rank["n"]) == (1, 3)
    sign = rows.loc[(1.0, "Cov-Dep", "Advantage sign reversal")]
    assert sign["value"] == pytest.approx(100 / 3) and (sign["count"], sign["n"]) == (1, 3)
    assert rows.loc[(0.05, "Cov-Dep", "Rank reversal"), "count"] == 0


def test_no_pairs_no_rate():
    table = alpha_check(np.ones(4), {"AM": np.array([0, 1, 0, 1])}, ["q"] * 4, alphas=(0.25,))
    assert table["value"].isna().all() and (table["n"] == 0).all()


def test_f1_of_one_outranks_zero_below_alpha_one():
    outcome, groups = np.array([1.0, 0.0]), ["q", "q"]
    table = alpha_check(outcome, {"AM": 1 - outcome}, groups, alphas=(0.25, 0.99, 1.0, 1.01))
    rank = table[table["metric"] == "Rank reversal"].set_index("alpha")["count"]
    assert rank.to_dict() == {0.25: 0, 0.99: 0, 1.0: 0, 1.01: 1}
