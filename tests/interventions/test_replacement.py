"""Entity replacement: what changes, what stays, and what the answer did (S1 §7.3.1)."""

from dataclasses import replace

import numpy as np
import pytest

from workbench.agent.protocols import build_protocol
from workbench.agent.recorder import Recorder
from workbench.agent.trajectory import Segment
from workbench.engines.base import Generation
from workbench.errors import WorkbenchError
from workbench.evaluation.answers import contains_phrase, normalise_answer
from workbench.interventions.alternatives import Alternatives
from workbench.interventions.decode import Answerer
from workbench.interventions.replacement import (
    ASKED,
    LEFT,
    NAMELESS,
    NO_ALTERNATIVE,
    NOT_SHOWN,
    TOO_LONG,
    Counterfactual,
    ReplacementConfig,
    classify,
    edit,
    replace_documents,
    substitute,
)
from workbench.questions.graph import Item

KEEP = ReplacementConfig(restated="keep")


@pytest.mark.parametrize(
    ("text", "answers", "longer", "expected", "count"),
    [
        ("Bamako is big. (Bamako)", ["Bamako"], [], "Oslo is big. (Oslo)", 2),
        ("bamako BAMAKO", ["Bamako"], [], "Oslo Oslo", 2),
        ("Bamakoland, unBamako", ["Bamako"], [], "Bamakoland, unBamako", 0),
        ("Algerian(s)", ["Algerian"], [], "Oslo(s)", 1),
        ("Republic of  Mali; Mali", ["Mali", "Republic of Mali"], [], "Oslo; Oslo", 2),
        ("Guinea, New Guinea", ["Guinea"], ["New Guinea"], "Oslo, New Guinea", 1),
        ("4 July (1776), 4 July 1776", ["4 July"], ["4 July 1776"], "Oslo (1776), 4 July 1776", 1),
        ("US tells us", ["US"], [], "Oslo tells us", 1),
        ("Jose MUJICA, Jose Mujica", ["Jose MUJICA"], [], "Oslo, Oslo", 2),
        ("domain .ml, x.ml", [".ml"], [], "domain Oslo, x.ml", 1),
        ("C++ (a|b) C++", ["C++"], [], "Oslo (a|b) Oslo", 2),
    ],
)  # fmt: skip
def test_whole_words_longest_first(text, answers, longer, expected, count):
    assert substitute(text, answers, "Oslo", longer) == (expected, count)


def test_an_alternative_is_inserted_as_it_stands():
    assert substitute("at Bamako.", ["Bamako"], r"\1 \g<0>")[0] == r"at \1 \g<0>."


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [("the oslo!", "true"), ("Christiania", "true"), ("Bamako", "hall"), ("bamako city", "hall"),
     ("Rome", "amb"), ("Oslo or Bamako", "amb"), ("", "amb"), (None, "amb")],
)  # fmt: skip
def test_classes_by_normalised_match(answer, outcome):
    assert classify(answer, ("Oslo", "Christiania"), ("Bamako", "Bamako City")) == outcome


def _right(trajectory, item):
    """The item with whatever the rollout answered as its gold answer."""
    return replace(item, answers=(trajectory.answer,))


@pytest.fixture(scope="module")
def edited(world):
    """Counterfactuals of all searched rollouts, each taken to be correct."""
    pools = Alternatives(world.items, world.facts)
    answerer = Answerer(world.engine, world.agent)
    rows = []
    for t in (t for t in world.sampled if t.searches):
        item = _right(t, world.by_id[t.item_id])
        for config in (ReplacementConfig(), KEEP):
            rows.append((t, item, config, edit(answerer, item, t, pools, config)))
    return rows


