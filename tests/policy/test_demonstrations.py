"""What demonstrations teach and what they keep out: searches, masks, exposures, splits, swaps."""

import re
from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from workbench.policy.drafts import short_lines
from workbench.policy.lookups import lookups_of
from workbench.policy.sft import SFTConfig, step_batches
from workbench.questions.build import QuestionConfig, split_of
from workbench.questions.categories import CATEGORIES, CHAIN, SINGLE
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


def _longer(demonstrator):
    return [item for pool in demonstrator.longer for item in pool]


def _of_each_category(demonstrator, most=6):
    """Some readable questions of every category, named facts first."""
    found = {SINGLE: list(demonstrator.reading[:most])}
    for item in _longer(demonstrator):
        own = found.setdefault(item.category, [])
        if len(own) < most + most * (item.category == SINGLE):
            own.append(item)
    assert found.keys() == set(CATEGORIES)
    return [item for own in found.values() for item in own]


def _ids(world, text):
    return world.tokenizer.encode(text, add_special_tokens=False)


def _queries(world, names):
    """Token names of each executed query."""
    places = [i for i, n in enumerate(names) if n == "<search>"]
    return [names[i + 1 : names.index("</search>", i)] for i in places]


def _shows(hits, fact):
    """Whether one of the passages holds the whole mention, by page, paragraph and extent."""
    return any(
        hit.chunk.page_id == fact.page_id
        and any(
            e.paragraph == fact.paragraph and e.start <= fact.start and fact.end <= e.end
            for e in hit.chunk.extents
        )
        for hit in hits
    )


def _search(world, query):
    """What the retriever finds, each query asked once."""
    if query not in world.searches:
        (world.searches[query],) = world.searcher.search([query])
    return world.searches[query]


def _expected(world, lookups, styles=None):
    """Queries that are needed, one for each passage not shown before; their hits.

    ``styles`` maps a place among the lookups to a first, bad style.
    """
    queries, seen = [], []
    for place, lookup in enumerate(lookups):
        if _shows(seen, lookup.fact):
            continue
        for style in ([styles[place]] if styles and place in styles else []) + [0]:
            queries.append(lookup.query(style))
            hits = _search(world, queries[-1])
            seen += hits
            if _shows(hits, lookup.fact):
                break
    return queries, seen


def test_prompt_and_observations_are_never_targets(world, plain):
    seen = 0
    for item in plain.reading[:40] + _of_each_category(plain):
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
            # an answer after too few searches is not taught
            assert untaught in ([], world.tokenizer.tokenize(item.answers[0]))
    assert seen > 200


