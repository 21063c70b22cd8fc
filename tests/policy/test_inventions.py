"""Made-up results: what is asked for stands in one of them, and never twice in the same company."""

from collections import Counter

import pytest

from workbench.policy.drafts import short_lines
from workbench.policy.inventions import Inventor
from workbench.questions.relations import Fact
from workbench.seeding import generator

DRAWS = 60


@pytest.fixture(scope="module")
def facts(world):
    return list(world.facts.values())


@pytest.fixture(scope="module")
def lines(world, facts):
    return short_lines(world.pages, facts)


@pytest.fixture(scope="module")
def titles(facts):
    return sorted({f.title for f in facts})


@pytest.fixture(scope="module")
def inventor(facts, lines, titles):
    return Inventor(facts, lines, titles)


@pytest.fixture(scope="module")
def drawn(facts, lines, inventor):
    """(fact, results) for facts of many relations, each asked for many times."""
    some = [f for f in facts if f.fact_id in lines and f.page_id in ("fr", "ja", "ml")]
    return [
        (fact, inventor.results(fact, generator("invent", fact.fact_id, n)))
        for fact in some
        for n in range(DRAWS)
    ]


def told(chunk, lines, facts):
    """The facts whose lines the passage is put together from, by line."""
    by_line = {}
    for fact in facts:
        if fact.fact_id in lines:
            by_line.setdefault(lines[fact.fact_id], []).append(fact)
    return [by_line[line] for line in chunk.text.split("\n") if line]


def test_one_passage_of_three_says_it(drawn, lines):
    for fact, results in drawn:
        assert len(results) == 3
        own = [r.chunk for r in results if r.chunk.page_id]
        (chunk,) = own
        assert (chunk.page_id, chunk.title) == (fact.page_id, fact.title)
        assert lines[fact.fact_id] in chunk.text.split("\n")
        for offset, there in (
            (fact.start - 1, False), (fact.start, True), (fact.end - 1, True), (fact.end, False),
        ):  # fmt: skip
            assert chunk.contains(fact.page_id, fact.paragraph, offset) == there
        assert not chunk.contains(fact.page_id, fact.paragraph + 1, fact.start)


def test_no_other_passage_of_the_page_has_the_relation(drawn, lines, facts, titles):
    for fact, results in drawn:
        for chunk in (r.chunk for r in results):
            assert chunk.title in titles
            said = told(chunk, lines, facts)
            assert len(said) <= 3
            relations = [{f.relation for f in own} for own in said]
            assert max(Counter(r for own in relations for r in own).values(), default=1) == 1
            same = any(fact.relation in own for own in relations)
            if chunk.page_id:
                others = [own for own in said if fact not in own]
                assert same and all(f.answer != fact.answer for own in others for f in own)
            elif chunk.title == fact.title:
                assert not same
            elif same:  # the same field says something else of another page
                assert all(f.answer != fact.answer for own in said for f in own
                           if f.relation == fact.relation)  # fmt: skip


def test_rivals_and_passages_of_one_page_are_common(drawn, lines, facts, titles):
    counts = Counter()
    for fact, results in drawn:
        for chunk in (r.chunk for r in results if not r.chunk.page_id):
            rival = any(
                f.relation == fact.relation for own in told(chunk, lines, facts) for f in own
            )
            counts["same page" if chunk.title == fact.title else "rival" if rival else "other"] += 1
    # the title is drawn for it or already it (one of twelve); of the rest 70 % are rivals
    same = 0.3 + 0.7 / len(titles)
    bound = 5 * (0.25 / counts.total()) ** 0.5
    assert counts["same page"] / counts.total() == pytest.approx(same, abs=bound)
    assert counts["rival"] / counts.total() == pytest.approx((1 - same) * 0.7, abs=bound)


def test_where_it_stands_says_nothing(drawn):
    places = Counter(
        [bool(r.chunk.page_id) for r in results].index(True) for _, results in drawn
    )  # fmt: skip
    share, bound = 1 / 3, 5 * (0.25 / len(drawn)) ** 0.5
    for place in range(3):
        assert places[place] / len(drawn) == pytest.approx(share, abs=bound)


def test_no_set_comes_twice_and_the_same_draw_gives_the_same(drawn, inventor):
    sets = Counter(
        frozenset((r.chunk.title, r.chunk.text) for r in results) for _, results in drawn
    )
    assert len(sets) > 0.99 * len(drawn)
    fact, _ = drawn[0]
    one, other = (inventor.results(fact, generator("again", 0)) for _ in range(2))
    assert one == other


def test_a_long_line_is_not_made_up(inventor, facts, lines):
    long = [f for f in facts if f.fact_id not in lines]
    assert long and all(inventor.results(f, generator("long", 0)) is None for f in long)


def test_without_rivals_there_is_none():
    """The only fact of its relation stands alone with lines of others."""
    facts = [
        Fact("aa.capital", "aa", "Alphaland", "capital", "Axe", 1, 9, 12),
        Fact("bb.symbol", "bb", "Betaland", "symbol", "lion", 1, 20, 24),
    ]
    lines = {"aa.capital": "Capital: Axe", "bb.symbol": "National symbol(s): lion"}
    made = Inventor(facts, lines, ["Alphaland", "Betaland"])
    for seed in range(50):
        results = made.results(facts[0], generator("alone", seed))
        assert sum("Capital: Axe" in r.chunk.text for r in results if r.chunk.page_id) == 1
        own = [r.chunk for r in results if r.chunk.title == "Alphaland" and not r.chunk.page_id]
        assert all("Capital" not in chunk.text for chunk in own)
