"""Coverage of a question graph by what was retrieved (S3 Eq. 1 and 2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..errors import WorkbenchError
from ..questions.graph import Node


def coverage(nodes: Sequence[Node], covered: Collection[str]) -> float:
    """Cov: share of the graph's nodes whose evidence was retrieved, in [0, 1] (S3 Eq. 1)."""
    return len(_known(nodes, covered)) / len(nodes)


def dependent_coverage(nodes: Sequence[Node], covered: Collection[str]) -> float:
    """Cov-Dep: a node counts when it and all its prerequisites, theirs included, are covered.

    S3 Eq. 2: evidence of a later hop earns nothing before that of the hops it depends on.
    """
    covered = _known(nodes, covered)
    by_id = {node.node_id: node for node in nodes}

    def unlocked(node: Node) -> bool:
        return node.node_id in covered and all(unlocked(by_id[p]) for p in node.prerequisites)

    return sum(map(unlocked, nodes)) / len(nodes)


def _known(nodes: Sequence[Node], covered: Collection[str]) -> set[str]:
    if not nodes:
        raise WorkbenchError("a question without nodes has no coverage")
    if odd := set(covered) - {node.node_id for node in nodes}:
        raise WorkbenchError(f"covered nodes {sorted(odd)} are not in the graph")
    return set(covered)
