"""The ten structural categories of S3 Table 4, read off a question graph.

Nodes that share a supporting paragraph are merged first, so a category describes the evidence
and not the number of searches; the graph itself keeps its atomic nodes (S3 App. B).  Names
follow MuSiQue: 3-hop-1 and 4-hop-1 are chains, 3-hop-2 joins two branches, 4-hop-2 joins a
branch of two steps with one of a single step, 4-hop-3 goes on one step after a join.  *Wide*
chains hold one conjunctive node, which needs two passages at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Node

CATEGORIES: tuple[str, ...] = (
    "1-hop, single",
    "1-hop, conjunctive",
    "2-hop, chain",
    "2-hop, wide",
    "3-hop-1, chain",
    "3-hop-1, wide",
    "3-hop-2, fan-in",
    "4-hop-1, chain",
    "4-hop-2, fan-in",
    "4-hop-3, fan-in",
)
SINGLE, CONJUNCTIVE, CHAIN, WIDE = CATEGORIES[:4]
# Categories of which half must find all evidence in the first chunks of their pages (S3 App. B).
BALANCED = CATEGORIES[:4]


def passages_of(node: Node) -> frozenset[tuple[str, int]]:
    """The paragraphs that a node requires."""
    return frozenset((e.page_id, e.paragraph) for e in node.evidence)


def units_of(nodes: Sequence[Node]) -> dict[str, int]:
    """Node id -> evidence unit; nodes with a common paragraph are one unit."""
    unit = {node.node_id: index for index, node in enumerate(nodes)}
    for index, node in enumerate(nodes):
        for other in nodes[:index]:
            if passages_of(node) & passages_of(other):
                old, new = unit[node.node_id], unit[other.node_id]
                unit = {name: new if u == old else u for name, u in unit.items()}
    return unit


def category_of(nodes: Sequence[Node]) -> str | None:
    """The category of a graph whose prerequisites come before their nodes, or None for no match."""
    unit = units_of(nodes)
    units = sorted(set(unit.values()))
    before: dict[int, set[int]] = {u: set() for u in units}
    conjunctive: set[int] = set()
    for node in nodes:
        own = unit[node.node_id]
        before[own] |= {unit[p] for p in node.prerequisites} - {own}
        if len(passages_of(node)) == 2:
            conjunctive.add(own)
        elif len(passages_of(node)) > 2:
            return None
    after = {u: [v for v in units if u in before[v]] for u in units}
    sinks = [u for u in units if not after[u]]
    joins = [u for u in units if len(before[u]) > 1]
    hops = len(units)
    if len(sinks) != 1 or len(conjunctive) > 1 or any(len(a) > 1 for a in after.values()):
        return None
    if not joins:
        if hops == 1:
            return CONJUNCTIVE if conjunctive else SINGLE
        if conjunctive:
            return {2: WIDE, 3: "3-hop-1, wide"}.get(hops)
        return {2: CHAIN, 3: "3-hop-1, chain", 4: "4-hop-1, chain"}.get(hops)
    if len(joins) != 1 or len(before[joins[0]]) != 2 or conjunctive != set(joins):
        return None
    if hops == 3:
        return "3-hop-2, fan-in"
    if hops == 4:
        return "4-hop-2, fan-in" if joins == sinks else "4-hop-3, fan-in"
    return None
