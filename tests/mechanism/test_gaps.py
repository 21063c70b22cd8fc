"""The copy gap of the five token subsets (S2 Table 9)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.inference.bootstrap import BootstrapConfig
from workbench.mechanism.copying import token_table
from workbench.mechanism.gaps import BASELINE, SUBSETS, gap_table, idf


@pytest.fixture
def rollouts(make_rollout):
    """Copies are bamako, the, 1960; others oslo, Rome and extraordinary."""
    read = ["Bamako the 1960"]
    first, second = (
        ["ĠBamako", "Ġthe", "Ġoslo"],
        ["Ġ1960", "Ġextraordinary", "ĠRome", "Ġ.", "ĠBamako"],
    )
    return [
        make_rollout(first, read, logprobs=[-1, -2, -4], correct=True),
        make_rollout(second, read, number=1, logprobs=[-0.5, -3, -2, -9, np.nan], correct=False),
    ]


def _gap(table, subset):
    return table.set_index("subset").loc[subset]


def test_gaps_by_hand(rollouts, few):
    table = gap_table(token_table(rollouts), config=few)
    every = _gap(table, BASELINE)
    assert every["copied_logprob"] == pytest.approx(-3.5 / 3)
    assert every["other_logprob"] == pytest.approx(-3.0)
    assert every["value"] == pytest.approx(3.0 - 3.5 / 3)
    assert every[["copied", "others", "n", "unknown"]].tolist() == [3, 3, 2, 1]
    content = _gap(table, "stopword-removed")
    assert content["value"] == pytest.approx(-1.5 / 2 + 9 / 3)
    assert content["copied"] == 2
    marked = _gap(table, "digits / cap-leading")
    assert (marked["copied"], marked["others"]) == (2, 1)
    assert marked["value"] == pytest.approx(-0.75 + 2.0)
    long = _gap(table, "length >= 8")
    assert (long["copied"], long["others"]) == (0, 1)
    assert np.isnan(long["value"]) and np.isnan(long["low"])


def test_idf_takes_rollouts_as_documents(rollouts, few):
    tokens = token_table(rollouts)
    weights = dict(zip(tokens["surface"], idf(tokens), strict=True))
    assert weights["bamako"] == 0.0 and weights["oslo"] == pytest.approx(np.log(2))
    row = _gap(gap_table(tokens, config=few), "IDF-weighted")
    # Bamako weighs nothing, the others the same
    assert row["value"] == pytest.approx(-0.5 - -3.0)
    assert (row["copied"], row["others"]) == (2, 3)


def test_every_group_is_measured_apart(rollouts, few):
    table = gap_table(token_table(rollouts), ["verdict"], [BASELINE], config=few)
    assert table["verdict"].tolist() == ["right", "wrong"]
    assert table["value"].tolist() == pytest.approx([-1.5 + 4, -0.5 + 2.5])
    assert table["n"].tolist() == [1, 1] and table["low"].isna().all()


def test_the_same_ids_in_two_cells_are_two_rollouts(make_rollout, few):
    both = [make_rollout(["Ġyes", "Ġnope"], ["yes"], cell=c) for c in "ab"]
    assert gap_table(token_table(both), (), [BASELINE], config=few)["n"].tolist() == [2]


def test_the_test_of_whole_words_gives_another_gap(make_rollout, few):
    tokens = token_table([make_rollout(["Ġan", "Ġmany", "Ġno"], ["many"], logprobs=[-1, -2, -4])])
    gaps = [gap_table(tokens, (), [BASELINE], t, few)["value"][0] for t in ("copy", "whole")]
    assert gaps == pytest.approx([-1.5 + 4, -2 + 2.5])


def test_the_interval_is_that_of_resampled_rollouts(make_rollout):
    rng = np.random.default_rng(0)
    made = []
    for number in range(30):
        n = int(rng.integers(5, 40))
        copied = rng.random(n) < 0.7
        logprobs = np.where(copied, -1.0, -1.5) + rng.normal(0, 0.3) * copied
        tokens = np.where(copied, "Ġyes", "Ġnope")
        made.append(make_rollout(tokens, ["yes"], number=number, logprobs=logprobs))
    row = gap_table(token_table(made), (), [BASELINE], config=BootstrapConfig(draws=4000)).iloc[0]
    own = []
    for _ in range(2000):
        drawn = [made[i].tokens for i in rng.integers(0, 30, 30)]
        logprobs = np.concatenate([t.logprobs for t in drawn])
        copied = np.array([s == "Ġyes" for t in drawn for s in t.surfaces])
        own.append(logprobs[copied].mean() - logprobs[~copied].mean())
    assert [row["low"], row["high"]] == pytest.approx(np.percentile(own, [2.5, 97.5]), abs=0.02)
    assert row["p"] < 0.01


LOGPROBS = st.lists(st.floats(-9, 0, width=32), min_size=8, max_size=8)


@settings(max_examples=25)
@given(LOGPROBS, st.floats(-5, 5))
def test_a_constant_added_to_all_logprobs_changes_no_gap(make_rollout, logprobs, constant):
    tokens = ["ĠBamako", "Ġthe", "Ġoslo", "Ġextraordinary"]
    config = BootstrapConfig(draws=100)

    def table(shift):
        halves = np.array(logprobs).reshape(2, 4)
        said = tokens, ["Ġ1960", *tokens[1:]]
        rollouts = [
            make_rollout(said[n], ["the 1960 Bamako"], number=n, logprobs=halves[n])
            for n in range(2)
        ]
        frame = token_table(rollouts)
        return gap_table(frame.assign(logprob=frame["logprob"] + shift), config=config)

    plain, moved = table(0.0), table(constant)
    for column in ("value", "low", "high"):
        assert np.allclose(plain[column], moved[column], atol=1e-5, equal_nan=True)
    assert set(plain["subset"]) == set(SUBSETS)
