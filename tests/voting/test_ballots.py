"""A vote taken apart."""

import pytest

from workbench.voting.ballots import ballots, tally, telling_question
from workbench.voting.study import vote_questions

MALI = [("Mali", "The capital is Bamako.")]


@pytest.fixture
def group(make_rollout):
    """Two rollouts say Oslo from memory, one read Bamako, one read nothing of what it says."""
    return [
        make_rollout(answer="Oslo"),
        make_rollout(answer="the Oslo"),
        make_rollout(answer="Bamako", searches=[MALI]),
        make_rollout(answer=None, searches=[MALI]),
    ]


def test_each_rollout_has_a_ballot_and_abstentions_count_nowhere(make_item, group):
    table = ballots(make_item(), group)
    assert table["cluster"].tolist() == ["oslo", "oslo", "bamako", ""]
    assert table["rgv"].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert table["right"].tolist() == [False, False, True, False]
    counted = tally(make_item(), group)
    assert counted.loc["oslo", ["rollouts", "majority", "rgv"]].tolist() == [2, 2.0, 0.0]
    assert counted["majority_wins"].to_dict() == {"oslo": True, "bamako": False}
    assert counted["rgv_wins"].to_dict() == {"oslo": False, "bamako": True}


def test_the_question_shown_is_one_where_the_rules_differ(make_item, make_rollout, group):
    agreed = [make_rollout("q2", answer) for answer in ("Bamako", "Bamako", "Oslo", "Oslo")]
    italy = [[("Italy", "The capital is Rome.")]]
    wrong = [make_rollout("q3", "Rome", italy)] + [make_rollout("q3", "Oslo")] * 3
    items = [make_item("q1"), make_item("q2"), make_item("q3")]
    votes = vote_questions(items, [*group, *agreed, *wrong])
    assert telling_question(votes) == "q1"
    assert telling_question(votes[votes["item_id"] != "q1"]) == "q2", "q3 has nothing right"
