"""Every constructor of question graphs by hand: nodes, prerequisites, texts, ids, shortcuts.

The world: Mali (capital Bamako, main partner Chile), Fiji (capital Suva), both border Peru and
have further neighbours; Peru's main partner is Oman, Oman's capital is Muscat.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.questions.compose import (
    Partial,
    fill,
    identify,
    identify_by_two,
    join,
    name_of,
    share,
    shortcut,
    start,
    step,
    subject_evidence,
    wording,
)
from workbench.questions.graph import Evidence, Node
from workbench.questions.statements import Knowledge, Property, Statement

CAPITAL = Property(
    "capital", "city", ("What is the capital of {s}?",), "the capital of {s}",
    "the country whose capital is {o}",
)  # fmt: skip
PARTNER = Property(
    "partner", "country", ("Which country trades most with {s}?",), "the main partner of {s}",
    "the country whose main partner is {o}", leads=True,
)  # fmt: skip
BORDER = Property(
    "border", "country", ("Which country borders {s}?",), "a country that borders {s}",
    shared="the country that borders both {a} and {b}", leads=True,
)  # fmt: skip
PROPERTIES = {p.name: p for p in (CAPITAL, PARTNER, BORDER)}
NAMES = {
    "ml": ("Mali",), "fj": ("Fiji", "Viti"), "pe": ("Peru",), "om": ("Oman",), "cl": ("Chile",),
    "bamako": ("Bamako",), "suva": ("Suva",), "muscat": ("Muscat",),
}  # fmt: skip


def say(subject, prop, obj, paragraph=1, **fields):
    return Statement(
        f"{subject}.{prop.name}.{obj}", subject, prop.name, obj, NAMES[subject], NAMES[obj],
        Evidence(subject, paragraph, ((20, 26),)), **fields,
    )  # fmt: skip


ML_CAPITAL = say("ml", CAPITAL, "bamako")
ML_PARTNER = say("ml", PARTNER, "cl", 2)
FJ_CAPITAL = say("fj", CAPITAL, "suva")
ML_BORDER, FJ_BORDER = say("ml", BORDER, "pe", 3), say("fj", BORDER, "pe", 3)
PE_PARTNER = say("pe", PARTNER, "om", 2)
OM_CAPITAL = say("om", CAPITAL, "muscat")
BACKWARD = identify(ML_CAPITAL, CAPITAL)
OTHER = identify(FJ_CAPITAL, CAPITAL)


def questions(partial):
    return [n.question for n in partial.nodes]


class TestStarts:
    def test_the_subject_by_its_object(self):
        question = "What is the name of the country whose capital is Bamako?"
        assert BACKWARD == Partial(
            "^ml.capital.bamako",
            (Node("v1", question, ("Mali",), (ML_CAPITAL.evidence,), (), "ml.capital.bamako"),),
            "ml",
            "the country whose capital is Bamako",
            question,
            (ML_CAPITAL,),
            ("bamako", "ml"),
            False,
        )

    def test_the_mention_is_the_subjects_where_the_passage_has_one(self):
        named = replace(ML_CAPITAL, mentions_subject=((0, 4), (40, 44)))
        assert subject_evidence(named) == Evidence("ml", 1, ((0, 4), (40, 44)))
        assert subject_evidence(ML_CAPITAL) == Evidence("ml", 1, ((20, 26),))
        assert identify(named, CAPITAL).nodes[0].evidence == (subject_evidence(named),)
        forward = start(named, CAPITAL, "Mali")  # asks for the object all the same
        assert forward.nodes[0].evidence == (Evidence("ml", 1, ((20, 26),)),)

    def test_the_first_name_of_the_object_describes(self):
        aliased = replace(ML_CAPITAL, answers=("Bamakou", "Bamako"))
        assert identify(aliased, CAPITAL).phrase == "the country whose capital is Bamakou"

    def test_the_object_of_a_described_subject(self):
        made = start(ML_CAPITAL, CAPITAL, "the land of gold")
        node = Node(
            "v1", "What is the capital of the land of gold?", ("Bamako",), (ML_CAPITAL.evidence,),
            (), "ml.capital.bamako",
        )  # fmt: skip
        assert made == Partial(
            "ml.capital.bamako", (node,), "bamako", "the capital of the land of gold",
            node.question, (ML_CAPITAL,), ("ml", "bamako"), False,
        )  # fmt: skip
        assert start(ML_CAPITAL, CAPITAL, "Mali", named=True).named

    def test_the_subject_by_two_objects(self):
        made = identify_by_two(ML_CAPITAL, ML_PARTNER, PROPERTIES, "country")
        phrase = "the country whose capital is Bamako and whose main partner is Chile"
        node = Node(
            "v1", f"What is the name of {phrase}?", ("Mali",),
            (ML_CAPITAL.evidence, ML_PARTNER.evidence), (), "ml.capital.bamako&ml.partner.cl",
        )  # fmt: skip
        assert made == Partial(
            "^ml.capital.bamako&ml.partner.cl", (node,), "ml", phrase, node.question,
            (ML_CAPITAL, ML_PARTNER), ("bamako", "cl", "ml"), False,
        )  # fmt: skip

    def test_the_object_that_two_subjects_share(self):
        own = replace(ML_BORDER, answers=("Piru", "Peru"))
        made = share(own, FJ_BORDER, BORDER, "Mali", "the isles", named=True)
        phrase = "the country that borders both Mali and the isles"
        node = Node(
            "v1", f"What is the name of {phrase}?", ("Piru", "Peru"),
            (ML_BORDER.evidence, FJ_BORDER.evidence), (), "ml.border.pe&fj.border.pe",
        )  # fmt: skip
        assert made == Partial(
            "ml.border.pe&fj.border.pe", (node,), "pe", phrase, node.question,
            (own, FJ_BORDER), ("ml", "fj", "pe"), True,
        )  # fmt: skip


class TestSteps:
    TWO = step(identify(ML_PARTNER, PARTNER), ML_BORDER, BORDER)

    def test_one_hop_longer(self):
        made = step(BACKWARD, ML_PARTNER, PARTNER)
        node = Node(
            "v2", "Which country trades most with #1?", ("Chile",), (ML_PARTNER.evidence,),
            ("v1",), "ml.partner.cl",
        )  # fmt: skip
        assert made == Partial(
            "^ml.capital.bamako>ml.partner.cl", (*BACKWARD.nodes, node), "cl",
            "the main partner of the country whose capital is Bamako",
            "Which country trades most with the country whose capital is Bamako?",
            (ML_CAPITAL, ML_PARTNER), ("bamako", "ml", "cl"), False,
        )  # fmt: skip

    def test_steps_nest_and_number(self):
        made = step(step(self.TWO, PE_PARTNER, PARTNER), OM_CAPITAL, CAPITAL)
        assert made.graph_id == "^ml.partner.cl>ml.border.pe>pe.partner.om>om.capital.muscat"
        assert questions(made) == [
            "What is the name of the country whose main partner is Chile?",
            "Which country borders #1?",
            "Which country trades most with #2?",
            "What is the capital of #3?",
        ]
        assert [n.prerequisites for n in made.nodes] == [(), ("v1",), ("v2",), ("v3",)]
        assert made.question == (
            "What is the capital of the main partner of a country that borders "
            "the country whose main partner is Chile?"
        )
        assert made.path == ("cl", "ml", "pe", "om", "muscat") and made.entity == "muscat"

    def test_a_named_root_stays_named(self):
        named = start(ML_BORDER, BORDER, "Mali", named=True)
        assert step(named, PE_PARTNER, PARTNER).named
        assert not step(BACKWARD, ML_PARTNER, PARTNER).named
        assert join(BACKWARD, replace(OTHER, named=True), ML_BORDER, FJ_BORDER, BORDER).named
        assert not join(BACKWARD, OTHER, ML_BORDER, FJ_BORDER, BORDER).named


class TestJoins:
    def test_two_single_nodes(self):
        made = join(BACKWARD, OTHER, ML_BORDER, FJ_BORDER, BORDER)
        phrase = (
            "the country that borders both the country whose capital is Bamako "
            "and the country whose capital is Suva"
        )
        assert made.graph_id == (
            "(^ml.capital.bamako | ^fj.capital.suva)>ml.border.pe&fj.border.pe"
        )
        assert made.nodes == (
            BACKWARD.nodes[0],
            replace(OTHER.nodes[0], node_id="v2"),
            Node(
                "v3", "What is the name of the country that borders both #1 and #2?", ("Peru",),
                (ML_BORDER.evidence, FJ_BORDER.evidence), ("v1", "v2"),
                "ml.border.pe&fj.border.pe",
            ),
        )  # fmt: skip
        assert (made.entity, made.phrase, made.question) == ("pe", phrase, name_of(phrase))
        assert made.statements == (ML_CAPITAL, FJ_CAPITAL, ML_BORDER, FJ_BORDER)
        assert made.path == ("bamako", "ml", "suva", "fj", "pe")

    def test_a_longer_branch_moves_its_references_along(self):
        """Left and right have two nodes each; #1 of the right becomes #3."""
        left = step(BACKWARD, ML_PARTNER, PARTNER)
        right = step(
            OTHER, replace(ML_PARTNER, subject="fj", statement_id="fj.partner.cl"), PARTNER
        )
        made = join(left, right, ML_BORDER, FJ_BORDER, BORDER)
        assert [n.node_id for n in made.nodes] == ["v1", "v2", "v3", "v4", "v5"]
        assert [n.prerequisites for n in made.nodes] == [(), ("v1",), (), ("v3",), ("v2", "v4")]
        assert questions(made)[1:] == [
            "Which country trades most with #1?",
            "What is the name of the country whose capital is Suva?",
            "Which country trades most with #3?",
            "What is the name of the country that borders both #2 and #4?",
        ]
        assert made.question == name_of(
            "the country that borders both the main partner of the country whose capital is "
            "Bamako and the main partner of the country whose capital is Suva"
        )

    def test_a_join_can_be_moved_itself(self):
        inner = join(BACKWARD, OTHER, ML_BORDER, FJ_BORDER, BORDER)
        made = join(BACKWARD, inner, ML_BORDER, FJ_BORDER, BORDER)
        assert made.nodes[3].question.endswith("both #2 and #3?")
        assert made.nodes[3].prerequisites == ("v2", "v3")
        assert made.nodes[4].question.endswith("both #1 and #4?")

    def test_a_number_in_a_name_is_no_reference(self):
        song = replace(FJ_CAPITAL, answers=("Mambo #5 and #1",))
        made = join(BACKWARD, identify(song, CAPITAL), ML_BORDER, FJ_BORDER, BORDER)
        assert made.nodes[1].question.endswith("whose capital is Mambo #5 and #1?")

    def test_a_step_after_a_join(self):
        made = step(join(BACKWARD, OTHER, ML_BORDER, FJ_BORDER, BORDER), PE_PARTNER, PARTNER)
        assert made.nodes[3].question == "Which country trades most with #3?"
        assert made.nodes[3].prerequisites == ("v3",)
        assert made.question.startswith("Which country trades most with the country that borders")
        assert made.graph_id.endswith(")>ml.border.pe&fj.border.pe>pe.partner.om")

    def test_answers_of_both_statements_count_once(self):
        own = replace(ML_BORDER, answers=("Piru", "Peru"))
        other = replace(FJ_BORDER, answers=("Peru", "Pérou"))
        made = join(BACKWARD, OTHER, own, other, BORDER)
        assert made.nodes[-1].answers == ("Piru", "Peru", "Pérou")


