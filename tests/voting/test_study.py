"""Rules side by side on hand-made questions."""

import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.answers import f1_score
from workbench.inference import BootstrapConfig, bootstrap_mean
from workbench.voting.study import summarise_votes, vote_questions

FEW = BootstrapConfig(draws=300)


@pytest.fixture
def study(make_item, make_rollout):
    """q1: one grounded right rollout against two ungrounded wrong ones; q2: all right but one
    lost; q3: nothing right, nobody grounded, a tie of two."""
    grounded = [[("Mali", "The capital is Bamako.")]]
    items = [make_item("q1"), make_item("q2"), make_item("q3")]
    rollouts = [
        make_rollout("q1", "Bamako", grounded),
        make_rollout("q1", "Oslo", grounded),
        make_rollout("q1", "Oslo"),
        make_rollout("q2", "bamako."),
        make_rollout("q2", "Bamako", grounded),
        make_rollout("q2", None),
        make_rollout("q3", "Rome"),
        make_rollout("q3", "Oslo"),
        make_rollout("q3", "Bern", valid=False),
    ]
    return items, rollouts


def test_every_rule_on_every_question(study):
    votes = vote_questions(*study, rollouts=3)
    table = votes.pivot(index="item_id", columns="rule", values="correct")
    assert table["single"].tolist() == pytest.approx([1 / 3, 2 / 3, 0])
    assert table["majority"].tolist() == [0, 1, 0]
    assert table["rgv"].tolist() == [1, 1, 0]
    assert table["oracle"].tolist() == [1, 1, 0]
    last = votes[(votes["item_id"] == "q3") & (votes["rule"] == "rgv")].iloc[0]
    assert (last["tied"], last["abstained"], last["right"]) == (2, 1, 0)


def test_summary_is_paired_over_questions(study):
    table = summarise_votes(vote_questions(*study), config=FEW).set_index("rule")
    assert list(table.index) == ["single", "majority", "rgv", "oracle"]
    expected = bootstrap_mean([1.0, 1.0, 0.0], FEW)
    assert (table.loc["rgv", "accuracy"], table.loc["rgv", "n"]) == (expected.value, 3)
    assert (table.loc["rgv", "low"], table.loc["rgv", "high"]) == (expected.low, expected.high)
    delta = bootstrap_mean([1.0, 0.0, 0.0], FEW)
    assert table.loc["rgv", "delta"] == delta.value
    assert (table.loc["rgv", "delta_low"], table.loc["rgv", "delta_high"]) == (
        delta.low,
        delta.high,
    )
    assert table.loc["majority", "delta_high"] == 0.0
    assert table["tied"].tolist() == [0, pytest.approx(1 / 3), pytest.approx(1 / 3), 0]
    with pytest.raises(WorkbenchError, match="no rule 'deepconf'"):
        summarise_votes(vote_questions(*study), comparator="deepconf")


def test_own_rules_and_scores(study):
    rules = {"shortest": lambda t: 1.0 / len(t.answer or "x")}
    votes = vote_questions(*study, rules=rules, score=f1_score)
    assert votes["rule"].unique().tolist() == ["single", "shortest", "oracle"]


def test_unequal_numbers_of_rollouts_are_refused(study, make_item):
    items, rollouts = study
    with pytest.raises(WorkbenchError, match="q1: 2 rollouts to vote over, 3 needed"):
        vote_questions(items, rollouts[1:], rollouts=3)
    with pytest.raises(WorkbenchError, match="q9: 0 rollouts"):
        vote_questions([make_item("q9")], rollouts)
