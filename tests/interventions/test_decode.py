"""One decode for all: once per content, counted, kept, and paired by random numbers."""

import json

import pytest

from workbench.agent.config import AgentConfig
from workbench.engines.base import Sampling
from workbench.errors import WorkbenchError
from workbench.interventions.cache import DecodeCache, Decoded, decode_key
from workbench.interventions.decode import GREEDY, Answerer
from workbench.interventions.deletion import answer_context

AGENT = AgentConfig(max_response_tokens=7)
SAMPLED = Sampling(temperature=1.0)


@pytest.fixture
def contexts(world):
    return [world.tokenizer(f"Question: {w} <answer>").input_ids for w in ("Mali", "Italy", "Mali")]


def _echo(text, seed, row):
    return f"{text.split()[-2]} </answer>"


def test_equal_contexts_are_decoded_once_and_counted(fake, contexts):
    engine = fake(_echo)
    answerer = Answerer(engine, AGENT, DecodeCache(), "abc")
    assert answerer.answers(contexts) == ["Mali", "Italy", "Mali"]
    assert [len(s.texts) for s in engine.opened] == [2]
    assert (engine.opened[0].sampling, engine.asked[0].limits) == (GREEDY, [7, 7])
    first = answerer.counts.as_dict()
    assert first == {
        "asked": 3, "decoded": 2, "repeated": 1, "cached": 0, "tokens": 4, "saved": 1,
    }  # fmt: skip
    assert answerer.answers(contexts) == ["Mali", "Italy", "Mali"]
    assert len(engine.opened) == 1
    counts = answerer.counts
    assert (counts.asked, counts.decoded, counts.cached, counts.saved) == (6, 2, 3, 4)


def test_without_a_cache_nothing_outlives_a_call(fake, contexts):
    engine = fake(_echo)
    answerer = Answerer(engine, AGENT)
    for _ in range(2):
        answerer.answers(contexts)
    assert len(engine.opened) == 2


def test_other_weights_limits_and_stops_are_other_decodes(fake, contexts):
    cache, engine = DecodeCache(), fake(_echo)
    Answerer(engine, AGENT, cache, "abc").answers(contexts)
    for agent, weights in (
        (AGENT, "def"),
        (AgentConfig(max_response_tokens=8), "abc"),
        (AgentConfig(max_response_tokens=7, answer_tag="reply"), "abc"),
    ):
        before = len(cache)
        Answerer(engine, agent, cache, weights).answers(contexts)
        assert len(cache) == before + 2
    key = ("abc", [1, 2], 7, ("x",), SAMPLED)
    assert decode_key(*key, (0, 1)) != decode_key(*key, (0, 2)) != decode_key(*key, (1, 2))
    greedy = (*key[:4], GREEDY)
    assert decode_key(*greedy, (0, 1)) == decode_key(*greedy, (5, 2)), "no random numbers"


def test_a_cache_needs_to_know_the_weights(fake):
    with pytest.raises(WorkbenchError, match="weights"):
        Answerer(fake(_echo), AGENT, DecodeCache())


