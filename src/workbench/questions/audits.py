"""Audits of question graphs: what was built, whether it is grounded, what splits share.

S3 reports these numbers for its own data (Table 4, Table 5, App. B).  Everything here is read
off the items and the chunks; nothing is rolled out.  *Gold evidence* of a question are the
paragraphs that its nodes require, an *annotation record* is one node with one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..corpus.records import Chunk
from ..evaluation.answers import inclusion, normalise_answer
from .categories import CATEGORIES, passages_of
from .graph import Item, Node, has_cycle
from .grounding import meets

if TYPE_CHECKING:
    import pandas as pd


def category_counts(items: Sequence[Item]) -> pd.DataFrame:
    """Table 4: questions by category, roots and split.

    Returns
    -------
    Rows: category, roots ("described" or "named"), split, questions; categories in the order
    of the table, others after them; only what occurs.
    """
    import pandas as pd

    rows = pd.DataFrame(
        [(item.category, item.roots, item.split) for item in items],
        columns=["category", "roots", "split"],
    )
    counts = rows.value_counts(sort=False).rename("questions").reset_index()
    place = {name: number for number, name in enumerate(CATEGORIES)}
    order = counts["category"].map(lambda name: (place.get(name, len(place)), name))
    return (
        counts.assign(order=order)
        .sort_values(["roots", "order", "split"], ignore_index=True)
        .drop(columns="order")
    )


@dataclass(frozen=True, slots=True)
class GraphAudit:
    """Table 5's counts.

    Attributes
    ----------
    records, nodes, conjunctive : questions, nodes in their graphs, nodes that need two or more
        passages.
    annotations : annotation records.
    missing_prerequisites : references to a node that the graph does not have.
    cycles : graphs with a circle of prerequisites.
    ungrounded : nodes without evidence, or with an annotation record that no chunk meets.
    start_covered : annotation records whose mention starts in some chunk.
    without_whole_mention : those of them of which no chunk holds a complete mention.
    matched_pairs, partial_pairs : pairs of an annotation record and a chunk that meets it, and
        those in which the chunk holds the start of a mention but no complete one.
    """

    records: int
    nodes: int
    conjunctive: int
    annotations: int
    missing_prerequisites: int
    cycles: int
    ungrounded: int
    start_covered: int
    without_whole_mention: int
    matched_pairs: int
    partial_pairs: int


def audit_graphs(items: Sequence[Item], chunks: Iterable[Chunk]) -> GraphAudit:
    """Structure of the graphs, and their grounding in the chunks that can be retrieved."""
    at: dict[tuple[str, int], list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        for paragraph in {extent.paragraph for extent in chunk.extents}:
            at[chunk.page_id, paragraph].append(chunk)
    nodes = [node for item in items for node in item.nodes]
    annotations = ungrounded = started = no_whole = pairs = partial = 0
    for node in nodes:
        grounded = bool(node.evidence)
        for evidence in node.evidence:
            near = at.get((evidence.page_id, evidence.paragraph), [])
            matched = [chunk for chunk in near if meets(chunk, evidence)]
            whole = [chunk for chunk in matched if meets(chunk, evidence, whole_mention=True)]
            annotations += 1
            started += bool(matched)
            no_whole += bool(matched) and not whole
            pairs += len(matched)
            partial += len(matched) - len(whole)
            grounded = grounded and bool(matched)
        ungrounded += not grounded
    return GraphAudit(
        records=len(items),
        nodes=len(nodes),
        conjunctive=sum(len(passages_of(node)) > 1 for node in nodes),
        annotations=annotations,
        missing_prerequisites=sum(_missing(item.nodes) for item in items),
        cycles=sum(has_cycle(item.nodes) for item in items),
        ungrounded=ungrounded,
        start_covered=started,
        without_whole_mention=no_whole,
        matched_pairs=pairs,
        partial_pairs=partial,
    )


def _missing(nodes: Sequence[Node]) -> int:
    known = {node.node_id for node in nodes}
    return sum(name not in known for node in nodes for name in node.prerequisites)


@dataclass(frozen=True, slots=True)
class SplitOverlap:
    """What the questions of a split share with those of training (S3 App. B).

    Attributes
    ----------
    train, other : questions of the two splits.
    same_id, same_question : questions of the other split whose id, or normalised text, is one
        of training's.
    alias_train, alias_other : questions of each split that contain an accepted answer.
    evidence_seen, evidence_partial, evidence_unseen : questions of the other split all, some
        or none of whose gold evidence is gold evidence in training.
    page_shared : with a page that is a source of evidence in training.
    answer_shared : with an accepted answer that is one of some training question.
    """

    train: int
    other: int
    same_id: int
    same_question: int
    alias_train: int
    alias_other: int
    evidence_seen: int
    evidence_partial: int
    evidence_unseen: int
    page_shared: int
    answer_shared: int


def split_overlap(train: Sequence[Item], other: Sequence[Item]) -> SplitOverlap:
    """Compare two splits question by question."""
    ids = {item.item_id for item in train}
    questions = {normalise_answer(item.question) for item in train}
    passages = set().union(*map(_evidence, train)) if train else set()
    pages = {page for page, _ in passages}
    answers = set().union(*map(_answers, train)) if train else set()
    shares = [len(_evidence(i) & passages) / len(_evidence(i)) if i.nodes else 0 for i in other]
    return SplitOverlap(
        train=len(train),
        other=len(other),
        same_id=sum(item.item_id in ids for item in other),
        same_question=sum(normalise_answer(item.question) in questions for item in other),
        alias_train=sum(map(_names_answer, train)),
        alias_other=sum(map(_names_answer, other)),
        evidence_seen=sum(share == 1 for share in shares),
        evidence_partial=sum(0 < share < 1 for share in shares),
        evidence_unseen=sum(share == 0 for share in shares),
        page_shared=sum(any(page in pages for page, _ in _evidence(i)) for i in other),
        answer_shared=sum(bool(_answers(i) & answers) for i in other),
    )


def _evidence(item: Item) -> set[tuple[str, int]]:
    return {passage for node in item.nodes for passage in passages_of(node)}


def _answers(item: Item) -> set[str]:
    return {normalise_answer(answer) for answer in item.answers} - {""}


def _names_answer(item: Item) -> bool:
    return bool(inclusion(item.question, item.answers))