class TestGraphs:
    """Searches over question graphs, one for each required passage."""

    @pytest.fixture(scope="class")
    def straight(self, demonstrators):
        """Nothing sloppy, nothing cut short, nothing swapped or shuffled."""
        return demonstrators(
            **NO_SWAPS, sloppy=0.0, stop_early=0.0, answer_in_reasoning=0.0, shuffle_passages=0.0,
            told=0.0,
        )  # fmt: skip

    def test_longer_questions_have_all_passages_found(self, world, plain):
        pools = plain.longer
        assert len(pools) == 4 and all(pools)
        for hops, pool in enumerate(pools, start=1):
            for item in pool:
                assert item.hops == hops and item.split != "test"
                assert item.category != SINGLE or item.roots == "described" or hops > 1
                for lookup in lookups_of(item, world.facts):
                    assert _shows(_search(world, lookup.query()), lookup.fact), item.item_id
        kept = {item.item_id for item in _longer(plain)}
        missed = 0
        for item in world.items:  # and whatever was left out misses one, or is no candidate
            named_fact = item.category == SINGLE and item.roots == "named"
            if item.split == "test" or named_fact or item.item_id in kept:
                continue
            missed += 1
            lookups = lookups_of(item, world.facts)
            assert not all(_shows(_search(world, x.query()), x.fact) for x in lookups)
        assert missed > 0

    def test_pools_follow_the_hops_that_are_set(self, demonstrators, plain):
        two = demonstrators(hops=(0.5, 0.5)).longer
        assert [[i.item_id for i in pool] for pool in two] == [
            [i.item_id for i in pool] for pool in plain.longer[:2]
        ]

    def test_each_passage_is_searched_once_unless_it_was_shown(self, world, straight):
        saved = 0
        for item in _of_each_category(straight, most=40):
            lookups = lookups_of(item, world.facts)
            names = _names(world, straight.searched(item, generator("one", item.item_id)))
            queries, hits = _expected(world, lookups)
            if item in straight.reading and not _shows(hits, lookups[0].fact):
                assert "<search>" not in names  # answered directly, without its passage
                continue
            assert _queries(world, names) == [world.tokenizer.tokenize(q) for q in queries]
            assert all(_shows(hits, lookup.fact) for lookup in lookups)
            assert len(set(queries)) == len(queries)
            saved += len(lookups) - len(queries)
        assert saved > 10  # two passages in one chunk, or a page that was read before

    def test_what_is_observed_is_what_the_retriever_gave(self, world, plain):
        """Each search is followed by its own passages, whole, in some order."""
        shuffled = 0
        limit = plain.protocol.config.max_observation_tokens
        for item in _of_each_category(plain):
            names = _names(world, plain.searched(item, generator("seen", item.item_id)))
            asked = [x.query(style) for x in lookups_of(item, world.facts) for style in range(3)]
            tokens = world.tokenizer.convert_tokens_to_ids(names)
            for query in _queries(world, names):
                place = next(
                    i for i, n in enumerate(names)
                    if n == "</search>" and names[i - len(query) : i] == query
                ) + 1  # fmt: skip
                text = next(q for q in asked if world.tokenizer.tokenize(q) == query)
                orders = [
                    plain.protocol.observation(list(order), (), limit).ids
                    for order in permutations(_search(world, text))
                ]
                found = [n for n, ids in enumerate(orders)
                         if tokens[place : place + len(ids)] == list(ids)]  # fmt: skip
                assert found
                shuffled += found[0] > 0
                assert names[place] == "<information>"
        assert shuffled > 20

    @pytest.mark.parametrize("told", [0.0, 1.0])
    def test_whole_sequences_by_hand(self, world, demonstrators, told):
        """Prompt, searches, passages, thoughts and answer, put together from their texts."""
        d = demonstrators(
            **NO_SWAPS, sloppy=0.0, stop_early=0.0, answer_in_reasoning=0.0, shuffle_passages=0.0,
            told=told,
        )  # fmt: skip
        limit = d.protocol.config.max_observation_tokens
        for item in _of_each_category(d):
            ids, seen = list(d.protocol.prompt(item.question)), []
            for lookup in lookups_of(item, world.facts):
                if not _shows(seen, lookup.fact):
                    ids += _ids(world, "Looking this up. </think>")
                    ids += _ids(world, f"<search> {lookup.query()} </search>")
                    hits = _search(world, lookup.query())
                    ids += d.protocol.observation(hits, (), limit).ids
                    ids += _ids(world, "<think>")
                    seen += hits
                ids += _ids(world, _thought(world, lookup, seen, told) + ".")
            ids += _ids(world, f"</think> <answer> {item.answers[0]} </answer> <eos>")
            made = d.searched(item, generator("hand", item.item_id))
            assert _names(world, made) == world.tokenizer.convert_ids_to_tokens(ids), item.item_id

    def test_sloppy_queries_come_once_and_are_mended(self, world, demonstrators):
        d = demonstrators(**NO_SWAPS, sloppy=1.0, stop_early=0.0)
        kinds = Counter()
        for item in _of_each_category(d, most=4):
            lookups = lookups_of(item, world.facts)
            allowed = [
                [world.tokenizer.tokenize(q) for q in _expected(world, lookups, {place: style})[0]]
                for place in range(len(lookups))
                for style in (1, 2)
            ]
            for rng in _rngs(8):
                names = _names(world, d.searched(item, rng))
                found = _queries(world, names)
                if not found:
                    kinds["missed"] += 1  # only the sloppy way round
                    continue
                assert found in allowed, (item.item_id, found)
                again = " ".join(names).count("<think> Not there . Looking this up . </think>")
                assert again <= 1
                kinds["mended" if again else "found at once or not needed"] += 1
        assert kinds["mended"] > 50 and kinds["found at once or not needed"] > 5

    def test_what_a_sloppy_query_found_is_not_searched_again(
        self, world, demonstrators, monkeypatch
    ):
        """The first, bad query misses its passage and shows the one that is needed next."""
        d = demonstrators(**NO_SWAPS, sloppy=1.0, stop_early=0.0)
        item = next(
            i for i in d.longer[1]
            if i.category == CHAIN and len({n.evidence[0].page_id for n in i.nodes}) == 2
        )  # fmt: skip
        first, second = lookups_of(item, world.facts)
        found = {
            x: [h for h in _search(world, x.query()) if _shows([h], x.fact)]
            for x in (first, second)
        }
        assert not _shows(found[first], second.fact) and not _shows(found[second], first.fact)
        hits = {first.query(): found[first], second.query(): found[second]}
        hits |= {first.query(style): found[second] for style in (1, 2)}
        hits |= {second.query(style): found[second] for style in (1, 2)}
        monkeypatch.setattr(d, "_hits", hits)
        counts = Counter()
        for rng in _rngs(30):
            counts[len(_queries(world, _names(world, d.searched(item, rng))))] += 1
        # bad and good for the first, none for the second; or the bad one of the second will do
        assert counts.keys() == {2}
        sloppy = [first.query(style) for style in (1, 2)]
        asked = [
            [world.tokenizer.tokenize(q) for q in queries]
            for queries in ([sloppy[0], first.query()], [sloppy[1], first.query()],
                            [first.query(), second.query(1)], [first.query(), second.query(2)])
        ]  # fmt: skip
        for rng in _rngs(30):
            assert _queries(world, _names(world, d.searched(item, rng))) in asked

    def test_an_answer_after_too_few_searches_is_not_taught(self, world, demonstrators):
        d = demonstrators(**NO_SWAPS, sloppy=0.0, stop_early=1.0)
        cut = 0
        for item in _of_each_category(d):
            lookups = lookups_of(item, world.facts)
            made = d.searched(item, generator("stop", item.item_id))
            names = _names(world, made)
            answer = list(_answer_at(names))
            assert [names[i] for i in answer] == world.tokenizer.tokenize(item.answers[0])
            after = made.mask[answer[-1] + 1 :]
            assert after.all() and len(after) == 2 and made.mask[answer[0] - 1]
            if len(lookups) == 1:
                assert made.mask[answer].all()
                continue
            cut += 1
            assert not made.mask[answer].any()
            prefixes = [_expected(world, lookups[:stop])[0] for stop in range(1, len(lookups))]
            tokenized = [[world.tokenizer.tokenize(q) for q in queries] for queries in prefixes]
            assert _queries(world, names) in tokenized
            assert made.mask[: answer[0]].sum() > 5  # the searches are
        assert cut > 40

    def test_whole_searches_teach_their_answer(self, world, demonstrators):
        d = demonstrators(**NO_SWAPS, sloppy=0.0, stop_early=0.0)
        for item in _of_each_category(d):
            made = d.searched(item, generator("whole", item.item_id))
            names = _names(world, made)
            assert all(made.mask[i] for i in _answer_at(names))
            observed = np.array(names)[_observed(names)].tolist()
            # the answer, or for a page asked for by its object its title, was read before
            answer = world.tokenizer.tokenize(item.answers[0])
            assert " ".join(answer) in " ".join(observed)

    def test_reasoning_without_telling_does_not_give_the_answer_away(self, world, straight):
        """Only where the last page itself is asked for, its title stands where it was found."""
        checked = 0
        for item in _of_each_category(straight):
            last = lookups_of(item, world.facts)[-1]
            if last.backward:
                continue
            made = straight.searched(item, generator("quiet", item.item_id))
            names = _names(world, made)
            said = " ".join(n for n, m in zip(names[: _answer_at(names)[0]], made.mask) if m)
            checked += 1
            earlier = " ".join(f.title for f in (x.fact for x in lookups_of(item, world.facts)))
            answer = " ".join(world.tokenizer.tokenize(item.answers[0]))
            assert answer not in said or answer in earlier
        assert checked > 40

    def test_what_is_taught_can_be_said(self, world, demonstrators):
        """Every target is a word of the vocabulary; a name is one token."""
        d, unknown = demonstrators(told=1.0), world.tokenizer.unk_token_id
        for item in _of_each_category(d):
            for make in (d.searched, d.masked_direct):
                made = make(item, generator("words", item.item_id))
                assert unknown not in made.tokens[made.mask]
            made = d.searched(item, generator("words", item.item_id))
            assert len(_answer_at(_names(world, made))) == 1

    def test_made_up_results_are_read_like_found_ones(self, world, demonstrators):
        """Same queries; three passages, in one of which the mention stands under its title."""
        d = demonstrators(
            **NO_SWAPS, sloppy=0.0, stop_early=0.0, answer_in_reasoning=0.0, invented=1.0
        )
        short, made_up = short_lines(world.pages, list(world.facts.values())), Counter()
        for item in _of_each_category(d):
            lookups = lookups_of(item, world.facts)
            names = _names(world, d.searched(item, generator("made up", item.item_id)))
            if "<search>" not in names:
                assert len(lookups) == 1 and lookups[0].fact.fact_id not in short
                continue
            assert names[-3:] == [item.answers[0], "</answer>", "<eos>"]
            asked = _queries(world, names)
            wanted = [world.tokenizer.tokenize(x.query()) for x in lookups]
            assert [q for q in wanted if q in asked] == asked
            starts = [i for i, n in enumerate(names) if n == "<information>"]
            for query, start in zip(asked, starts, strict=True):
                lookup = lookups[wanted.index(query)]
                said = " ".join(names[start : names.index("</information>", start)])
                compared = lookup.first or lookup.second
                if compared or lookup.fact.fact_id not in short:
                    made_up["found"] += 1
                    continue
                line = " ".join(world.tokenizer.tokenize(short[lookup.fact.fact_id]))
                title = " ".join(world.tokenizer.tokenize(lookup.fact.title))
                own = [p for p in _passages(said) if line in p]
                assert len(_passages(said)) == 3
                assert [p.startswith(f"{title} : ") for p in own].count(True) == 1
                made_up["made up"] += 1
        assert made_up["made up"] > 40 and made_up["found"] > 10

    def test_questions_are_drawn_by_hops(self, world, demonstrators, monkeypatch):
        d = demonstrators(hops=(0.4, 0.3, 0.2, 0.1), named=0.75, named_early=0.5, lookups_late=0.0,
                          lookups_early=0.0)  # fmt: skip
        for name in ("searched", "masked_direct"):
            monkeypatch.setattr(type(d), name, lambda self, item, rng: item)
        rng = generator("test-hops", 0)
        drawn = [d.draw(rng) for _ in range(4000)]
        for hops, share in enumerate((0.4, 0.3, 0.2, 0.1), start=1):
            found = sum(i.hops == hops for i in drawn) / 4000
            assert found == pytest.approx(share, abs=5 * (share * (1 - share) / 4000) ** 0.5)
        single = [i for i in drawn if i.hops == 1]
        named = sum(i.category == SINGLE and i.roots == "named" for i in single) / len(single)
        assert named == pytest.approx(0.75, abs=0.06)
        early = [d.draw(rng, early=True) for _ in range(2000)]
        assert {i.hops for i in early} == {1, 2}
        assert sum(i.hops == 1 for i in early) / 2000 == pytest.approx(4 / 7, abs=0.056)
        single = [i for i in early if i.hops == 1]
        named = sum(i.category == SINGLE and i.roots == "named" for i in single) / len(single)
        assert named == pytest.approx(0.5, abs=0.075)

    def test_no_fact_of_a_test_page_is_looked_up(self, world, plain):
        config = QuestionConfig()
        for item in plain.reading + _longer(plain):
            assert item.split != "test"
            for lookup in lookups_of(item, world.facts):
                assert split_of(lookup.fact.page_id, config) != "test"
        test = next(i for i in world.items if i.split == "test")
        with pytest.raises(KeyError):
            plain.searched(test, generator("t"))