class TestWording:
    TWO = replace(CAPITAL, asks=("Where from is {s}?", "What is {s}'s capital?"))

    def test_a_key_has_one_template_and_all_templates_are_used(self):
        drawn = [wording(self.TWO, "Mali", f"key {n}") for n in range(100)]
        assert drawn == [wording(self.TWO, "Mali", f"key {n}") for n in range(100)]
        assert set(drawn) == {"Where from is Mali?", "What is Mali's capital?"}
        assert 30 < drawn.count("Where from is Mali?") < 70

    @given(st.text(max_size=9))
    def test_question_and_node_are_worded_alike(self, statement_id):
        made = step(BACKWARD, replace(ML_CAPITAL, statement_id=statement_id), self.TWO)
        assert made.nodes[1].question.replace("#1", BACKWARD.phrase) == made.question

    def test_stand_ins_are_filled_everywhere(self):
        made = step(start(ML_BORDER, BORDER, "<root>"), PE_PARTNER, PARTNER)
        filled = fill(made, {"<root>": "the land of gold"})
        assert questions(filled) == [
            "Which country borders the land of gold?", "Which country trades most with #1?",
        ]  # fmt: skip
        assert filled.phrase == "the main partner of a country that borders the land of gold"
        assert filled.question == (
            "Which country trades most with a country that borders the land of gold?"
        )
        assert (filled.graph_id, filled.statements) == (made.graph_id, made.statements)
        assert fill(made, {}) == made


