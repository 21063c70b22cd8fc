"""What is looked up for each category by hand, in which order and with which query."""

import pytest

from workbench.policy.lookups import STYLES, Lookup, lookups_of
from workbench.questions.categories import CATEGORIES
from workbench.questions.graph import Item, Node
from workbench.questions.relations import BY_NAME, Fact

TITLES = {"a": "Algeria", "b": "Benin", "c": "Chad", "d": "Dominica"}


def _fact(fact_id, answer):
    page, relation = fact_id.split(".")[:2]
    return Fact(fact_id, page, TITLES[page], relation, answer, 1, 0, 3)


FACTS = {
    fact_id: _fact(fact_id, answer)
    for fact_id, answer in (
        ("a.capital", "Algiers"), ("a.language", "Arabic"), ("a.symbol", "star"),
        ("b.capital", "Porto-Novo"), ("b.export_partner", "Chad"), ("c.export_partner", "Dominica"),
        ("d.capital", "Roseau"), ("d.export_partner", "Algeria"),
        ("a.border.1", "Chad"), ("b.border.0", "Chad"), ("c.capital", "N'Djamena"),
        ("d.symbol", "Dominica"),
    )
}  # fmt: skip


def graph(category, *nodes):
    """Nodes from ``"^b.capital"`` (asked for the page) or ``"v1 v2 > a.border.1&b.border.0"``."""
    made = []
    for place, text in enumerate(nodes, start=1):
        before, _, fact_id = text.rpartition(" > ")
        first = FACTS[fact_id.removeprefix("^").split("&")[0]]
        answer = first.title if fact_id.startswith("^") else first.answer
        made.append(
            Node(f"v{place}", "?", (answer,), (), tuple(before.split()), fact_id.removeprefix("^"))
        )
    return Item("i", "?", made[-1].answers, category, tuple(made), "train")


# fact, what the query knows; "^": the page is looked for; "1", "2": of two passages; "!": last
CASES = [
    ("1-hop, single", ["a.capital"], ["a.capital Algeria !"]),
    ("1-hop, single", ["^a.capital"], ["a.capital Algiers ^!"]),
    (
        "1-hop, conjunctive",
        ["a.border.1&b.border.0"],
        ["a.border.1 Algeria 1", "b.border.0 Benin 2!"],
    ),
    ("1-hop, conjunctive", ["^a.language&a.symbol"], ["a.language Arabic ^1", "a.symbol star ^2!"]),
    (
        "2-hop, chain",
        ["^b.capital", "v1 > b.export_partner"],
        ["b.capital Porto-Novo ^", "b.export_partner Benin !"],
    ),
    (
        "2-hop, chain",  # an answer that is the page's own title is still looked up by it
        ["c.export_partner", "v1 > d.symbol"],
        ["c.export_partner Chad ", "d.symbol Dominica !"],
    ),
    (
        "2-hop, wide",
        ["^a.language&a.symbol", "v1 > a.capital"],
        ["a.language Arabic ^1", "a.symbol star ^2", "a.capital Algeria !"],
    ),
    (
        "2-hop, wide",
        ["a.border.1&b.border.0", "v1 > c.capital"],
        ["a.border.1 Algeria 1", "b.border.0 Benin 2", "c.capital Chad !"],
    ),
    (
        "3-hop-1, chain",
        ["b.export_partner", "v1 > c.export_partner", "v2 > d.capital"],
        ["b.export_partner Benin ", "c.export_partner Chad ", "d.capital Dominica !"],
    ),
    (
        "3-hop-1, wide",
        ["a.border.1&b.border.0", "v1 > c.export_partner", "v2 > d.capital"],
        ["a.border.1 Algeria 1", "b.border.0 Benin 2", "c.export_partner Chad ",
         "d.capital Dominica !"],
    ),
    (
        "3-hop-2, fan-in",
        ["^a.capital", "^b.capital", "v1 v2 > a.border.1&b.border.0"],
        ["a.capital Algiers ^", "b.capital Porto-Novo ^", "a.border.1 Algeria 1",
         "b.border.0 Benin 2!"],
    ),
    (
        "4-hop-1, chain",
        ["^b.capital", "v1 > b.export_partner", "v2 > c.export_partner", "v3 > d.capital"],
        ["b.capital Porto-Novo ^", "b.export_partner Benin ", "c.export_partner Chad ",
         "d.capital Dominica !"],
    ),
    (
        "4-hop-2, fan-in",
        ["^d.capital", "v1 > d.export_partner", "^b.capital", "v2 v3 > a.border.1&b.border.0"],
        ["d.capital Roseau ^", "d.export_partner Dominica ", "b.capital Porto-Novo ^",
         "a.border.1 Algeria 1", "b.border.0 Benin 2!"],
    ),
    (
        "4-hop-3, fan-in",
        ["^a.capital", "b.export_partner", "v1 v2 > a.border.1&b.border.0", "v3 > c.capital"],
        ["a.capital Algiers ^", "b.export_partner Benin ", "a.border.1 Algeria 1",
         "b.border.0 Benin 2", "c.capital Chad !"],
    ),
]  # fmt: skip


def told(lookup):
    flags = ((lookup.backward, "^"), (lookup.first, "1"), (lookup.second, "2"), (lookup.last, "!"))
    marks = "".join(mark for flag, mark in flags if flag)
    return f"{lookup.fact.fact_id} {lookup.word} {marks}"


@pytest.mark.parametrize(("category", "nodes", "expected"), CASES)
def test_lookups_of_each_category(category, nodes, expected):
    item = graph(category, *nodes)
    found = lookups_of(item, FACTS)
    assert [told(lookup) for lookup in found] == expected
    assert all(lookup.fact is FACTS[lookup.fact.fact_id] for lookup in found)
    answers = [node.answers for node in item.nodes for _ in node.fact_id.split("&")]
    assert [lookup.answers for lookup in found] == answers


def test_all_ten_are_covered():
    assert {category for category, _, _ in CASES} == set(CATEGORIES)


def test_every_required_passage_is_looked_up_once_in_order(world):
    """The corpus: the facts of the nodes as they stand, each with title or description."""
    for item in world.items:
        found = lookups_of(item, world.facts)
        assert [x.fact.fact_id for x in found] == [
            name for node in item.nodes for name in node.fact_id.split("&")
        ]
        places = [(e.page_id, e.paragraph) for node in item.nodes for e in node.evidence]
        assert [(x.fact.page_id, x.fact.paragraph) for x in found] == places
        for lookup in found:
            assert lookup.word == (lookup.fact.answer if lookup.backward else lookup.fact.title)
        # a query can be written from the question and what was read before
        known = item.question
        for lookup in found:
            assert lookup.word in known
            known += f" {lookup.fact.answer} {lookup.fact.title}"


class TestQueries:
    def test_styles_by_hand(self):
        forward = Lookup(FACTS["a.capital"], "Algeria")
        assert [forward.query(style) for style in range(len(STYLES))] == [
            "Algeria capital", "Algeria", "Algeria national anthem lyrics",
        ]  # fmt: skip
        assert forward.query() == forward.query(0)
        backward = Lookup(FACTS["a.capital"], "Algiers", backward=True)
        assert backward.query() == "Algiers capital" and backward.query(1) == "Algiers"

    def test_the_other_field_is_another_one(self):
        names = list(BY_NAME)
        for place, name in enumerate(names):
            lookup = Lookup(_fact(f"a.{name}", "x"), "Algeria")
            other = BY_NAME[names[(place + 7) % len(names)]]
            assert lookup.query(2) == other.query.format(s="Algeria") != lookup.query()
            assert other.field != BY_NAME[name].field