def test_decodes_survive_in_a_file(fake, contexts, tmp_path):
    path = tmp_path / "deep" / "decodes.json"
    ours, theirs = DecodeCache(path), DecodeCache(path)
    Answerer(fake(_echo), AGENT, ours, "abc").answers(contexts[:1])
    Answerer(fake(_echo), AGENT, theirs, "abc").answers(contexts[1:2])
    ours.save()
    theirs.save()  # does not lose what the other process has written meanwhile
    assert [p.name for p in path.parent.iterdir()] == ["decodes.json"]
    engine = fake(_echo)
    answerer = Answerer(engine, AGENT, DecodeCache(path), "abc")
    assert answerer.answers(contexts) == ["Mali", "Italy", "Mali"]
    assert (engine.opened, answerer.counts.cached) == ([], 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a file of decodes"),
        ("[]", "not a file of decodes"),
        ('{"version": 1, "decodes": {"k": [1]}}', "not a file of decodes"),
        (json.dumps({"version": 2, "decodes": {}}), "version 2"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content, message):
    path = tmp_path / "decodes.json"
    path.write_text(content)
    with pytest.raises(WorkbenchError, match=message) as error:
        DecodeCache(path)
    assert "decodes.json" in str(error.value) and "delete the file" in str(error.value)


def test_a_cache_without_a_file_cannot_be_saved():
    cache = DecodeCache()
    cache.put("k", Decoded((1,), "stop"))
    with pytest.raises(WorkbenchError, match="no file"):
        cache.save()


def test_the_engine_bounds_rows_and_lengths(fake, contexts, world):
    engine = fake(_echo, max_rows=1, max_length=len(contexts[0]) + 3)
    answerer = Answerer(engine, AGENT)
    assert answerer.answers(contexts) == ["Mali", "Italy", "Mali"]
    assert [(s.rows, s.limits) for s in engine.asked] == [([0], [3])] * 2
    for bad in ([], [1] * engine.max_length):
        with pytest.raises(WorkbenchError, match="cannot be answered"):
            answerer.answers([bad])


def test_paired_contexts_draw_the_same_numbers(fake, world):
    sessions = {}

    def say(text, seed, row):
        return f"{sessions.setdefault(seed, len(sessions))} {row} </answer>"

    words = "Mali Italy France Mali Algeria".split()
    one, other = (
        [world.tokenizer(f"{lead} {w} <answer>").input_ids for w in words] for lead in "ab"
    )
    engine = fake(say, max_rows=2)
    answerer = Answerer(engine, AGENT, DecodeCache(), "abc")
    answerer.answers(other[:1], SAMPLED, seed=3)  # a row that is known already moves no other
    first = answerer.answers(one, SAMPLED, seed=3)
    assert first == answerer.answers(other, SAMPLED, seed=3)
    assert len(set(first)) == 5, "every pair has numbers of its own, equal contexts included"
    assert first != answerer.answers(one, SAMPLED, seed=4)


def test_real_draws_are_paired(world):
    contexts = [answer_context(t) for t in world.sampled[:12]]
    hot = Sampling(temperature=3.0)
    alone = Answerer(world.engine, world.agent).answers(contexts, hot, seed=1)
    again = Answerer(world.engine, world.agent)
    again.answers([c[:-1] + contexts[0][-1:] for c in contexts[:3]], hot, seed=1)
    assert again.answers(contexts, hot, seed=1) == alone
    assert again.answers(contexts, hot, seed=2) != alone
    assert again.answers([contexts[0], *contexts[:0:-1]], hot, seed=1)[0] == alone[0]


def test_a_greedy_rollout_is_answered_again_as_it_was(world):
    """The context ends exactly where the policy began to write its answer."""
    answers = Answerer(world.engine, world.agent).answers([answer_context(t) for t in world.greedy])
    assert len(answers) > 20
    assert answers == [t.answer for t in world.greedy]


def test_a_context_cut_inside_the_tag_is_completed(fake, byte_tokenizer):
    """``>P`` is one token, so the answer Paris starts inside the opening tag."""
    whole = byte_tokenizer("<answer>Paris</answer>").input_ids
    cut = next(n for n in range(len(whole)) if byte_tokenizer.decode(whole[: n + 1])[-1] == "P")
    context = whole[:cut]
    assert byte_tokenizer.decode(context) == "<answer"
    engine = fake(lambda text, seed, row: ">Paris</answer>", byte_tokenizer)
    assert Answerer(engine, AGENT).answers([context]) == ["Paris"]
    engine = fake(lambda text, seed, row: "a > b</answer>", byte_tokenizer)
    assert Answerer(engine, AGENT).answers([whole[:1], context]) == ["a > b"] * 2
