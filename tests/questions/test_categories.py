"""The ten categories from graphs made by hand, merging, and graphs that match none."""

import pytest

from workbench.questions.categories import (
    BALANCED,
    CATEGORIES,
    CHAIN,
    CONJUNCTIVE,
    SINGLE,
    WIDE,
    category_of,
    passages_of,
    units_of,
)
from workbench.questions.graph import Evidence, Node
from workbench.reporting.published import published

# The categories of which every graph has one node that needs two passages (S3 Table 4, 5).
WITH_CONJUNCTION = tuple(
    c for c in CATEGORIES if c == CONJUNCTIVE or c.endswith(("wide", "fan-in"))
)


def graph(*nodes):
    """Nodes from ``"v3: a b < v1 v2"``: its passages, then its prerequisites."""
    made = []
    for text in nodes:
        name, rest = text.split(":")
        passages, _, before = rest.partition("<")
        evidence = tuple(Evidence(page, 1, ((0, 3),)) for page in passages.split())
        made.append(Node(name, "Who?", ("x",), evidence, tuple(before.split())))
    return made


TEN = [
    ("1-hop, single", ["v1: a"]),
    ("1-hop, conjunctive", ["v1: a b"]),
    ("2-hop, chain", ["v1: a", "v2: b < v1"]),
    ("2-hop, wide", ["v1: a b", "v2: c < v1"]),
    ("2-hop, wide", ["v1: a", "v2: b c < v1"]),
    ("3-hop-1, chain", ["v1: a", "v2: b < v1", "v3: c < v2"]),
    ("3-hop-1, wide", ["v1: a b", "v2: c < v1", "v3: d < v2"]),
    ("3-hop-1, wide", ["v1: a", "v2: b c < v1", "v3: d < v2"]),
    ("3-hop-1, wide", ["v1: a", "v2: b < v1", "v3: c d < v2"]),
    ("3-hop-2, fan-in", ["v1: a", "v2: b", "v3: c d < v1 v2"]),
    ("4-hop-1, chain", ["v1: a", "v2: b < v1", "v3: c < v2", "v4: d < v3"]),
    ("4-hop-2, fan-in", ["v1: a", "v2: b < v1", "v3: c", "v4: d e < v2 v3"]),
    ("4-hop-2, fan-in", ["v1: a", "v2: b", "v3: c < v2", "v4: d e < v1 v3"]),
    ("4-hop-3, fan-in", ["v1: a", "v2: b", "v3: c d < v1 v2", "v4: e < v3"]),
]


@pytest.mark.parametrize(("category", "nodes"), TEN)
def test_each_category(category, nodes):
    assert category_of(graph(*nodes)) == category


def test_all_ten_are_covered_in_the_order_of_the_table():
    printed = published("retrieval_credit", "4")["category"].drop_duplicates()
    assert tuple(printed)[:10] == CATEGORIES and {c for c, _ in TEN} == set(CATEGORIES)
    assert (SINGLE, CONJUNCTIVE, CHAIN, WIDE) == BALANCED == CATEGORIES[:4]


@pytest.mark.parametrize(
    ("why", "nodes"),
    [
        ("no node", []),
        ("two sinks", ["v1: a", "v2: b"]),
        ("two sinks behind one root", ["v1: a", "v2: b < v1", "v3: c < v1"]),
        ("a fork that joins again", ["v1: a", "v2: b < v1", "v3: c < v1", "v4: d e < v2 v3"]),
        ("two conjunctive nodes", ["v1: a b", "v2: c d < v1"]),
        ("a conjunctive root before the join", ["v1: a b", "v2: c", "v3: d e < v1 v2"]),
        ("a conjunctive node behind the join", ["v1: a", "v2: b", "v3: c < v1 v2", "v4: d e < v3"]),
        ("four hops, one conjunctive", ["v1: a b", "v2: c < v1", "v3: d < v2", "v4: e < v3"]),
        ("five hops", ["v1: a", "v2: b < v1", "v3: c < v2", "v4: d < v3", "v5: e < v4"]),
        ("a join of five", ["v1: a", "v2: b < v1", "v3: c < v2", "v4: d", "v5: e f < v3 v4"]),
        ("a fan-in without conjunction", ["v1: a", "v2: b", "v3: c < v1 v2"]),
        ("a join of three", ["v1: a", "v2: b", "v3: c", "v4: d e < v1 v2 v3"]),
        ("two joins", ["v1: a", "v2: b", "v3: c d < v1 v2", "v4: e", "v5: f g < v3 v4"]),
        ("three passages", ["v1: a b c"]),
    ],
)
def test_graphs_that_match_none(why, nodes):
    assert category_of(graph(*nodes)) is None, why