class TestShortcuts:
    CHAIN = step(step(identify(ML_CAPITAL, CAPITAL), ML_BORDER, BORDER), PE_PARTNER, PARTNER)
    JOINED = join(BACKWARD, OTHER, ML_BORDER, FJ_BORDER, BORDER)

    def knowledge(self, *more):
        own = (ML_CAPITAL, ML_PARTNER, FJ_CAPITAL, ML_BORDER, FJ_BORDER, PE_PARTNER, OM_CAPITAL)
        return Knowledge([*own, *more], PROPERTIES)

    def test_no_shortcut(self):
        for partial in (BACKWARD, self.CHAIN, self.JOINED, step(self.CHAIN, OM_CAPITAL, CAPITAL)):
            assert not shortcut(partial, self.knowledge())

    def test_the_root_leads_straight_to_the_answer(self):
        """Mali borders Oman: the question after Peru's partner needs no Peru."""
        assert shortcut(self.CHAIN, self.knowledge(say("ml", BORDER, "om", 3)))

    def test_a_second_link_from_the_last_prerequisite_is_none(self):
        assert not shortcut(self.CHAIN, self.knowledge(say("pe", BORDER, "om", 3)))

    def test_a_link_back_is_none(self):
        assert not shortcut(self.CHAIN, self.knowledge(say("om", BORDER, "ml", 3)))

    def test_a_link_from_elsewhere_is_none(self):
        assert not shortcut(self.CHAIN, self.knowledge(say("cl", BORDER, "om", 3)))

    @pytest.mark.parametrize("entity", ["ml", "pe"])
    def test_the_answer_was_met_before(self, entity):
        back = step(self.CHAIN, say("om", BORDER, entity, 3), BORDER)
        assert back.path[-1] == entity and shortcut(back, self.knowledge())

    def test_both_branches_of_a_join_may_lead_to_the_answer(self):
        more = say("ml", PARTNER, "pe", 2)
        assert not shortcut(self.JOINED, self.knowledge(more))

    def test_what_lies_behind_a_branch_may_not(self):
        """Chile is reached from Mali; if Mali borders Peru itself, Chile is not needed."""
        left = step(BACKWARD, ML_PARTNER, PARTNER)
        cl_border = say("cl", BORDER, "pe", 3)
        made = join(left, OTHER, cl_border, FJ_BORDER, BORDER)
        assert shortcut(made, self.knowledge(cl_border))
        without = Knowledge([ML_CAPITAL, ML_PARTNER, FJ_CAPITAL, FJ_BORDER, cl_border], PROPERTIES)
        assert not shortcut(made, without)

    def test_a_branch_that_ends_in_the_answer(self):
        made = join(identify(PE_PARTNER, PARTNER), OTHER, ML_BORDER, FJ_BORDER, BORDER)
        assert made.path == ("om", "pe", "suva", "fj", "pe") and shortcut(made, self.knowledge())

    def test_the_way_leads_back_to_what_describes_the_root(self):
        """Who has Oman as partner and which partner do they have: the question says it."""
        back = step(identify(PE_PARTNER, PARTNER), PE_PARTNER, PARTNER)
        assert back.path == ("om", "pe", "om") and shortcut(back, self.knowledge())

    def test_what_describes_the_root_leads_straight_to_the_answer(self):
        """Oman describes Peru; if it borders Chile itself, Peru is not needed for Chile."""
        to_cl = say("pe", BORDER, "cl", 3)
        made = step(identify(PE_PARTNER, PARTNER), to_cl, BORDER)
        assert not shortcut(made, self.knowledge(to_cl))
        assert shortcut(made, self.knowledge(to_cl, say("om", BORDER, "cl", 3)))
        two = identify_by_two(PE_PARTNER, to_cl, PROPERTIES | {"border": PARTNER}, "country")
        assert two.path == ("om", "cl", "pe") and not shortcut(two, self.knowledge())
        onward = step(two, say("pe", CAPITAL, "suva"), CAPITAL)
        assert not shortcut(onward, self.knowledge())
        for entity in ("om", "cl"):
            assert shortcut(onward, self.knowledge(say(entity, CAPITAL, "suva")))

    def test_two_branches_over_one_entity(self):
        """Mali's partner Chile also describes Fiji; the answer itself is met once only."""
        left, cl_border = step(BACKWARD, ML_PARTNER, PARTNER), say("cl", BORDER, "pe", 3)
        right = identify(say("fj", PARTNER, "cl", 2), PARTNER)
        made = join(left, right, cl_border, FJ_BORDER, BORDER)
        assert made.path == ("bamako", "ml", "cl", "cl", "fj", "pe")
        assert shortcut(made, Knowledge([ML_CAPITAL, ML_PARTNER, cl_border, FJ_BORDER], PROPERTIES))
        other = join(left, OTHER, cl_border, FJ_BORDER, BORDER)
        assert not shortcut(
            other, Knowledge([ML_CAPITAL, ML_PARTNER, cl_border, FJ_BORDER], PROPERTIES)
        )

    def test_one_branch_may_lead_to_the_other(self):
        """Only links to the answer are shortcuts."""
        assert not shortcut(self.JOINED, self.knowledge(say("ml", BORDER, "fj", 3)))

    def test_two_objects_of_one_subject(self):
        made = identify_by_two(ML_CAPITAL, ML_PARTNER, PROPERTIES, "country")
        assert not shortcut(made, self.knowledge(say("ml", BORDER, "fj", 3)))
        assert not shortcut(step(made, ML_BORDER, BORDER), self.knowledge())

    def test_facts_of_a_knowledge_base_count(self):
        own = [ML_CAPITAL, ML_BORDER, PE_PARTNER]
        assert not shortcut(self.CHAIN, Knowledge(own, PROPERTIES))
        assert shortcut(self.CHAIN, Knowledge(own, PROPERTIES, facts=[("ml", "twin", "om")]))