def _passages(said):
    """The numbered passages of an observation, without their numbers."""
    return re.split(r"\( \d \) ", said.removeprefix("<information> "))[1:]


def _thought(world, lookup, hits, told):
    """What is thought of a passage, worked out from the facts that the passages show."""
    fact, both = lookup.fact, lookup.first or lookup.second
    place = f"{fact.title} {BY_NAME[fact.relation].field}"
    shown = [f for h in hits for f in world.facts.values() if _shows([h], f)]
    if lookup.backward:
        names = [f.title for f in shown if (f.relation, f.answer) == (fact.relation, fact.answer)]
    else:
        names = [f.answer for f in shown if (f.relation, f.title) == (fact.relation, fact.title)]
    names = list(dict.fromkeys(names))
    if lookup.backward and lookup.first:
        return "One of " + " , ".join(names)
    if not told or (not both and (lookup.backward or lookup.last)):
        return place
    if not both:
        return f"{place} : {fact.answer}"
    if lookup.second:
        names = [f"{n} both" if n in lookup.answers else f"{n} not" for n in names]
    return " , ".join(names) if lookup.backward else f"{place} : " + " , ".join(names)


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
    assert test and not test & {i.item_id for i in plain.reading + _longer(plain)}
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
    renamed, items = Counter(), _of_each_category(plain, most=40)
    for item in items:
        a = plain.searched(item, generator("swap", item.item_id))
        b = swapping.searched(item, generator("swap", item.item_id))
        if a.tokens.shape != b.tokens.shape or not (a.mask == b.mask).all():
            continue  # a miss of the retriever falls back to a direct demonstration
        forward, backward = {}, {}
        for x, y in zip(a.tokens.tolist(), b.tokens.tolist(), strict=True):
            assert forward.setdefault(x, y) == y
            assert backward.setdefault(y, x) == x
        changed = {world.tokenizer.convert_ids_to_tokens(x) for x, y in forward.items() if x != y}
        facts = [world.facts[name] for n in item.nodes for name in n.fact_id.split("&")]
        assert changed <= {f.answer for f in facts} | {f.title for f in facts}
        renamed[item.category] += len(changed)
        names = _names(world, b)
        if "<information>" in names and item in plain.reading and _whole(world, item):
            (final,) = _answer_at(names)
            assert names[final] in np.array(names)[_observed(names)]
            assert names[final] != item.answers[0]
    assert renamed.keys() == set(CATEGORIES) and min(renamed.values()) > 0
    assert renamed.total() > 2 * len(items)