def test_passages_are_told_apart_by_page_and_paragraph():
    node = Node("v1", "?", ("x",), tuple(
        Evidence(page, paragraph, ((start, 9),))
        for page, paragraph, start in (("a", 1, 0), ("a", 1, 4), ("a", 2, 0), ("b", 1, 0))
    ))  # fmt: skip
    assert passages_of(node) == {("a", 1), ("a", 2), ("b", 1)}


class TestMerging:
    def test_two_mentions_in_one_paragraph_are_no_conjunction(self):
        assert category_of(graph("v1: a a")) == SINGLE

    def test_a_step_in_the_same_paragraph_is_the_same_unit(self):
        nodes = graph("v1: a", "v2: a < v1")
        assert units_of(nodes) == {"v1": 0, "v2": 0}
        assert category_of(nodes) == SINGLE

    def test_the_hops_left_count(self):
        assert category_of(graph("v1: a", "v2: a < v1", "v3: b < v2")) == CHAIN
        assert category_of(graph("v1: a", "v2: b < v1", "v3: b < v2")) == CHAIN
        five = graph("v1: a", "v2: b < v1", "v3: c < v2", "v4: c < v3", "v5: d < v4")
        assert category_of(five) == "4-hop-1, chain"

    def test_three_nodes_of_one_paragraph(self):
        nodes = graph("v1: a", "v2: a < v1", "v3: a < v2", "v4: b < v3")
        assert units_of(nodes) == {"v1": 0, "v2": 0, "v3": 0, "v4": 3}
        assert category_of(nodes) == CHAIN

    def test_a_node_can_tie_two_others_together(self):
        """v3 shares one paragraph with v1 and one with v2: all three are one unit."""
        nodes = graph("v1: a", "v2: b", "v3: a b < v1 v2")
        assert len(set(units_of(nodes).values())) == 1
        assert category_of(nodes) == CONJUNCTIVE

    def test_merged_branches_are_no_join(self):
        """Both branches read one paragraph, so nothing fans in."""
        assert category_of(graph("v1: a", "v2: a", "v3: b c < v1 v2")) == WIDE
        assert category_of(graph("v1: a", "v2: b", "v3: a c < v1 v2")) == WIDE

    def test_a_conjunctive_node_keeps_its_unit_conjunctive(self):
        assert category_of(graph("v1: a b", "v2: b < v1")) == CONJUNCTIVE

    def test_a_paragraph_met_again_later_closes_a_circle(self):
        assert category_of(graph("v1: a", "v2: b < v1", "v3: a < v2")) is None

    def test_another_paragraph_of_the_page_is_another_unit(self):
        nodes = [
            Node("v1", "?", ("x",), (Evidence("a", 1, ((0, 3),)),)),
            Node("v2", "?", ("x",), (Evidence("a", 2, ((0, 3),)),), ("v1",)),
        ]
        assert category_of(nodes) == CHAIN


def test_conjunctive_nodes_agree_with_the_papers_count():
    """S3 Table 5: 8,050 conjunctive nodes, one for each question of the six categories."""
    table = published("retrieval_credit", "4")
    counts = table.assign(n=table["value"].astype(int)).groupby("category")["n"].sum()
    check = published("retrieval_credit", "5").set_index("category")["value"]
    wanted = int(check["Grounded graph nodes, conjunctive subset"])
    assert counts[list(WITH_CONJUNCTION)].sum() == wanted == 8_050


def test_questions_of_the_corpus_have_a_conjunctive_node_where_the_paper_has_one(built):
    for item in built.items:
        assert category_of(item.nodes) == item.category
        conjunctive = [n for n in item.nodes if len(passages_of(n)) == 2]
        assert len(conjunctive) == (item.category in WITH_CONJUNCTION), item.item_id
        assert all(len(n.evidence) == len(passages_of(n)) <= 2 for n in item.nodes)
        unit = units_of(item.nodes)
        before = {unit[p] for p in conjunctive[0].prerequisites} if conjunctive else set()
        joins = len(before - {unit[n.node_id] for n in conjunctive})
        assert joins == 2 if item.category.endswith("fan-in") else joins < 2
