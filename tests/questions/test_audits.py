"""Audits on graphs made by hand, where every count is known, and on the embedded questions."""

from dataclasses import replace

import pytest

from workbench.corpus.chunking import ChunkConfig, chunk_pages
from workbench.corpus.records import Chunk, Extent
from workbench.questions.audits import (
    audit_graphs,
    category_counts,
    has_cycle,
    split_overlap,
)
from workbench.questions.graph import Evidence, Item, Node

# Paragraph 1 of page p is cut after its 20th character.
CHUNKS = [
    Chunk("p#0", "p", "P", "-", (Extent(1, 0, 20), Extent(2, 0, 9))),
    Chunk("p#1", "p", "P", "-", (Extent(1, 20, 40),)),
    Chunk("q#0", "q", "Q", "-", (Extent(1, 0, 30),)),
]


def node(name, *evidence, before=()):
    places = tuple(Evidence(page, paragraph, spans) for page, paragraph, spans in evidence)
    return Node(name, f"Who is {name}?", (f"answer {name}",), places, before)


def item(item_id, *nodes, answers=("Bamako",), question="", split="train", **fields):
    question = question or f"What is {item_id}?"
    return Item(item_id, question, answers, "2-hop, chain", nodes, split, **fields)


WHOLE = ("p", 1, ((2, 8),))
CUT = ("p", 1, ((15, 25),))
EITHER = ("p", 1, ((15, 25), (30, 35)))


class TestGraphs:
    def test_counts_by_hand(self):
        conjunctive = node("v2", CUT, ("q", 1, ((0, 3),)), before=("v1",))
        audit = audit_graphs([item("a", node("v1", WHOLE), conjunctive)], CHUNKS)
        assert (audit.records, audit.nodes, audit.conjunctive, audit.annotations) == (1, 2, 1, 3)
        assert (audit.missing_prerequisites, audit.cycles, audit.ungrounded) == (0, 0, 0)
        assert (audit.start_covered, audit.without_whole_mention) == (3, 1)
        assert (audit.matched_pairs, audit.partial_pairs) == (3, 1)

    def test_one_whole_mention_is_enough_for_the_record_but_not_for_each_chunk(self):
        audit = audit_graphs([item("a", node("v1", EITHER))], CHUNKS)
        assert (audit.start_covered, audit.without_whole_mention) == (1, 0)
        assert (audit.matched_pairs, audit.partial_pairs) == (2, 1)

    def test_faults_are_counted_one_by_one(self):
        nowhere = node("v1", ("p", 1, ((50, 55),)))
        bare = node("v2", before=("v1", "v9"))
        circle = item("b", node("v1", WHOLE, before=("v2",)), node("v2", WHOLE, before=("v1",)))
        audit = audit_graphs([item("a", nowhere, bare), circle], CHUNKS)
        assert (audit.ungrounded, audit.missing_prerequisites, audit.cycles) == (2, 1, 1)
        assert (audit.annotations, audit.start_covered) == (3, 2)

    def test_two_annotations_of_one_passage_do_not_make_a_node_conjunctive(self):
        audit = audit_graphs([item("a", node("v1", WHOLE, CUT))], CHUNKS)
        assert (audit.conjunctive, audit.annotations) == (0, 2)

    @pytest.mark.parametrize(
        ("edges", "cycle"),
        [
            ({}, False),
            ({"b": ("a",), "c": ("a", "b")}, False),
            ({"a": ("a",)}, True),
            ({"a": ("c",), "b": ("a",), "c": ("b",)}, True),
            ({"a": ("z",), "b": ("a",)}, False),
        ],
    )
    def test_cycles(self, edges, cycle):
        assert has_cycle([node(n, before=edges.get(n, ())) for n in "abc"]) == cycle


class TestSplits:
    TRAIN = [
        item("a", node("v1", WHOLE), answers=("The Oslo!",), question="Which is one?"),
        item("b", node("v1", ("q", 1, ((0, 3),))), question="Is Bamako the capital?"),
    ]

    def compare(self, *other):
        return split_overlap(self.TRAIN, other)

    def test_nothing_shared(self):
        new = item("c", node("v1", ("r", 1, ((0, 3),))), answers=("Rome",))
        overlap = self.compare(new)
        assert (overlap.train, overlap.other, overlap.evidence_unseen) == (2, 1, 1)
        for name in ("same_id", "same_question", "alias_other", "page_shared", "answer_shared"):
            assert getattr(overlap, name) == 0
        assert overlap.alias_train == 1

    def test_each_kind_of_sharing(self):
        paragraph = node("v1", ("p", 2, ((0, 3),)))
        seen, partly = node("v1", WHOLE), node("v2", ("r", 1, ((0, 3),)))
        overlap = self.compare(
            item("a", seen, question="what IS, one", answers=("Rome",)),
            item("d", seen, partly, answers=("oslo",)),
            item("e", paragraph, answers=("Lima",), question="Is Lima in Peru?"),
        )
        # "which is one" is not "what is one"; articles and punctuation do not count
        assert (overlap.same_id, overlap.same_question, overlap.alias_other) == (1, 0, 1)
        assert (overlap.evidence_seen, overlap.evidence_partial, overlap.evidence_unseen) == (
            1, 1, 1,
        )  # fmt: skip
        assert (overlap.page_shared, overlap.answer_shared) == (3, 1)
        same = replace(self.TRAIN[0], item_id="x", question="Which is the one")
        assert self.compare(same).same_question == 1

    def test_a_question_without_graph_has_unseen_evidence(self):
        assert self.compare(item("c", answers=("Rome",))).evidence_unseen == 1


def test_categories_are_counted_in_the_order_of_the_table():
    made = [
        replace(item(name), category=category, roots=roots, split=split)
        for name, category, roots, split in (
            ("a", "2-hop, chain", "described", "train"),
            ("b", "1-hop, single", "described", "test"),
            ("c", "1-hop, single", "described", "test"),
            ("d", "1-hop, single", "named", "test"),
            ("e", "NQ", "described", "test"),
        )
    ]
    rows = [tuple(row) for row in category_counts(made).to_numpy()]
    assert rows == [
        ("1-hop, single", "described", "test", 2),
        ("2-hop, chain", "described", "train", 1),
        ("NQ", "described", "test", 1),
        ("1-hop, single", "named", "test", 1),
    ]


def test_the_embedded_questions_are_sound(built, pages):
    chunks = chunk_pages(pages, ChunkConfig(words=30, boundary="paragraph"))
    audit = audit_graphs(built.items, chunks)
    assert audit.records == len(built.items) and audit.conjunctive > 0
    assert audit.annotations == audit.start_covered == audit.matched_pairs
    assert (audit.missing_prerequisites, audit.cycles, audit.ungrounded) == (0, 0, 0)
    assert 0 < audit.without_whole_mention == audit.partial_pairs < 0.01 * audit.annotations
    train = [i for i in built.items if i.split == "train"]
    overlap = split_overlap(train, [i for i in built.items if i.split == "test"])
    assert overlap.evidence_unseen == overlap.other and overlap.page_shared == 0
    assert overlap.alias_train == overlap.alias_other == overlap.same_question == 0
    assert overlap.answer_shared > 0