def test_generated_tokens_stay_byte_for_byte(world, edited):
    """Behind the prompt: every generated token up to the cut, and observations around them."""
    kinds = set()
    for t, _, config, c in edited:
        if c.reason:
            continue
        kinds.add((config.restated, c.regenerated, c.prefix_states))
        end = t.answer_span[0]
        if c.regenerated == "turn":
            end = int(np.flatnonzero(t.segments[:end] == Segment.OBSERVATION)[-1]) + 1
        context, at, old = list(c.context), 0, 0
        for n, s in enumerate(t.searches):
            before = t.tokens[old : s.observation_span[0]]
            assert np.array(context[at : at + len(before)], np.int32).tobytes() == before.tobytes()
            at += len(before)
            old = s.observation_span[1]
            behind = t.searches[n + 1].observation_span[0] if n + 1 < len(t.searches) else end
            following = t.tokens[old:behind].tolist()
            rest = len(context) - at if n + 1 == len(t.searches) else None
            size = (rest - len(following)) if rest is not None else _next(context, at, following)
            observation = world.tokenizer.decode(context[at : at + size])
            assert observation.startswith("<information>")
            assert observation.endswith("</information>")
            at += size
        assert context[at:] == t.tokens[old:end].tolist()
    assert {k[:2] for k in kinds} >= {
        ("regenerate", "answer"), ("regenerate", "turn"), ("keep", "answer"),
    }  # fmt: skip
    assert not any(regenerated == "turn" for how, regenerated, _ in kinds if how == "keep")


def _next(context, at, following):
    """Length of the observation at ``at``, which ends where ``following`` begins."""
    sizes = (
        n for n in range(len(context) - at) if context[at + n :][: len(following)] == following
    )
    return next(sizes)


def test_documents_state_the_alternative_and_no_longer_the_answer(world, edited):
    checked = cut = 0
    pools = Alternatives(world.items, world.facts)
    for t, item, _, c in edited:
        if c.reason:
            continue
        checked += 1
        observed = world.tokenizer.decode(
            list(c.context)[t.searches[0].observation_span[0] :], skip_special_tokens=False
        )
        shown = normalise_answer(observed)
        assert contains_phrase(shown, normalise_answer(c.injected[0])) or _unknown(world, c)
        gold = normalise_answer(item.answers[0])
        passages = " ".join(
            part.split("</information>")[0] for part in observed.split("<information>")[1:]
        )
        for name in pools.longer_names(item.answers):
            passages = passages.replace(world.tokenizer.decode(world.tokenizer(name).input_ids), "")
        assert not contains_phrase(normalise_answer(passages), gold), passages
        assert c.mentions >= c.documents >= 1
        cut += any(s.observation_cut for s in t.searches)
        for s in t.searches:
            if s.observation_cut:
                assert s.observation_span[1] - s.observation_span[0] <= 120
    assert checked >= 10 and cut


def _unknown(world, counterfactual):
    """Whether the small tokenizer cannot spell the alternative."""
    ids = world.tokenizer(counterfactual.injected[0]).input_ids
    return world.tokenizer.unk_token_id in ids


def test_a_restated_answer_decides_what_is_regenerated(world, edited):
    pairs = [(edited[n], edited[n + 1]) for n in range(0, len(edited), 2)]
    turns = 0
    for (t, item, _, c), (_, _, _, kept) in pairs:
        if c.reason:
            assert kept == c
            continue
        start = t.answer_span[0]
        turn = int(np.flatnonzero(t.segments[:start] == Segment.OBSERVATION)[-1]) + 1
        thought = normalise_answer(world.tokenizer.decode(t.tokens[turn:start]))
        states = contains_phrase(thought, normalise_answer(item.answers[0]))
        assert (c.regenerated == "turn") == states
        if states:
            turns += 1
            assert kept.prefix_states and kept.context[: len(c.context)] == c.context
        else:
            assert kept == c
    assert turns


def test_outcomes_of_real_rollouts(world):
    pools = Alternatives(world.items, world.facts)
    answerer = Answerer(world.engine, world.agent)
    rollouts = [*world.sampled, *world.greedy]
    found = replace_documents(answerer, world.items, rollouts, pools)
    assert len(found) == len(rollouts)
    for t, c in zip(rollouts, found):
        golds = {normalise_answer(a) for a in world.by_id[t.item_id].answers}
        eligible = bool(t.searches) and normalise_answer(t.answer) in golds
        assert (c is not None) == eligible
        if c is not None:
            assert bool(c.reason) != bool(c.outcome), "classified, or a reason is given"
            assert c.outcome != "true" or normalise_answer(c.answer) in {
                normalise_answer(n) for n in c.injected
            }
    assert sum(c is not None and c.outcome == "true" for c in found) >= 1


