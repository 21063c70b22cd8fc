"""Closed-book labels: inclusion makes the label, exact match stands beside it (S1 Eq. 2)."""

from dataclasses import replace

import numpy as np
import pytest

from workbench.agent.rollout import rollout
from workbench.engines.base import Sampling
from workbench.errors import WorkbenchError
from workbench.evaluation.metrics import evaluate
from workbench.interventions.closed_book import closed_book_labels
from workbench.interventions.decode import Answerer
from workbench.policy.config import PolicyConfig
from workbench.policy.recipe import closed_book_agent


@pytest.fixture(scope="module")
def closed(world):
    return closed_book_agent(world.agent, PolicyConfig().closed_book_prompt)


@pytest.mark.parametrize(
    ("said", "answer", "sufficient", "exact"),
    [
        ("I know. </think> <answer> Bamako </answer>", "Bamako", True, True),
        ("</think> <answer> the city of Bamako </answer>", "the city of Bamako", True, False),
        ("</think> <answer> Rome </answer>", "Rome", False, False),
        ("</think> <search> Bamako </search>", None, False, False),
        ("Bamako, Bamako, Bamako", None, False, False),
        ("</think> <answer> </answer>", None, False, False),
    ],
)
def test_inclusion_and_exact_match(world, closed, fake, said, answer, sufficient, exact):
    item = replace(world.asked[0], answers=("Bamako",))
    answerer = Answerer(fake(lambda text, seed, row: said), closed)
    labels = closed_book_labels(answerer, [item])
    assert labels.answers == ((answer,) if answer is None else (labels.answers[0],))
    assert labels.answers[0] == answer or labels.answers[0].split() == answer.split()
    assert (labels.sufficient.tolist(), labels.exact.tolist()) == ([sufficient], [exact])
    assert labels.disagreements == (sufficient != exact)
    assert labels.unanswered == (answer is None)
    assert labels.by_item() == {item.item_id: sufficient}
    assert labels.sufficient.dtype == labels.exact.dtype == bool


def test_labels_are_those_of_a_retrieval_disabled_rollout(world, closed):
    items = [i for i in world.items if i.roots == "named"][:60]
    answerer = Answerer(world.engine, closed)
    labels = closed_book_labels(answerer, [*items, items[0]])
    rolled = rollout(world.engine, None, items, closed, Sampling(temperature=0.0), seed=0)
    frame = evaluate(items, rolled)
    assert list(labels.answers[:-1]) == [t.answer for t in rolled]
    assert labels.exact[:-1].tolist() == (frame["em"] == 1).tolist()
    assert labels.sufficient[:-1].tolist() == (frame["inclusion"] == 1).tolist()
    assert not (labels.exact & ~labels.sufficient).any()
    assert labels.disagreements == int((labels.sufficient != labels.exact).sum())
    assert 0 < np.mean(labels.sufficient) < 1
    assert answerer.counts.decoded == len(items), "a question that is asked twice is decoded once"


def test_an_agent_that_could_search_is_refused(world, closed):
    for agent in (world.agent, closed.model_copy(update={"answer_round": True})):
        with pytest.raises(WorkbenchError, match="can search"):
            closed_book_labels(Answerer(world.engine, agent), world.asked[:1])


def test_no_questions_give_no_labels(world, closed):
    labels = closed_book_labels(Answerer(world.engine, closed), [])
    assert (labels.answers, labels.sufficient.shape, labels.disagreements) == ((), (0,), 0)
