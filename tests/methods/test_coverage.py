"""Coverage read off trajectories: the rule, its searches, and properties on random graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.corpus.records import Chunk, Extent
from workbench.errors import WorkbenchError
from workbench.methods.coverage import (
    CoverageReader,
    closure,
    coverage,
    covered_nodes,
    dependent_coverage,
    meets,
)
from workbench.methods.signals import build_signal, retrieval_events
from workbench.questions.graph import Evidence, Node

many = settings(max_examples=150, deadline=None)


def node(name, *evidence, needs=()):
    return Node(name, "?", ("x",), evidence, needs)


def passage(page, paragraph, *starts, length=4):
    return Evidence(page, paragraph, tuple((s, s + length) for s in starts))


@pytest.mark.parametrize(
    ("evidence", "start", "whole"),
    [
        (passage("p", 2, 10), True, True),
        (passage("p", 2, 29), True, False),  # the mention's start only: enough for S3
        (passage("p", 2, 30), False, False),  # extents are half-open
        (passage("p", 2, 8), False, False),  # the mention's end only
        (passage("p", 3, 10), False, False),
        (passage("q", 2, 10), False, False),
        (passage("p", 2, 5, 29), True, False),  # one of the mentions is enough
        (passage("p", 2, 29, 12), True, True),
        (passage("p", 4, 3), True, True),  # the chunk's second extent
    ],
)
def test_a_chunk_meets_a_passage(evidence, start, whole):
    chunk = Chunk("c", "p", "P", "text", (Extent(2, 10, 30), Extent(4, 0, 9)))
    assert meets(chunk, evidence) == start
    assert meets(chunk, evidence, whole_mention=True) == whole


def test_a_conjunctive_node_is_covered_by_different_searches(small):
    both = node("v1", passage("p0", 1, 5), passage("p1", 2, 25))
    item = small.item_of([both, node("v2", passage("p2", 3, 45), needs=("v1",))])
    first, second, last = (small.CORPUS[i] for i in ("p0#1.0", "p1#2.20", "p2#3.40"))
    one = small.Searched
    trajectory = small.searched(one((first, last)), one(), one((second,)))
    states = CoverageReader(small.CORPUS).states(item, trajectory)
    assert [sorted(s.covered) for s in states] == [["v2"], ["v2"], ["v1", "v2"]]
    assert [s.cov for s in states] == [0.5, 0.5, 1.0]
    assert [s.cov_dep for s in states] == [0.0, 0.0, 1.0]  # delayed unlocking
    assert covered_nodes(item.nodes, [first, second]) == {"v1"}


def test_what_was_not_seen_whole_covers_nothing(small):
    item = small.item_of([node("v1", passage("p0", 1, 5))])
    hit = (small.CORPUS["p0#1.0"],)
    reader = CoverageReader(small.CORPUS)
    cut = small.searched(small.Searched(hit, cut=True), small.Searched())
    assert [s.cov for s in reader.states(item, cut)] == [0.0, 0.0]
    assert reader.final(item, cut).cov == 0.0
    unseen = small.searched(small.Searched(hit))
    unseen.searches[0].observation_span = (12, 12)
    broken = small.searched(small.Searched(hit))
    broken.searches[0].titles = []
    for trajectory in (unseen, broken):
        assert [s.cov for s in reader.states(item, trajectory)] == [0.0]
    assert reader.final(item, small.searched(small.Searched(hit))).cov == 1.0
    assert reader.final(item, small.searched()).covered == frozenset()


def test_a_node_without_evidence_is_never_covered():
    assert covered_nodes([node("v1")], [Chunk("c", "p", "P", "t", (Extent(1, 0, 9),))]) == set()


def test_refusals_name_the_question(small):
    reader = CoverageReader(small.CORPUS)
    with pytest.raises(WorkbenchError, match="item q: the question has no graph"):
        reader.states(small.item_of([]), small.searched())
    item = small.item_of([node("v1", passage("p0", 1, 5))])
    other = Chunk("elsewhere#0", "p0", "P", "t", ())
    with pytest.raises(WorkbenchError, match="item q: retrieved chunk 'elsewhere#0'.*corpus"):
        reader.states(item, small.searched(small.Searched((other,))))
    with pytest.raises(WorkbenchError, match="signal cov_dep.*Context"):
        build_signal("cov_dep")


def test_another_question_under_the_same_id_is_read_anew(small):
    reader = CoverageReader(small.CORPUS)
    trajectory = small.searched(small.Searched((small.CORPUS["p0#1.0"],)))
    hit, miss = (small.item_of([node("v1", passage("p0", 1, s))]) for s in (5, 25))
    assert [reader.final(item, trajectory).cov for item in (hit, miss, hit)] == [1, 0, 1]


def test_figure_1a(small):
    """S3 App. D: the first and the third of a chain are matched, the link between is not."""
    titles = ("Narathu", "Naratheinkha", "Saw Lu")
    corpus = {t: Chunk(t, t, t, f"{t} was a king", (Extent(1, 0, 60),)) for t in titles}
    item = small.item_of(
        [
            node("v1", passage("Naratheinkha", 1, 31)),
            node("v2", passage("Kings of Pagan", 4, 7), needs=("v1",)),
            node("v3", passage("Narathu", 1, 12), needs=("v2",)),
        ]
    )
    trajectory = small.searched(small.Searched(tuple(corpus.values())))
    for name, value in (("cov", 0.6667), ("cov_dep", 0.3333)):
        signal = build_signal(name, corpus)
        (event,) = retrieval_events(signal, [item], [trajectory], 4)[0]
        assert round(signal.potentials(item, trajectory)[0], 4) == event == value
        (exact,) = retrieval_events(signal, [item], [trajectory], None)[0]
        assert exact == pytest.approx(round(3 * value) / 3, abs=1e-12)


def ancestors(nodes, name):
    """All prerequisites of a node, by walking the edges."""
    by_id, found, waiting = {n.node_id: n for n in nodes}, set(), [name]
    while waiting:
        for need in by_id[waiting.pop()].prerequisites:
            if need not in found:
                found.add(need)
                waiting.append(need)
    return found


@many
@given(data=st.data())
def test_closure_is_every_covered_node_with_all_its_ancestors(small, data):
    nodes = data.draw(small.graphs()).nodes
    covered = data.draw(st.sets(st.sampled_from([n.node_id for n in nodes])))
    unlocked = closure(nodes, covered)
    assert unlocked <= covered
    assert unlocked == {v for v in covered if ancestors(nodes, v) <= covered}
    assert coverage(nodes, covered) >= dependent_coverage(nodes, covered)


def test_a_circle_never_unlocks():
    nodes = [node("a", needs=("b",)), node("b", needs=("a",)), node("c")]
    assert closure(nodes, {"a", "b", "c"}) == {"c"}


@many
@given(data=st.data())
def test_reading_searches_agrees_with_the_rule_on_all_that_was_seen(small, data):
    item, planned = data.draw(small.graphs()), data.draw(small.searches())
    trajectory = small.searched(*planned)
    whole = data.draw(st.booleans())
    states = CoverageReader(small.CORPUS, whole).states(item, trajectory)
    assert len(states) == len(planned)
    for t, state in enumerate(states):
        seen = [c for s in planned[: t + 1] if not s.cut for c in s.chunks]
        covered = covered_nodes(item.nodes, seen, whole)
        assert state.covered == covered and state.unlocked == closure(item.nodes, covered)
        assert state.cov == coverage(item.nodes, covered) >= state.cov_dep
        assert state.cov_dep == dependent_coverage(item.nodes, covered)


@many
@given(data=st.data())
def test_more_chunks_never_lower_a_potential(small, data):
    item = data.draw(small.graphs())
    some = data.draw(small.results) + data.draw(small.results)
    more = some + data.draw(small.results)
    fewer, bigger = covered_nodes(item.nodes, some), covered_nodes(item.nodes, more)
    assert fewer <= bigger
    assert closure(item.nodes, fewer) <= closure(item.nodes, bigger)
    assert covered_nodes(item.nodes, some, whole_mention=True) <= fewer


@many
@given(data=st.data())
def test_events_are_gains_that_sum_to_the_largest_potential(small, data):
    item, trajectory = data.draw(small.graphs()), small.searched(*data.draw(small.searches()))
    digits = data.draw(st.sampled_from([4, None]))
    for name in ("cov", "cov_dep", "am"):
        signal = build_signal(name, small.CORPUS)
        potentials = signal.potentials(item, trajectory)
        (events,) = retrieval_events(signal, [item], [trajectory], digits)
        assert potentials == sorted(potentials) and len(events) == len(potentials)
        assert (events >= 0).all()
        largest = max(potentials, default=0.0)
        np.testing.assert_allclose(
            events.sum(), largest if digits is None else round(largest, digits), atol=1e-11
        )