@pytest.fixture
def one(world):
    """A rollout of one search that answers Bamako, which only its documents state."""
    item = Item("q", "What is the capital of Mali?", ("Bamako",), "1-hop, single", (), "test")
    protocol = build_protocol(world.agent, world.tokenizer)
    recorder = Recorder(protocol.prompt(item.question), 0)

    def turn(text):
        ids = np.array(world.tokenizer(text, add_special_tokens=False).input_ids, np.int32)
        none = np.zeros((len(ids), 0))
        action = protocol.parse(ids)
        recorder.turn(Generation(ids, np.zeros(len(ids)), none, none, "stop"), action)
        return action

    action = turn("Looking this up. </think> <search> Mali capital </search>")
    (hits,) = world.searcher.search([action.text], k=3)
    recorder.search(action, hits, protocol.observation(hits, action.ignored, 400))
    recorder.answer(turn("<think> Mali Capital. </think> <answer> Bamako </answer>"))
    trajectory = recorder.trajectory(item.item_id, 0, 0)
    assert trajectory.valid and trajectory.answer == "Bamako"
    assert any("Bamako" in text for text in trajectory.searches[0].texts)
    return trajectory, item


def _pools(*names):
    return Alternatives([Item(n, "?", (n,), "1-hop, single", (), "test") for n in names])


def _run(world, fake, t, item, pools, say="x </answer>", config=None, **sizes):
    answerer = Answerer(fake(lambda *_: say, **sizes), world.agent)
    return replace_documents(answerer, [item], [t], pools, config)[0]


@pytest.mark.parametrize(
    ("say", "outcome"), [("Oslo </answer>", "true"), ("{gold} </answer>", "hall"), ("x", "amb")]
)
def test_the_answer_is_read_behind_the_kept_prefix(world, fake, one, say, outcome):
    t, item = one
    pools = _pools("Oslo")
    c = _run(world, fake, t, item, pools, say.format(gold=t.answer), KEEP)
    assert (c.outcome, c.injected, c.regenerated) == (outcome, ("Oslo",), "answer")


def _stated(world, t, at):
    """The rollout with its answer thought aloud at token ``at``."""
    ids = world.tokenizer(t.answer).input_ids
    tokens = np.insert(t.tokens, at, ids).astype(np.int32)
    codes = np.insert(t.segments, at, [Segment.REASONING] * len(ids)).astype(np.uint8)

    def moved(span):
        return tuple(edge + len(ids) * (span[0] >= at) for edge in span)

    searches = [replace(s, observation_span=moved(s.observation_span)) for s in t.searches]
    return replace(
        t, tokens=tokens, segments=codes, answer_span=moved(t.answer_span), searches=searches
    )


def test_a_turn_that_does_not_answer_is_ambiguous(world, fake, one):
    t, item = one
    stated = _stated(world, t, t.answer_span[0] - 1)
    pools = _pools("Oslo")
    c = _run(world, fake, stated, item, pools, "<search> Mali </search>")
    assert (c.regenerated, c.answer, c.outcome) == ("turn", None, "amb")
    c = _run(world, fake, stated, item, pools, "so <answer> Oslo </answer>")
    assert (c.regenerated, c.answer, c.outcome, c.prefix_states) == ("turn", "Oslo", "true", False)
    c = _run(world, fake, stated, item, pools, "Oslo </answer>", KEEP)
    assert (c.regenerated, c.outcome, c.prefix_states) == ("answer", "true", True)


def test_what_was_said_before_the_documents_is_not_from_them(world, fake, one):
    """An answer thought of before the search: the last turn stays, the prefix does not count."""
    t, item = one
    pools = _pools("Oslo")
    guessed = _stated(world, t, t.prompt_length)
    c = _run(world, fake, guessed, item, pools, "Oslo </answer>", KEEP)
    assert (c.reason, c.outcome, c.prefix_states) == ("", "true", False)


