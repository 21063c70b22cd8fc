"""Statements and what is known of their properties: by hand, refusals named and counted."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.questions.graph import Evidence
from workbench.questions.statements import Knowledge, Property, Statement, refusal, usable

PROPERTIES = {name: Property(name, "city", ("Which {s}?",), "the x of {s}") for name in ("p", "q")}


def say(subject, relation, obj, suffix=""):
    return Statement(
        f"{subject}.{relation}.{obj}{suffix}", subject, relation, obj,
        (subject.upper(),), (obj.upper(),), Evidence(subject, 1, ((0, 1),)),
    )  # fmt: skip


def know(*triples, **settings):
    return Knowledge([say(*t) for t in triples], PROPERTIES, **settings)


GOOD = say("a", "p", "x")


class TestLookUp:
    WORLD = know(
        ("b", "p", "x"), ("a", "p", "x"), ("a", "p", "y"), ("a", "q", "b"), ("c", "q", "b"),
    )  # fmt: skip

    def test_everything_is_sorted(self):
        assert self.WORLD.subjects() == ["a", "b", "c"]
        assert list(self.WORLD.statements) == ["a.p.x", "a.p.y", "a.q.b", "b.p.x", "c.q.b"]
        assert self.WORLD.relations("a") == ["p", "q"]
        assert self.WORLD.shared_objects() == [("p", "x"), ("q", "b")]

    def test_objects_and_holders(self):
        assert self.WORLD.objects("a", "p") == {
            "x": say("a", "p", "x"), "y": say("a", "p", "y"),
        }  # fmt: skip
        assert list(self.WORLD.holders("p", "x")) == ["a", "b"]
        assert self.WORLD.holders("p", "x")["b"] == say("b", "p", "x")

    def test_what_is_unknown_is_empty(self):
        assert self.WORLD.relations("z") == [] and self.WORLD.objects("z", "p") == {}
        assert self.WORLD.objects("a", "z") == {} and self.WORLD.holders("q", "x") == {}
        assert self.WORLD.only("z", "p") is None and not self.WORLD.linked("z", "x")
        assert know().subjects() == [] and know().shared_objects() == []

    def test_asking_does_not_make_entities(self):
        world = know(("a", "p", "x"))
        for nothing in (world.objects("z", "p"), world.relations("y"), world.holders("p", "z")):
            assert not nothing
        assert not world.linked("z", "")
        assert world.subjects() == ["a"] and world.shared_objects() == []

    def test_links_have_a_direction(self):
        assert self.WORLD.linked("a", "b") and self.WORLD.linked("a", "y")
        assert not self.WORLD.linked("b", "a") and not self.WORLD.linked("c", "x")


class TestFunctional:
    def test_half_of_the_subjects_may_have_two_objects(self):
        """Objects per subject 1 and 2: 1.5 on average, just functional."""
        world = know(("a", "p", "x"), ("b", "p", "x"), ("b", "p", "y"))
        assert world.only("a", "p") == say("a", "p", "x")
        assert world.only("b", "p") is None  # functional, but two objects here

    def test_more_is_too_much(self):
        """1, 2 and 2: 1.67 on average, so not even the single object counts."""
        triples = [("a", "p", "x"), *((s, "p", o) for s in "bc" for o in "xy")]
        assert know(*triples).only("a", "p") is None
        assert know(*triples, max_objects=1.67).only("a", "p") == say("a", "p", "x")

    def test_each_property_has_its_own_average(self):
        world = know(("a", "p", "x"), ("a", "q", "x"), ("a", "q", "y"))
        assert world.only("a", "p") == say("a", "p", "x") and world.only("a", "q") is None
        assert know(("a", "q", "x"), ("a", "q", "y"), max_objects=2.0).only("a", "q") is None

    def test_only_subjects_that_have_the_property_are_averaged(self):
        """b to e have no p: they do not lower its 2 objects per subject."""
        others = [(s, "q", "x") for s in "bcde"]
        assert know(("a", "p", "x"), ("a", "p", "y"), *others).only("b", "p") is None
        assert know(("a", "p", "x"), ("a", "p", "y"), ("f", "p", "x"), *others).only("f", "p")

    def test_one_object_said_twice_is_one(self):
        world = Knowledge([say("a", "p", "x", ".2"), say("a", "p", "x", ".1")], PROPERTIES)
        assert world.only("a", "p").statement_id == "a.p.x.1"  # the first by id
        assert world.holders("p", "x")["a"].statement_id == "a.p.x.1"
        assert len(world.statements) == 2

    @given(
        st.lists(
            st.tuples(st.sampled_from("abcd"), st.sampled_from("pq"), st.sampled_from("wxyz")),
            unique=True,
        )
    )
    def test_against_a_count(self, triples):
        world = know(*triples)
        for relation in "pq":
            own = {s: {o for t, r, o in triples if (t, r) == (s, relation)} for s in "abcd"}
            counts = [len(objects) for objects in own.values() if objects]
            functional = bool(counts) and sum(counts) / len(counts) <= 1.5
            for subject, objects in own.items():
                found = world.only(subject, relation)
                assert (found is not None) == (functional and len(objects) == 1)
                assert found is None or found.object in objects


class TestKnowledgeBase:
    """Facts that no passage says: they count as objects and as links, and ground nothing."""

    def test_they_count_as_objects(self):
        world = know(("a", "p", "x"), ("b", "p", "x"), facts=[("a", "p", "y"), ("b", "p", "x")])
        assert world.known("a", "p") == {"x", "y"} and world.known("b", "p") == {"x"}
        assert world.known("c", "p") == set()
        assert list(world.objects("a", "p")) == ["x"]
        assert world.only("a", "p") is None  # two objects
        assert world.only("b", "p") == say("b", "p", "x")  # 1.5 on average

    def test_they_count_in_the_average(self):
        facts = [("a", "p", "y"), ("a", "p", "z")]
        world = know(("a", "p", "x"), ("b", "p", "x"), facts=facts)
        assert world.only("b", "p") is None  # 2 on average

    def test_they_link_and_hold_nothing(self):
        world = know(("a", "p", "x"), facts=[("a", "other", "z"), ("z", "p", "x")])
        assert world.linked("a", "z") and world.linked("z", "x")
        assert world.subjects() == ["a"] and world.shared_objects() == []
        assert world.only("a", "p") == say("a", "p", "x")

    def test_averages_of_the_whole_base_are_taken_as_given(self):
        mean = {"p": 1.5, "q": 1.51}
        world = know(("a", "p", "x"), ("a", "q", "x"), mean_objects=mean)
        assert world.only("a", "p") == say("a", "p", "x") and world.only("a", "q") is None
        assert know(("a", "p", "x"), mean_objects={}).only("a", "p") is None


REFUSED = [
    (replace(GOOD, relation="r"), "unknown property 'r'"),
    (replace(GOOD, evidence=Evidence("", 1, ((0, 1),))), "no source passage"),
    (replace(GOOD, evidence=Evidence("a", 1, ())), "no source passage"),
    (replace(GOOD, evidence=Evidence("a", 1, ((0, 1), (4, 4)))), "a mention outside its passage"),
    (replace(GOOD, evidence=Evidence("a", 1, ((5, 2),))), "a mention outside its passage"),
    (replace(GOOD, evidence=Evidence("a", 1, ((-1, 2),))), "a mention outside its passage"),
    (replace(GOOD, answers=()), "an empty answer"),
    (replace(GOOD, answers=("X", " ")), "an empty answer"),
    (replace(GOOD, subject_names=()), "a subject without name"),
    (replace(GOOD, subject_names=("",)), "a subject without name"),
]


class TestRefusals:
    def test_a_sound_statement_is_taken(self):
        assert refusal(GOOD, PROPERTIES) is None

    @pytest.mark.parametrize(("statement", "reason"), REFUSED)
    def test_knowledge_names_the_record(self, statement, reason):
        assert refusal(statement, PROPERTIES) == reason
        bad = replace(statement, statement_id="a.bad")
        with pytest.raises(WorkbenchError, match=f"^statement a.bad: {reason}$"):
            Knowledge([GOOD, bad], PROPERTIES)

    def test_knowledge_names_an_id_that_occurs_twice(self):
        with pytest.raises(WorkbenchError, match="^statement a.p.x: two statements have one id$"):
            Knowledge([GOOD, replace(GOOD, object="y")], PROPERTIES)

    def test_usable_keeps_and_counts(self):
        bad = [replace(s, statement_id=f"bad{n}") for n, (s, _) in enumerate(REFUSED)]
        again = replace(GOOD, object="y")
        other = say("b", "q", "x")
        kept, refused = usable(iter([bad[0], GOOD, *bad[1:], again, other]), PROPERTIES)
        assert kept == [GOOD, other]
        assert refused == {
            "unknown property 'r'": ["bad0"],
            "no source passage": ["bad1", "bad2"],
            "a mention outside its passage": ["bad3", "bad4", "bad5"],
            "an empty answer": ["bad6", "bad7"],
            "a subject without name": ["bad8", "bad9"],
            "two statements have one id": ["a.p.x"],
        }
        Knowledge(kept, PROPERTIES)  # takes them all

    def test_nothing_to_keep(self):
        assert usable([], PROPERTIES) == ([], {})
        assert usable([GOOD], {}) == ([], {"unknown property 'p'": ["a.p.x"]})

    def test_a_sound_record_after_a_refused_one_of_its_id_is_kept(self):
        kept, refused = usable([replace(GOOD, answers=()), GOOD], PROPERTIES)
        assert (kept, refused) == ([GOOD], {"an empty answer": ["a.p.x"]})

    @given(st.lists(st.sampled_from([GOOD, *(s for s, _ in REFUSED)]), max_size=10))
    def test_nothing_is_lost(self, statements):
        statements = [replace(s, statement_id=f"s{n % 4}") for n, s in enumerate(statements)]
        kept, refused = usable(statements, PROPERTIES)
        named = [s.statement_id for s in kept] + [i for ids in refused.values() for i in ids]
        assert sorted(named) == sorted(s.statement_id for s in statements)
        Knowledge(kept, PROPERTIES)
