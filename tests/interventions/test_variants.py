"""Deletion on real rollouts, and the other constructions of its label (S1 Tables A6, A16)."""

import numpy as np
import pytest

from workbench.agent.text import Codec
from workbench.agent.trajectory import Segment
from workbench.engines.base import Sampling
from workbench.errors import WorkbenchError
from workbench.interventions.decode import Answerer
from workbench.interventions.deletion import (
    answer_context,
    changed_under_deletion,
    deleted_context,
    strict_context,
)
from workbench.interventions.variants import CONSTRUCTIONS, PAIRED_SAMPLING, reliance_labels

KEPT = (Segment.PROMPT, Segment.REASONING, Segment.CALL, Segment.QUERY, Segment.ANSWER)


def test_the_rollouts_are_various(world):
    searched = [t for t in world.sampled if t.searches]
    assert len(searched) >= 10 and len(searched) < len(world.sampled)
    assert {len(t.searches) for t in searched} >= {1, 2}
    assert any(s.observation_cut for t in searched for s in t.searches)


def test_deletion_keeps_every_other_token_and_no_observation(world):
    """Question, queries and reasoning byte for byte, in place; nothing of the documents."""
    for t in [*world.sampled, *world.greedy]:
        context, start = deleted_context(t), t.answer_span[0]
        codes = t.segments[:start]
        # segment by segment: each kept one is found whole, one behind the other
        at = 0
        edges = np.flatnonzero(np.diff(codes.astype(int), prepend=-1, append=-1))
        for begin, end in zip(edges, edges[1:]):
            if codes[begin] == Segment.OBSERVATION:
                continue
            own = t.tokens[begin:end]
            assert np.asarray(context[at : at + len(own)], np.int32).tobytes() == own.tobytes()
            at += len(own)
        assert at == len(context), "and nothing else is in it"
        assert at == int(np.isin(codes, KEPT).sum())
        text = world.tokenizer.decode(context)
        assert "<information>" not in text and text.endswith("<answer>")
        assert context[: t.prompt_length] == t.tokens[: t.prompt_length].tolist()
        for search in t.searches:
            query = t.tokens[slice(*search.query_span)].tolist()
            assert any(context[n : n + len(query)] == query for n in range(len(context)))


def test_strict_deletion_leaves_no_thought(world):
    frame = Codec(world.tokenizer).control
    seen = 0
    for t in world.sampled:
        start = t.answer_span[0]
        codes, tokens = t.segments[:start], t.tokens[:start]
        bare = strict_context(t)
        asked = np.isin(codes, (Segment.PROMPT, Segment.CALL, Segment.QUERY, Segment.ANSWER))
        assert bare == tokens[asked].tolist()
        framed = strict_context(t, frame)
        assert [i for i in framed if i not in frame] == [i for i in bare if i not in frame]
        seen += len(deleted_context(t)) > len(framed)
        tags = [i for i in deleted_context(t) if i in frame]
        assert [i for i in framed if i in frame] == tags, "the turns stay turns"
    assert seen == len(world.sampled), "there were thoughts to remove"


def test_labels_of_the_constructions_by_hand(world, fake):
    """The policy says A where it sees documents, B without, C where it may not even think."""
    t = next(t for t in world.sampled if len(t.searches) == 1)
    thought = world.tokenizer.decode(t.tokens[t.segments == Segment.REASONING][:3])

    def say(text, seed, row):
        if "<information>" in text:
            return "A </answer>"
        return "B </answer>" if thought in text else f"{t.answer} </answer>"

    got = {
        name: reliance_labels(Answerer(fake(say), world.agent), [t, t], name, Sampling())
        for name in CONSTRUCTIONS
    }
    answers = {
        name: (labels.with_evidence[0], labels.without_evidence[0]) for name, labels in got.items()
    }
    assert answers == {
        "deletion": (t.answer, "B"), "strict": (t.answer, t.answer),
        "paired_greedy": ("A", "B"), "paired_sampling": ("A", "B"),
    }  # fmt: skip
    changed = {name: labels.changed.tolist() for name, labels in got.items()}
    assert changed == {
        "deletion": [True] * 2, "strict": [False] * 2,
        "paired_greedy": [True] * 2, "paired_sampling": [True] * 2,
    }  # fmt: skip


def test_eq_1_is_the_default(world):
    answerer = Answerer(world.engine, world.agent)
    labels = reliance_labels(answerer, world.sampled)
    truth = changed_under_deletion(world.engine, world.sampled, world.agent)
    assert (labels.construction, labels.changed.tolist()) == ("deletion", truth.tolist())
    assert labels.with_evidence == tuple(t.answer for t in world.sampled)
    assert 0 < truth.mean() < 1


@pytest.mark.parametrize("construction", ["paired_greedy", "paired_sampling"])
def test_paired_labels_never_change_without_documents(world, construction):
    direct = [t for t in world.sampled if not t.searches and not t.invalid_actions]
    assert direct and all(answer_context(t) == deleted_context(t) for t in direct)
    answerer = Answerer(world.engine, world.agent)
    labels = reliance_labels(answerer, direct, construction, Sampling(temperature=2.0), seed=1)
    assert not labels.changed.any()
    assert labels.with_evidence == labels.without_evidence


def test_the_pair_is_drawn_with_the_same_numbers(world, fake):
    sessions = {}

    def say(text, seed, row):
        return f"{sessions.setdefault(seed, len(sessions))} {row} </answer>"

    engine = fake(say, max_rows=3)
    answerer = Answerer(engine, world.agent)
    labels = reliance_labels(answerer, world.sampled[:5], PAIRED_SAMPLING, Sampling(), seed=2)
    assert not labels.changed.any() and len(set(labels.with_evidence)) == 5
    assert {s.sampling.temperature for s in engine.opened} == {1.0}


def test_what_cannot_be_labelled_is_refused(world):
    answerer = Answerer(world.engine, world.agent)
    with pytest.raises(WorkbenchError, match="deletion, strict"):
        reliance_labels(answerer, world.sampled, "other")
    for sampling in (None, Sampling(temperature=0.0)):
        with pytest.raises(WorkbenchError, match="temperature 0"):
            reliance_labels(answerer, world.sampled, PAIRED_SAMPLING, sampling)
    assert reliance_labels(answerer, []).changed.shape == (0,)
