"""From graphs to items: what a description may not say, and what is left out."""

from workbench.questions.compose import join, start, step
from workbench.questions.graph import Evidence
from workbench.questions.sources.knowledge import stand_in
from workbench.questions.sources.pool import eligible, finished, met_twice, roots_of
from workbench.questions.sources.wording import WORDED, to_property
from workbench.questions.statements import Statement

NAMES = {"Q1": ("Ada Lorn",), "Q2": ("Bathmer", "B"), "Q3": ("Cellona",), "Q4": ("Dan Vey",)}


def _said(s, p, o):
    evidence = Evidence(s, 1, ((0, 4),))
    return Statement(f"{s}-P{p}-{o}", s, f"P{p}", o, NAMES[s], NAMES[o], evidence)


def _prop(pid):
    return to_property(pid, WORDED[pid], None)


def _start(s, p, o):
    return start(_said(s, p, o), _prop(p), stand_in(s))


def test_what_a_description_must_not_do():
    """Templates avoid it beforehand; an endpoint's answer is only checked afterwards."""
    partial = _start("Q1", 19, "Q2")
    assert finished(partial, None, "c")[0] == "a root without description"
    assert finished(partial, {"Q1": "the one from bathmer"}, "c")[0] == "an answer in the question"
    assert finished(partial, {"Q1": "the lady Ada Lorn"}, "c")[0] == "a root is named"
    reason, item = finished(partial, {"Q1": "the tall one"}, "c")
    assert reason is None and item.meta == {"roots": {"Q1": "the tall one"}}
    assert item.question == "What is the name of the place of birth of the tall one?"
    assert (item.item_id, item.category) == ("1:Q1-P19-Q2", "c")


def test_every_graph_that_is_left_out_is_told_with_its_reason():
    one, same = _start("Q1", 19, "Q2"), _start("Q4", 19, "Q2")
    told = []
    described = [(one, {"Q1": "the tall one"}), (same, {"Q4": "The tall one"}), (same, None)]
    first = {"Q1-P19-Q2"}
    kept = eligible(
        described, {p.graph_id: "c" for p in (one, same)}, first, lambda *t: told.append(t)
    )
    assert [(item.item_id, early) for item, early in kept] == [("1:Q1-P19-Q2", True)]
    assert told == [
        ("the same question twice", "Q4-P19-Q2"), ("a root without description", "Q4-P19-Q2"),
    ]  # fmt: skip


def test_all_evidence_counts_for_the_first_chunks():
    chain = step(_start("Q1", 19, "Q2"), _said("Q2", 17, "Q3"), _prop(17))
    for first, early in (({"Q1-P19-Q2"}, False), ({"Q1-P19-Q2", "Q2-P17-Q3"}, True)):
        kept = eligible([(chain, {"Q1": "the tall one"})], {chain.graph_id: "c"}, first, print)
        assert [e for _, e in kept] == [early]


def test_a_way_back_is_a_shortcut():
    chain = step(_start("Q1", 26, "Q4"), _said("Q4", 26, "Q1"), _prop(26))
    assert roots_of(chain) == ["Q1"] and met_twice(chain) == "graph shortcut"
    onward = step(_start("Q1", 26, "Q4"), _said("Q4", 19, "Q2"), _prop(19))
    assert met_twice(onward) is None
    again = step(step(onward, _said("Q2", 6, "Q4"), _prop(6)), _said("Q4", 27, "Q3"), _prop(27))
    assert met_twice(again) == "graph shortcut"


def test_two_branches_may_share_their_root_and_not_an_answer():
    left, right = _start("Q1", 19, "Q2"), _start("Q1", 26, "Q4")
    joined = join(left, right, _said("Q2", 47, "Q3"), _said("Q4", 47, "Q3"), _prop(47))
    assert met_twice(joined) is None
    right = _start("Q2", 6, "Q4")
    joined = join(left, right, _said("Q2", 47, "Q3"), _said("Q4", 47, "Q3"), _prop(47))
    assert met_twice(joined) == "graph shortcut"  # the left answer is the right root
