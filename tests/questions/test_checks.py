"""Faults of question graphs: each refused with item id and reason; lists lose nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.corpus.records import Page
from workbench.errors import WorkbenchError
from workbench.questions import store
from workbench.questions.checks import check_item, refusal, usable_items
from workbench.questions.graph import Evidence, Item, Node

PAGES = [Page("p", "Peru", ("Peru", "Capital: Lima")), Page("q", "Oman", ("Oman", "Muscat"))]
LIMA = Evidence("p", 1, ((9, 13),))
MUSCAT = Evidence("q", 1, ((0, 6),))
A = Node("v1", "Who?", ("Lima",), (LIMA,))
B = Node("v2", "Where?", ("Muscat",), (MUSCAT,))
C = Node("v3", "Of #1 and #2?", ("yes",), (LIMA, MUSCAT), ("v1", "v2"))
GOOD = Item("3:good", "Which?", ("yes",), "3-hop-2, fan-in", (A, B, C), "train")


def _nodes(*nodes):
    return replace(GOOD, nodes=nodes)


def _evidence(**changes):
    return _nodes(A, replace(B, evidence=(replace(MUSCAT, **changes),)), C)


FAULTS = [
    (replace(GOOD, question=" \n"), "", "an empty question"),
    (replace(GOOD, question=None), "", "the question or an answer is not text"),
    (replace(GOOD, answers=()), "", "no answer"),
    (replace(GOOD, answers=("yes", "")), "", "an empty answer"),
    (replace(GOOD, answers=(1914,)), "", "the question or an answer is not text"),
    (replace(GOOD, split="dev"), "", "unknown split"),
    (replace(GOOD, roots="hidden"), "", "unknown roots"),
    (replace(GOOD, item_id=""), "", "an id that is not text"),
    (_nodes(A, replace(B, question=""), C), "v2", "an empty question"),
    (_nodes(A, replace(B, answers=()), C), "v2", "no answer"),
    (_nodes(A, replace(B, answers=("\t",)), C), "v2", "an empty answer"),
    (_nodes(A, replace(B, node_id=2), C), "", "an id that is not text"),
    (_nodes(A, replace(B, node_id="v1"), C), "v1", "two nodes of one id"),
    (_nodes(A, C), "v3", "a missing prerequisite"),
    (_nodes(A, replace(B, prerequisites=("v2",)), C), "", "a cycle of prerequisites"),
    (_nodes(replace(A, prerequisites=("v3",)), B, C), "", "a cycle of prerequisites"),
    (_nodes(A, C, B), "v3", "a node before its prerequisite"),
    (_nodes(A, replace(B, evidence=()), C), "v2", "a node without evidence"),
    (_nodes(A, B, replace(C, evidence=(LIMA, replace(MUSCAT, mentions=())))), "v3",
     "evidence without a mention"),
    (_evidence(page_id=""), "v2", "evidence without a passage"),
    (_evidence(page_id=7), "v2", "evidence without a passage"),
    (_evidence(paragraph=-1), "v2", "evidence without a passage"),
    (_evidence(paragraph="1"), "v2", "evidence without a passage"),
    (_evidence(paragraph=True), "v2", "evidence without a passage"),
    (_evidence(mentions=((3, 3),)), "v2", "a span outside its passage"),
    (_evidence(mentions=((0, 6), (5, 2))), "v2", "a span outside its passage"),
    (_evidence(mentions=((-1, 2),)), "v2", "a span outside its passage"),
    (_evidence(mentions=((0, 6, 7),)), "v2", "a span outside its passage"),
    (_evidence(mentions=((0, "6"),)), "v2", "a span outside its passage"),
    (_evidence(mentions=((0.0, 6.0),)), "v2", "a span outside its passage"),
]  # fmt: skip
# Only the pages can tell.
BEYOND = [
    (_evidence(mentions=((0, 7),)), "v2", "a span outside its passage"),
    (_evidence(paragraph=2), "v2", "a passage that the corpus does not have"),
    (_evidence(page_id="z"), "v2", "a passage that the corpus does not have"),
]
BY_ID = {page.page_id: page for page in PAGES}


def test_a_sound_graph_is_taken_with_and_without_pages():
    for pages in (None, BY_ID):
        assert refusal(GOOD, pages) is None
        check_item(GOOD, "here", pages)
    free = Item("0:free", "No graph?", ("yes",), "NQ", (), "test")
    check_item(free, None, BY_ID)
    assert store.check_item is check_item


@pytest.mark.parametrize(("item", "node", "reason"), [*FAULTS, *BEYOND])
def test_each_fault_is_refused_with_item_node_and_reason(item, node, reason):
    found = refusal(item, BY_ID)
    assert (found.node, found.reason) == (node, reason)
    with pytest.raises(WorkbenchError) as error:
        check_item(item, "items.jsonl:7", BY_ID)
    place = f"item {item.item_id}" + (f", node {node}" if node else "")
    assert str(error.value).startswith(f"items.jsonl:7: {place}: {reason}")
    assert error.value.where == "items.jsonl:7"


@pytest.mark.parametrize(("item", "node", "reason"), BEYOND)
def test_what_only_pages_can_tell_passes_without_them(item, node, reason):
    assert refusal(item) is None


@pytest.mark.parametrize(("item", "node", "reason"), FAULTS)
def test_the_rest_needs_no_pages(item, node, reason):
    found = refusal(item)
    assert (found.node, found.reason) == (node, reason)


def test_what_is_wrong_is_told_in_detail():
    with pytest.raises(WorkbenchError, match=r"node v3: a missing prerequisite \(v2\)$"):
        check_item(_nodes(A, C), None)
    with pytest.raises(WorkbenchError, match=r"prerequisite \(v2\) -- sort the nodes$"):
        check_item(_nodes(A, C, B), None)
    with pytest.raises(WorkbenchError, match=r"\(0, 7\) in page 'q', paragraph 1"):
        check_item(_evidence(mentions=((0, 7),)), None, BY_ID)


def test_a_list_is_parted_into_kept_and_refused():
    again = replace(GOOD, question="Which, again?")
    bad = [
        item if reason == "an id that is not text" else replace(item, item_id=f"bad{n}")
        for n, (item, _, reason) in enumerate([*FAULTS, *BEYOND])
    ]
    other = replace(GOOD, item_id="3:other")
    kept, refused = usable_items([bad[0], GOOD, *bad[1:], again, other], iter(PAGES))
    assert kept == [GOOD, other]
    assert refused.pop("two items of one id") == ["3:good"]
    expected: dict[str, list[str]] = {}
    for item, (_, _, reason) in zip(bad, [*FAULTS, *BEYOND], strict=True):
        expected.setdefault(reason, []).append(item.item_id)
    assert refused == expected
    assert usable_items([]) == ([], {})


def test_an_id_refused_once_can_still_be_kept():
    """The first usable item of an id counts; a broken one before it takes nothing."""
    broken = replace(GOOD, answers=())
    assert usable_items([broken, GOOD]) == ([GOOD], {"no answer": ["3:good"]})


@given(st.lists(st.sampled_from([GOOD, *(item for item, _, _ in FAULTS)]), max_size=12))
def test_nothing_is_lost(items):
    items = [replace(i, item_id=f"{i.item_id}{n}") for n, i in enumerate(items)]
    kept, refused = usable_items(items)
    named = [i.item_id for i in kept] + [name for ids in refused.values() for name in ids]
    assert sorted(named) == sorted(i.item_id for i in items)
    for item in kept:
        check_item(item, None)