def test_two_names_of_one_token_are_never_swapped(world, plain, swapping):
    """Each answer on the way gets a second name: it stays, the others go on being swapped."""
    stayed, renamed = Counter(), 0

    def also_called(item, place, name):
        node = item.nodes[place]
        aliased = replace(node, answers=(*node.answers, name))
        return replace(item, nodes=(*item.nodes[:place], aliased, *item.nodes[place + 1 :]))

    for item in _of_each_category(plain):
        for place, node in enumerate(item.nodes):
            a, b, longer, free = (
                _names(world, d.searched(asked, generator("alias", item.item_id)))
                for d, asked in (
                    (plain, item),
                    (swapping, also_called(item, place, "<search>")),
                    (swapping, also_called(item, place, "Another name")),  # two tokens
                    (swapping, item),
                )
            )  # fmt: skip
            assert longer == free
            if not len(a) == len(b) == len(free):
                continue
            changed = {x for x, y in zip(a, b, strict=True) if x != y}
            assert not changed & set(node.answers)
            renamed += len(changed)
            if set(node.answers) & {x for x, y in zip(a, free, strict=True) if x != y}:
                stayed[item.category] += 1  # without the alias it would have gone
    assert stayed.keys() == set(CATEGORIES) and renamed > 50


def test_swaps_take_names_of_the_same_kind(world, plain, swapping):
    """A capital becomes a city, a title a title; what a swap brings in was nowhere before."""
    kinds = {}
    for fact in world.facts.values():
        kinds.setdefault(fact.answer, set()).add(BY_NAME[fact.relation].kind)
    titles = {f.title for f in world.facts.values()}
    swaps = 0
    for item in _of_each_category(plain):
        a = plain.searched(item, generator("kind", item.item_id))
        b = swapping.searched(item, generator("kind", item.item_id))
        if a.tokens.shape != b.tokens.shape:
            continue
        old, new = _names(world, a), _names(world, b)
        own = {BY_NAME[x.fact.relation].kind for x in lookups_of(item, world.facts)}
        for x, y in {(x, y) for x, y in zip(old, new, strict=True) if x != y}:
            swaps += 1
            assert y not in old
            assert (x in titles and y in titles) or kinds[x] & kinds[y] & own
    assert swaps > 100


def test_no_swaps_leave_everything_as_it_is(world, plain, swapping):
    """With both shares 0 the retriever's own passages stand in the sequence."""
    same = 0
    for item in _of_each_category(plain):
        names = _names(world, plain.searched(item, generator("as is", item.item_id)))
        titles = {x.fact.title for x in lookups_of(item, world.facts)}
        same += all(t in names for t in titles if len(_ids(world, t)) == 1)
        assert _names(world, plain.searched(item, generator("as is", item.item_id))) == names
    assert same > 40


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
