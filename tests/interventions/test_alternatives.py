"""Alternatives of the same type, from the corpus's own answers and facts."""

from dataclasses import replace

import pytest

from workbench.evaluation.answers import contains_phrase, normalise_answer
from workbench.interventions.alternatives import Alternatives, answer_kind, node_kind
from workbench.questions.graph import Item, Node
from workbench.questions.relations import Fact


def _fact(fact_id, answer):
    page, relation = fact_id.split(".")[:2]
    return Fact(fact_id, page, page, relation, answer, 1, 0, 1)


FACTS = {
    f.fact_id: f
    for f in (
        _fact("ml.capital", "Bamako"),
        _fact("it.capital", "Rome"),
        _fact("ml.border.0", "Algeria"),
        _fact("ek.border.0", "Algeria"),
        _fact("it.national_day", "2 June"),
    )
}


def _node(fact_id, *answers):
    return Node("v1", "?", answers, (), (), fact_id)


def _item(*nodes, question="?", **more):
    answers = more.pop("answers", nodes[-1].answers if nodes else ("x",))
    return Item("q", question, answers, "1-hop, single", nodes, "test", **more)


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (_node("ml.capital", "Bamako"), "city"),
        (_node("ml.capital", "the BAMAKO"), "city"),
        (_node("ml.capital", "Mali", "Republic of Mali"), "country"),  # the described page
        (_node("ml.border.0&ek.border.0", "Algeria"), "country"),
        (_node("ml.capital&it.capital", "Mali"), "country"),
        (_node("Q1.P36", "Bamako"), None),
    ],
)
def test_the_kind_of_a_node(node, kind):
    assert node_kind(node, FACTS) == kind


def test_other_sources_fall_back_to_meta_and_category():
    assert answer_kind(_item(_node("ml.capital", "Mali"), _node("it.capital", "Rome")), FACTS) == (
        "city"
    )
    foreign = _item(_node("Q1.P36", "Bamako"), meta={"kind": "Q515"})
    assert answer_kind(foreign, FACTS) == "Q515"
    assert "1-hop, single" in answer_kind(replace(foreign, meta={}), FACTS)
    assert "1-hop, single" in answer_kind(_item(answers=("x",)), {})
    others = [replace(foreign, item_id=n, answers=(n,), nodes=(), meta={}) for n in ("a1", "b2")]
    assert Alternatives(others).choose(others[0], []) == ("b2",)


def test_an_entity_has_all_its_names():
    items = [
        _item(_node("ml.capital", "Mali", "Republic of Mali")),
        _item(_node("ml.capital", "Mali", "Soudan")),
        _item(_node("it.capital", "Rome")),
    ]
    pools = Alternatives(items, FACTS)
    assert pools.pool("country") == [("Algeria",), ("Mali", "Republic of Mali", "Soudan")]
    assert pools.pool("city") == [("Bamako",), ("Rome",)]
    assert pools.pool("day") == [("2 June",)] and pools.pool("nothing") == []


def test_alternatives_meet_their_conditions(world):
    pools = Alternatives(world.items, world.facts)
    sampled = {t.item_id: t for t in world.sampled if t.searches}
    assert len(sampled) > 10
    found = 0
    for item_id, trajectory in sampled.items():
        item = world.by_id[item_id]
        texts = [t for s in trajectory.searches for t in (*s.titles, *s.texts)]
        names = pools.choose(item, texts, seed=1)
        if names is None:
            continue
        found += 1
        assert names in pools.pool(pools.kind(item))
        assert names == pools.choose(item, texts, seed=1)
        for name in map(normalise_answer, names):
            assert name not in map(normalise_answer, item.answers)
            for text in (item.question, *texts):
                assert not contains_phrase(normalise_answer(text), name)
    assert found > 10
    chosen = {pools.choose(world.by_id[n], [], seed=s) for n in sampled for s in (0, 1)}
    assert len(chosen) > 5, "not one entity for all"


def test_an_alternative_is_another_entity():
    def nodes(*names):
        return [_item(_node("ml.capital", name)) for name in names]

    pools = Alternatives(nodes("Guinea", "Equatorial Guinea", "Papua New Guinea"), FACTS)
    item = _item(_node("ml.capital", "Guinea"))
    assert pools.choose(item, []) == ("Algeria",)
    assert pools.choose(item, ["Exports to ALGERIA: 4%"]) is None
    assert pools.choose(replace(item, question="Who borders Algeria?"), []) is None
    assert pools.choose(_item(_node("ml.capital", "New Guinea")), []) == ("Algeria",)


def test_longer_names_of_other_entities():
    pools = Alternatives(
        [_item(_node("ml.capital", n)) for n in ("Guinea", "Equatorial Guinea", "Guineans")], FACTS
    )
    assert pools.longer_names(("Guinea", "the GUINEA")) == {"Equatorial Guinea"}
    assert pools.longer_names(("Equatorial Guinea", "Guinea")) == frozenset()
