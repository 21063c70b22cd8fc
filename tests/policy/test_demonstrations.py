"""What demonstrations teach and what they keep out: masks, exposures, splits, swaps."""

from collections import Counter

import numpy as np
import pytest

from workbench.policy.sft import SFTConfig, step_batches
from workbench.questions.relations import BY_NAME
from workbench.seeding import generator

NO_SWAPS = {"swap_answer": 0.0, "swap_subject": 0.0}


@pytest.fixture(scope="module")
def plain(demonstrators):
    return demonstrators(**NO_SWAPS)


@pytest.fixture(scope="module")
def swapping(demonstrators):
    return demonstrators(swap_answer=1.0, swap_subject=1.0)


def _rngs(count):
    return [generator("test-demonstrations", i) for i in range(count)]


def _names(world, demonstration):
    return world.tokenizer.convert_ids_to_tokens(demonstration.tokens.tolist())


def _observed(names):
    """bool [T]: the tokens of observations, tags included."""
    inside, flags = False, []
    for name in names:
        inside = inside or name == "<information>"
        flags.append(inside)
        inside = inside and name != "</information>"
    return np.array(flags)


def _answer_at(names):
    """Places of the answer tokens inside the final tags."""
    return range(len(names) - names[::-1].index("<answer>"), len(names) - 2)


def test_prompt_and_observations_are_never_targets(world, plain):
    seen = 0
    for item in plain.reading[:40] + plain.chains[:40]:
        for rng in _rngs(3):
            made = plain.searched(item, rng)
            names = _names(world, made)
            if "<search>" not in names:  # the retriever missed: answered directly instead
                continue
            seen += 1
            prompt = plain.protocol.prompt(item.question)
            start, observed = len(prompt), _observed(names)
            assert made.tokens.dtype == np.int64 and made.mask.dtype == bool
            assert made.tokens.shape == made.mask.shape
            assert made.tokens[:start].tolist() == prompt and names[start - 1] == "<think>"
            assert not made.mask[:start].any() and not made.mask[observed].any()
            taught = made.mask | observed
            untaught = [n for n, t in zip(names[start:], taught[start:], strict=True) if not t]
            assert untaught in ([], [item.answers[0]])  # a chain answered after one search
    assert seen > 100


def _whole(world, item):
    """Whether some chunk holds the whole mention of the answer (long paragraphs are cut)."""
    fact = world.facts[item.nodes[-1].fact_id]
    return any(
        c.contains(fact.page_id, fact.paragraph, fact.start)
        and c.contains(fact.page_id, fact.paragraph, fact.end - 1)
        for c in world.chunks
    )


def test_a_search_ends_in_the_answer_that_was_read(world, plain):
    searched = 0
    for item in plain.reading:
        made = plain.searched(item, generator("one", item.item_id))
        names = _names(world, made)
        assert names[-1] == "<eos>" and names[-2] == "</answer>"
        if "<information>" not in names or not _whole(world, item):
            continue
        searched += 1
        answer = [names[i] for i in _answer_at(names)]
        assert answer == [item.answers[0]]
        assert all(made.mask[i] for i in _answer_at(names))
        assert item.answers[0] in np.array(names)[_observed(names)]  # it stands in a passage
    assert searched > 0.9 * len(plain.reading)


def test_a_statement_is_learnt_whole(world, plain):
    for item in plain.single[:60]:
        made = plain.statement(item, generator("s", item.item_id))
        names = _names(world, made)
        prompts = [p.prompt(item.question) for p in (plain.protocol, plain.closed_book)]
        (length,) = {len(p) for p in prompts if made.tokens[: len(p)].tolist() == p}
        assert made.mask.tolist() == [False] * length + [True] * (len(names) - length)
        assert [names[i] for i in _answer_at(names)] == [item.answers[0]]
        assert "<search>" not in names


def test_both_prompts_are_stated_in_the_share_that_is_set(world, demonstrators):
    for share in (0.0, 1.0):
        d = demonstrators(statement_closed_book=share)
        wanted = (d.closed_book if share else d.protocol).prompt(d.single[0].question)
        for rng in _rngs(20):
            assert d.statement(d.single[0], rng).tokens[: len(wanted)].tolist() == wanted


def test_a_masked_answer_is_not_taught_at_its_first_mention(world, plain):
    item = plain.reading[0]
    kind = BY_NAME[world.facts[item.nodes[0].fact_id].relation].kind
    pool = {f.answer for f in world.facts.values() if BY_NAME[f.relation].kind == kind}
    kinds = Counter()
    for rng in _rngs(300):
        made = plain.masked_direct(item, rng)
        names = _names(world, made)
        start = names.index("<think>") + 1
        (final,) = _answer_at(names)
        mentions = [i for i in range(start, len(names)) if names[i] == names[final]]
        assert not made.mask[mentions[0]]
        assert all(made.mask[i] for i in mentions[1:])
        assert not made.mask[:start].any()
        assert made.mask[final + 1 :].all()
        kinds[len(mentions)] += 1
        assert names[final] in pool
    assert kinds[2] / 300 == pytest.approx(0.65, abs=0.12) and set(kinds) == {1, 2}


