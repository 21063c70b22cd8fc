"""Coverage of a question graph by what was retrieved (S3 §2.2 Eq. 1 and 2, App. B).

A node is covered once every passage it requires was met: some retrieved chunk has the page and
the paragraph of the passage and contains the *start* of one of its annotated mentions.
Different passages may be met by different chunks and by different searches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..agent.trajectory import SearchRecord, Trajectory
from ..corpus.records import Chunk
from ..errors import WorkbenchError
from ..questions.graph import Evidence, Item, Node
from ..questions.grounding import meets


def required_passages(nodes: Sequence[Node]) -> list[Evidence]:
    """The required passages of a graph, node by node; their places in this list number them."""
    return [evidence for node in nodes for evidence in node.evidence]


def covered_by(nodes: Sequence[Node], met: Collection[int]) -> set[str]:
    """Ids of the nodes all of whose required passages are among those numbered in ``met``.

    A node without required passages cannot be covered: there is nothing that would show it.
    """
    covered, number = set(), 0
    for node in nodes:
        needed = range(number, number := number + len(node.evidence))
        if needed and all(i in met for i in needed):
            covered.add(node.node_id)
    return covered


def covered_nodes(
    nodes: Sequence[Node], chunks: Iterable[Chunk], whole_mention: bool = False
) -> set[str]:
    """Ids of the nodes that a set of retrieved chunks covers."""
    chunks = list(chunks)
    required = enumerate(required_passages(nodes))
    met = {i for i, e in required if any(meets(c, e, whole_mention) for c in chunks)}
    return covered_by(nodes, met)


def closure(nodes: Sequence[Node], covered: Collection[str]) -> set[str]:
    """S_t of S3 Eq. 2: the covered nodes whose prerequisites, theirs included, are in it too."""
    waiting = {node.node_id: node.prerequisites for node in nodes if node.node_id in covered}
    unlocked: set[str] = set()
    while ready := [v for v, needs in waiting.items() if unlocked.issuperset(needs)]:
        unlocked.update(ready)
        for node_id in ready:
            del waiting[node_id]
    return unlocked


def coverage(nodes: Sequence[Node], covered: Collection[str]) -> float:
    """Cov: share of the graph's nodes whose evidence was retrieved, in [0, 1] (S3 Eq. 1)."""
    return len(_known(nodes, covered)) / len(nodes)


def dependent_coverage(nodes: Sequence[Node], covered: Collection[str]) -> float:
    """Cov-Dep: a node counts when it and all its prerequisites, theirs included, are covered.

    S3 Eq. 2: evidence of a later hop earns nothing before that of the hops it depends on.
    """
    return len(closure(nodes, _known(nodes, covered))) / len(nodes)


@dataclass(frozen=True, slots=True)
class State:
    """What is covered at one moment: the nodes, their closure, and both shares, exact."""

    covered: frozenset[str]
    unlocked: frozenset[str]
    cov: float
    cov_dep: float


class CoverageReader:
    """Reads coverage off trajectories; remembers, per question, which chunk meets what.

    Parameters
    ----------
    chunks : chunk by id, of the corpus that was searched (``Corpus.by_id``).
    whole_mention : see ``questions.grounding.meets``.
    """

    def __init__(self, chunks: Mapping[str, Chunk], whole_mention: bool = False):
        self.chunks, self.whole_mention = chunks, whole_mention
        self._graphs: dict[str, _Graph] = {}

    def states(self, item: Item, trajectory: Trajectory) -> list[State]:
        """The state after each executed search, in order; nothing is covered before the first.

        A search whose observation is not complete changes nothing (``complete``).

        Raises
        ------
        WorkbenchError
            the question has no graph, or a returned chunk is not in the corpus.
        """
        graph = self._graph(item)
        met: frozenset[int] = frozenset()
        states = []
        for search in trajectory.searches:
            if complete(search):
                for chunk_id in search.chunk_ids:
                    met |= graph.met_by(chunk_id)
            states.append(graph.state(met))
        return states

    def final(self, item: Item, trajectory: Trajectory) -> State:
        """The state at the end; that of nothing retrieved when there was no search."""
        states = self.states(item, trajectory)
        return states[-1] if states else self._graph(item).state(frozenset())

    def _graph(self, item: Item) -> _Graph:
        graph = self._graphs.get(item.item_id)
        if graph is None or (graph.nodes is not item.nodes and graph.nodes != item.nodes):
            graph = self._graphs[item.item_id] = _Graph(item, self.chunks, self.whole_mention)
        return graph


def complete(search: SearchRecord) -> bool:
    """Whether the observation of ``search`` was seen in full; only then its documents count.

    S3 scores completed tool observations only: one that was cut to fit the context, or whose
    record does not hold together, counts as a search and shows nothing.
    """
    start, end = search.observation_span
    counts = {len(search.chunk_ids), len(search.titles), len(search.texts)}
    return not search.observation_cut and end > start and len(counts) == 1


class _Graph:
    """One question's required passages, numbered, and the states they lead to."""

    def __init__(self, item: Item, chunks: Mapping[str, Chunk], whole_mention: bool):
        if not item.nodes:
            raise WorkbenchError(
                "the question has no graph, so its coverage is not defined",
                where=f"item {item.item_id}",
                fix="train on annotated questions, or use answer match (am)",
            )
        self.nodes, self.item_id = item.nodes, item.item_id
        self._chunks, self._whole = chunks, whole_mention
        self._of_page: dict[str, list[tuple[int, Evidence]]] = {}
        for number, evidence in enumerate(required_passages(item.nodes)):
            self._of_page.setdefault(evidence.page_id, []).append((number, evidence))
        self._met: dict[str, frozenset[int]] = {}
        self._states: dict[frozenset[int], State] = {}

    def met_by(self, chunk_id: str) -> frozenset[int]:
        """Numbers of the required passages that a chunk meets."""
        found = self._met.get(chunk_id)
        if found is None:
            chunk = self._chunks.get(chunk_id)
            if chunk is None:
                raise WorkbenchError(
                    f"retrieved chunk {chunk_id!r} is not in the corpus",
                    where=f"item {self.item_id}",
                    fix="hand over the corpus that the searcher used",
                )
            required = self._of_page.get(chunk.page_id, ())
            found = frozenset(i for i, e in required if meets(chunk, e, self._whole))
            self._met[chunk_id] = found
        return found

    def state(self, met: frozenset[int]) -> State:
        """The state once the required passages ``met`` were retrieved."""
        state = self._states.get(met)
        if state is None:
            covered = covered_by(self.nodes, met)
            unlocked = closure(self.nodes, covered)
            state = State(
                frozenset(covered),
                frozenset(unlocked),
                coverage(self.nodes, covered),
                len(unlocked) / len(self.nodes),
            )
            self._states[met] = state
        return state


def _known(nodes: Sequence[Node], covered: Collection[str]) -> set[str]:
    if not nodes:
        raise WorkbenchError("a question without nodes has no coverage")
    if odd := set(covered) - {node.node_id for node in nodes}:
        raise WorkbenchError(f"covered nodes {sorted(odd)} are not in the graph")
    return set(covered)
