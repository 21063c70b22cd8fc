"""Question graphs: subquestions with answers, prerequisites and the passages they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

SPLITS = ("train", "calibration", "validation", "test")
Roots = Literal["described", "named"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A required source passage and where it mentions the node's answer (S3 App. B).

    ``mentions`` are character spans ``(start, end)`` inside paragraph ``paragraph``.
    """

    page_id: str
    paragraph: int
    mentions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A subquestion: ``#1`` in its text stands for the answer of prerequisite 1."""

    node_id: str
    question: str
    answers: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    prerequisites: tuple[str, ...] = ()
    fact_id: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its graph.

    ``category`` is one of S3 Table 4 ("1-hop, single", "2-hop, chain", ...); ``split`` is
    train, calibration, validation or test; ``roots`` says whether the entities that the question
    starts from are described or named; ``exposures`` counts how often the base policy's
    training showed the answer of a 1-hop item without its passage (0 for unseen; for chains,
    the least over the nodes); ``closed_book`` is whether the untrained policy answers it
    without retrieval, once measured (None before).
    """

    item_id: str
    question: str
    answers: tuple[str, ...]
    category: str
    nodes: tuple[Node, ...]
    split: str
    exposures: int = 0
    closed_book: bool | None = None
    roots: Roots = "described"
    meta: dict = field(default_factory=dict)

    @property
    def hops(self) -> int:
        """Number of nodes in the graph."""
        return len(self.nodes)


def has_cycle(nodes: Sequence[Node]) -> bool:
    """Whether some node comes before itself; prerequisites that are missing are no edges."""
    before = {node.node_id: set(node.prerequisites) for node in nodes}
    waiting = set(before)
    while free := {name for name in waiting if not before[name] & waiting}:
        waiting -= free
    return bool(waiting)