def test_statements_come_exactly_as_often_as_the_facts_exposures(world, plain, monkeypatch):
    stated = Counter()
    original = type(plain).statement

    def counting(self, item, rng):
        stated[item.item_id] += 1
        return original(self, item, rng)

    monkeypatch.setattr(type(plain), "statement", counting)
    total = sum(i.exposures for i in plain.single)
    assert total > 100
    config = SFTConfig(steps=50, tokens_per_step=total * 2, warmup_steps=0)
    assert len(list(step_batches(plain, config))) == 50
    assert stated == {i.item_id: i.exposures for i in plain.single if i.exposures}
    assert any(i.split == "test" and i.exposures for i in plain.single)  # test facts too


def test_steps_fill_their_tokens_and_depend_on_the_seed(plain):
    def tokens(seed):
        config = SFTConfig(steps=4, tokens_per_step=600, warmup_steps=0, seed=seed)
        batches = list(step_batches(plain, config))
        for batch in batches:
            assert sum(len(d.tokens) for d in batch) >= 600
            assert sum(len(d.tokens) for d in batch[:-1]) < 600
        return [d.tokens.tolist() for b in batches for d in b]

    assert tokens(0) == tokens(0)
    assert tokens(0) != tokens(1)


def test_test_questions_are_never_read_or_answered_with_their_passage(world, plain):
    test = {i.item_id for i in world.items if i.split == "test"}
    assert test and not test & {i.item_id for i in plain.reading + plain.chains}
    questions = {
        tuple(plain.protocol.prompt(i.question)): i for i in world.items if i.split == "test"
    }
    questions |= {
        tuple(plain.closed_book.prompt(i.question)): i for i in world.items if i.split == "test"
    }
    lengths = {len(q) for q in questions}
    for rng in _rngs(400):
        made = plain.draw(rng, early=False).tokens.tolist()
        assert not any(tuple(made[:n]) in questions for n in lengths)


def test_swaps_replace_a_name_everywhere_in_the_sequence(world, plain, swapping):
    """The same draws with and without swaps differ by one consistent renaming."""
    renamed = 0
    for item in plain.reading + plain.chains:
        a = plain.searched(item, generator("swap", item.item_id))
        b = swapping.searched(item, generator("swap", item.item_id))
        if a.tokens.shape != b.tokens.shape or not (a.mask == b.mask).all():
            continue  # a miss of the retriever falls back to a direct demonstration
        forward, backward = {}, {}
        for x, y in zip(a.tokens.tolist(), b.tokens.tolist(), strict=True):
            assert forward.setdefault(x, y) == y
            assert backward.setdefault(y, x) == x
        changed = {x for x, y in forward.items() if x != y}
        facts = [world.facts[n.fact_id] for n in item.nodes]
        own = {f.answer for f in facts} | {f.title for f in facts}
        assert {world.tokenizer.convert_ids_to_tokens(x) for x in changed} <= own
        renamed += len(changed)
        names = _names(world, b)
        if "<information>" in names and item.hops == 1 and _whole(world, item):
            (final,) = _answer_at(names)
            assert names[final] in np.array(names)[_observed(names)]
            assert names[final] != item.answers[0]
    assert renamed > len(plain.reading)


def test_statements_and_masked_answers_are_never_swapped(plain, swapping):
    for item in plain.single[:40]:
        a, b = (d.statement(item, generator("s", item.item_id)) for d in (plain, swapping))
        assert a.tokens.tolist() == b.tokens.tolist()
    for item in plain.reading[:40]:
        a, b = (d.masked_direct(item, generator("m", item.item_id)) for d in (plain, swapping))
        assert a.tokens.tolist() == b.tokens.tolist()


def test_lookups_answer_what_their_passages_say(world, plain):
    for rng in _rngs(30):
        made = plain.lookups(rng, copy=False)
        names = _names(world, made)
        observed = _observed(names)
        assert not made.mask[observed].any()
        passages = set(np.array(names)[observed])
        answers = [names[i + 1] for i, n in enumerate(names) if n == "<answer>"]
        assert answers and set(answers) <= passages
        assert all(made.mask[i + 1] for i, n in enumerate(names) if n == "<answer>")


def test_copies_repeat_their_passages(world, plain):
    for rng in _rngs(10):
        made = plain.lookups(rng, copy=True)
        names = _names(world, made)
        end = names.index("</information>") + 1
        assert not made.mask[:end].any()
        assert Counter(names[end:]) - Counter(names[:end]) == Counter()
        assert (~made.mask[end:]).sum() == 3  # one title for each passage


def test_the_early_mixture_has_the_set_share_of_lookups(demonstrators, world):
    d = demonstrators(lookups_early=1.0, lookups_late=0.0, copies_early=0.0)
    for rng in _rngs(10):
        assert _names(world, d.draw(rng, early=True))[0] == "<information>"
    for rng in _rngs(30):
        assert _names(world, d.draw(rng, early=False))[0] != "<information>"
