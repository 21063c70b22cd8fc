"""The vote: handed cases, ties that stay ties, and what the order of rollouts may not change."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.voting.vote import weighted_vote

BALLOTS = st.lists(
    st.tuples(
        st.sampled_from(["Oslo", "oslo.", "Rome", "The Rome", "Bern", None, " "]),
        st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 1.0]),
    ),
    min_size=1,
    max_size=8,
)


def test_beatles():
    answers = ["The Beatles", "Beatles", '"Beatles"', "Rolling Stones", "Rolling Stones"]
    vote = weighted_vote(answers)
    assert (vote.cluster, vote.counts["beatles"], vote.totals["beatles"]) == ("beatles", 3, 3.0)
    assert vote.tied == () and vote.decided_by == "weight"


def test_app_m6_simple_majority_ties_and_grounding_decides(clustering_case):
    answers = [answer for answer, _ in clustering_case]
    tie = weighted_vote(answers)
    assert tie.tied == ("lilly singh", "toke makinwa")
    assert tie.decided_by == "hash" and tie.cluster in tie.tied
    grounded = [0.2 if letter == "A" else 0.1 for _, letter in clustering_case]
    assert weighted_vote(answers, grounded).cluster == "toke makinwa"


@pytest.mark.parametrize("qid", [301, 424, 56])
def test_app_n1_grounding_picks_the_right_answer(successes, qid):
    right, rollouts = successes[qid]
    vote = weighted_vote([a for a, _, _ in rollouts], [w for _, w, _ in rollouts])
    assert vote.answer == right and vote.tied == ()


def test_app_n1_confidence_follows_the_majority_on_two_of_three(successes):
    votes = {
        qid: weighted_vote([a for a, _, _ in rollouts], [w for _, _, w in rollouts])
        for qid, (_, rollouts) in successes.items()
    }
    assert votes[424].answer == "Denys Lasdun"
    assert votes[56].answer == "Crazy Rich Asians"
    # The printed weights favour the right answer by a hair, against the paper's sentence.
    assert votes[301].answer == "Nwoko Royal Family"
    assert votes[301].totals["nwoko royal family"] == pytest.approx(13.20)
    assert votes[301].totals["greek royal family"] == pytest.approx(13.16)


def test_tie_is_decided_by_count_then_by_a_coin():
    by_count = weighted_vote(["Rome", "Oslo", "Oslo"], [0.3, 0.1, 0.2])
    assert by_count.tied == ("oslo", "rome"), "0.1 + 0.2 and 0.3 are a tie, not a rounding win"
    assert (by_count.cluster, by_count.decided_by) == ("oslo", "count")
    nothing_grounded = weighted_vote(["Rome", "Oslo", "Oslo"], [0.0, 0.0, 0.0])
    assert (nothing_grounded.cluster, nothing_grounded.decided_by) == ("oslo", "count")
    coins = [weighted_vote([f"left {i}", f"right {i}"]).answer.split()[0] for i in range(200)]
    assert 70 <= coins.count("left") <= 130, "neither place nor alphabet is preferred"


def test_the_commonest_surface_stands_for_its_cluster():
    vote = weighted_vote(["the Rome", "Rome", "Rome", "ROME"], [1.0, 0.8, 0.8, 1.0])
    assert (vote.answer, vote.cluster) == ("Rome", "rome")


def test_abstentions_and_bad_weights():
    empty = weighted_vote([None, "", "  "])
    assert (empty.answer, empty.cluster, empty.tied, empty.decided_by) == (None, None, (), "")
    assert weighted_vote([None, None, "Rome"], [9.0, 9.0, 0.0]).answer == "Rome"
    for bad in (math.nan, -math.inf):
        with pytest.raises(WorkbenchError, match="voting weight"):
            weighted_vote(["Rome"], [bad])
    with pytest.raises(WorkbenchError, match="1 weights for 2"):
        weighted_vote(["Rome", "Oslo"], [1.0])


def test_negative_weights_are_sums_like_others():
    """z-normalised signals go below zero."""
    assert weighted_vote(["Rome", "Oslo", "Oslo"], [-0.5, -0.4, -0.3]).cluster == "rome"


@given(BALLOTS, st.randoms())
def test_the_order_of_the_rollouts_changes_nothing(ballots, random):
    shuffled = random.sample(ballots, len(ballots))
    assert weighted_vote(*zip(*ballots)) == weighted_vote(*zip(*shuffled))


@given(BALLOTS, st.sampled_from([0.25, 3.0, 1e-3, 1e6]))
def test_the_scale_of_the_weights_changes_nothing(ballots, scale):
    answers, weights = zip(*ballots)
    plain = weighted_vote(answers, weights)
    scaled = weighted_vote(answers, [scale * w for w in weights])
    assert (plain.answer, plain.tied) == (scaled.answer, scaled.tied)
    assert plain.decided_by == scaled.decided_by


@given(BALLOTS)
def test_the_winner_has_the_largest_weight_and_was_cast(ballots):
    answers, weights = zip(*ballots)
    vote = weighted_vote(answers, weights)
    if vote.answer is not None:
        assert vote.answer in answers
        assert vote.totals[vote.cluster] >= max(vote.totals.values()) - 1e-9
        assert (vote.cluster in vote.tied) == (len(vote.tied) >= 2) == (vote.decided_by != "weight")