def test_titles_are_part_of_a_document(world, fake, one):
    """The entity's own page is renamed; the query that found it stays as it was written."""
    t, item = one
    named = replace(item, question="Which country is it?", answers=("Mali",))
    c = _run(world, fake, replace(t, answer="Mali"), named, _pools("Oslo"), "Oslo </answer>", KEEP)
    assert (c.reason, c.outcome) == ("", "true")
    text = world.tokenizer.decode(list(c.context))
    assert "( 1 ) Mali" in world.tokenizer.decode(t.tokens) and "( 1 ) Mali" not in text
    assert "<search> Mali capital </search>" in text


def test_reasons_why_nothing_is_replaced(world, fake, one):
    t, item = one
    pools = _pools("Oslo")
    gold = t.answer
    yes = replace(t, answer="Yes")
    blank = replace(t, searches=[replace(t.searches[0], texts=["."] * 3, titles=["."] * 3)])
    texts = [f"It is {gold[0]}.{gold[1:]} there"] * 3
    spelled = replace(t.searches[0], texts=texts, titles=["."] * 3)
    cases = {
        NAMELESS: (yes, replace(item, answers=("yes",)), pools, {}),
        ASKED: (t, replace(item, question=f"Is it {gold}?"), pools, {}),
        NOT_SHOWN: (blank, item, pools, {}),
        NO_ALTERNATIVE: (t, item, _pools(gold), {}),
        LEFT: (replace(t, searches=[spelled]), item, pools, {}),
        TOO_LONG: (t, item, pools, {"max_length": 50}),
    }
    for reason, (trajectory, question, pool, sizes) in cases.items():
        c = _run(world, fake, trajectory, question, pool, **sizes)
        assert c == Counterfactual(reason), reason


def test_an_answer_behind_the_cut_was_not_shown(world, fake, one):
    t, item = one
    s = t.searches[0]
    protocol = build_protocol(world.agent, world.tokenizer)
    overhead = protocol.overhead
    tokens = t.tokens[slice(*s.observation_span)]
    head = [*tokens[:1], *tokens[-1:]]
    assert overhead == 2 == len(head)
    new = np.concatenate(
        [t.tokens[: s.observation_span[0]], head, t.tokens[s.observation_span[1] :]]
    ).astype(np.int32)
    gone = len(tokens) - 2
    codes = np.delete(t.segments, np.arange(s.observation_span[0], s.observation_span[0] + gone))
    bare = replace(
        t, tokens=new, segments=codes,
        answer_span=(t.answer_span[0] - gone, t.answer_span[1] - gone),
        searches=[replace(s, observation_cut=True,
                          observation_span=(s.observation_span[0], s.observation_span[0] + 2))],
    )  # fmt: skip
    pools = _pools("Oslo")
    assert _run(world, fake, bare, item, pools) == Counterfactual(NOT_SHOWN)


def test_other_agent_settings_than_the_rollouts_are_refused(world, one):
    t, item = one
    other = world.agent.model_copy(update={"passage": "{title} - {text}"})
    pools = _pools("Oslo")
    with pytest.raises(WorkbenchError, match="not what this protocol renders"):
        replace_documents(Answerer(world.engine, other), [item], [t], pools)


def test_unknown_items_are_refused_and_wrong_or_direct_rollouts_left_out(world, fake, one):
    t, item = one
    pools = _pools("Oslo")
    answerer = Answerer(fake(lambda *_: "x"), world.agent)
    with pytest.raises(WorkbenchError, match="no given item"):
        replace_documents(answerer, [], [t], pools)
    wrong, direct = replace(t, answer="Lima"), replace(t, searches=[])
    invalid = replace(t, valid=False)
    assert replace_documents(answerer, [item], [wrong, direct, invalid], pools) == [None] * 3
    assert answerer.counts.asked == 0
