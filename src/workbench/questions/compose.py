"""Statements -> question graphs: starts, steps and joins (S3 section 2.1).

A `Partial` is a graph under construction together with the noun phrase that stands for the
answer of its last node.  It starts with one node, grows by *steps* (a functional property of
its answer) and *joins* with another (the one object that both answers share).  The entity a
graph starts from is described, never named, unless a caller hands its name as the phrase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..seeding import seed_of
from .graph import Evidence, Node
from .statements import Knowledge, Property, Statement

NAME_OF = "What is the name of {s}?"


@dataclass(frozen=True, slots=True)
class Partial:
    """A graph whose last node's answer is ``entity``.

    ``phrase`` names that entity by the whole description so far; ``question`` asks for it.
    ``statements`` are those of the nodes, in order; ``path`` all objects and entities met, in
    order, those that describe a root first;
    ``named`` says that an entity is named.  ``graph_id`` is made of the statements' ids (``^``:
    read backwards), so that it does not depend on what else was composed.
    """

    graph_id: str

    nodes: tuple[Node, ...]
    entity: str
    phrase: str
    question: str
    statements: tuple[Statement, ...]
    path: tuple[str, ...]
    named: bool = False


def name_of(phrase: str) -> str:
    """The question that asks for what a noun phrase stands for."""
    return NAME_OF.format(s=phrase)


def wording(prop: Property, subject: str, key: str) -> str:
    """One of the property's question templates, always the same one for the same key."""
    return prop.asks[seed_of("phrasing", key) % len(prop.asks)].format(s=subject)


def subject_evidence(statement: Statement) -> Evidence:
    """The statement's passage with the mentions of its subject, if it has any, else its object.

    A passage about a page need not repeat the page's title; then what identifies the subject
    is where the object stands.
    """
    if statement.mentions_subject:
        return replace(statement.evidence, mentions=statement.mentions_subject)
    return statement.evidence


def identify(statement: Statement, prop: Property) -> Partial:
    """One node whose answer is the statement's *subject*, described by its object."""
    phrase = prop.describes.format(o=statement.answers[0])
    return _single(
        f"^{statement.statement_id}", name_of(phrase), statement.subject_names,
        subject_evidence(statement), statement, statement.subject, phrase,
        (statement.object, statement.subject),
    )  # fmt: skip


def start(statement: Statement, prop: Property, root: str, named: bool = False) -> Partial:
    """One node whose answer is the statement's object; ``root`` describes its subject."""
    asked = wording(prop, root, statement.statement_id)
    return replace(
        _single(
            statement.statement_id, asked, statement.answers, statement.evidence, statement,
            statement.object, prop.phrase.format(s=root), (statement.subject, statement.object),
        ),
        named=named,
    )  # fmt: skip


def _single(graph_id, question, answers, evidence, statement, entity, phrase, path) -> Partial:
    node = Node("v1", question, answers, (evidence,), (), statement.statement_id)
    return Partial(graph_id, (node,), entity, phrase, question, (statement,), path)


def identify_by_two(
    first: Statement, second: Statement, properties: Mapping[str, Property], kind: str
) -> Partial:
    """One conjunctive node: the only subject that has both objects.

    ``kind`` is the noun for it in "the {kind} that is both ... and ..."; each property's
    description must read "the {kind} <rest>".
    """
    one = properties[first.relation].describes.format(o=first.answers[0])
    two = properties[second.relation].describes.format(o=second.answers[0])
    phrase = f"{one} and {two.removeprefix(f'the {kind} ')}"
    both = f"{first.statement_id}&{second.statement_id}"
    node = Node(
        "v1", name_of(phrase), first.subject_names,
        (subject_evidence(first), subject_evidence(second)), (), both,
    )  # fmt: skip
    path = (first.object, second.object, first.subject)
    return Partial(f"^{both}", (node,), first.subject, phrase, node.question, (first, second), path)


def share(
    first: Statement, second: Statement, prop: Property, a: str, b: str, named: bool = False
) -> Partial:
    """One conjunctive node: the only object that two described subjects share."""
    phrase = prop.shared.format(a=a, b=b)
    node = _shared_node("v1", phrase, first, second, ())
    path = (first.subject, second.subject, first.object)
    return Partial(
        node.fact_id, (node,), first.object, phrase, node.question, (first, second), path, named
    )


def _shared_node(node_id, phrase, first, second, prerequisites) -> Node:
    answers = tuple(dict.fromkeys((*first.answers, *second.answers)))
    return Node(
        node_id, name_of(phrase), answers, (first.evidence, second.evidence), prerequisites,
        f"{first.statement_id}&{second.statement_id}",
    )  # fmt: skip


def step(partial: Partial, statement: Statement, prop: Property) -> Partial:
    """The graph one hop longer: a functional property of its answer."""
    last = partial.nodes[-1]
    key = f"{partial.graph_id}>{statement.statement_id}"
    node = Node(
        f"v{len(partial.nodes) + 1}", wording(prop, f"#{last.node_id[1:]}", key),
        statement.answers, (statement.evidence,), (last.node_id,), statement.statement_id,
    )  # fmt: skip
    return Partial(
        key, (*partial.nodes, node), statement.object, prop.phrase.format(s=partial.phrase),
        wording(prop, partial.phrase, key), (*partial.statements, statement),
        (*partial.path, statement.object), partial.named,
    )  # fmt: skip


def join(
    left: Partial, right: Partial, first: Statement, second: Statement, prop: Property
) -> Partial:
    """Two graphs and a conjunctive node over both answers."""
    offset = len(left.nodes)
    moved = tuple(_renumber(node, offset) for node in right.nodes)
    before = (left.nodes[-1].node_id, moved[-1].node_id)
    phrase = prop.shared.format(a=left.phrase, b=right.phrase)
    inner = prop.shared.format(a=f"#{before[0][1:]}", b=f"#{before[1][1:]}")
    node = _shared_node(f"v{offset + len(moved) + 1}", inner, first, second, before)
    return Partial(
        f"({left.graph_id} | {right.graph_id})>{node.fact_id}",
        (*left.nodes, *moved, node), first.object, phrase, name_of(phrase),
        (*left.statements, *right.statements, first, second),
        (*left.path, *right.path, first.object), left.named or right.named,
    )  # fmt: skip


def _renumber(node: Node, offset: int) -> Node:
    """The node ``offset`` places later; ``#k`` moves along where k is one of its prerequisites."""

    def moved(name: str) -> str:
        return f"v{int(name[1:]) + offset}"

    def reference(match: re.Match) -> str:
        own = f"v{match[1]}" in node.prerequisites
        return f"#{int(match[1]) + offset}" if own else match[0]

    return replace(
        node, node_id=moved(node.node_id), question=re.sub(r"#(\d+)", reference, node.question),
        prerequisites=tuple(map(moved, node.prerequisites)),
    )  # fmt: skip


def fill(partial: Partial, words: Mapping[str, str]) -> Partial:
    """The graph with stand-ins for its roots replaced, in its question and those of its nodes.

    A source whose descriptions are costly composes with stand-ins and describes the roots of
    the graphs that it keeps.
    """

    def filled(text: str) -> str:
        for stand_in, description in words.items():
            text = text.replace(stand_in, description)
        return text

    nodes = tuple(replace(node, question=filled(node.question)) for node in partial.nodes)
    return replace(
        partial, nodes=nodes, phrase=filled(partial.phrase), question=filled(partial.question)
    )


def shortcut(partial: Partial, knowledge: Knowledge) -> bool:
    """Whether the answer can be had without the whole graph.

    Either some entity, the answer above all, was met before on the way, or some relation of
    the knowledge base leads to the answer straight from an entity that is not among the last
    node's prerequisites.
    """
    answer, earlier = partial.path[-1], partial.path[:-1]
    if len(set(partial.path)) < len(partial.path):
        return True
    direct = {s.subject for s in _last_statements(partial)}
    return any(knowledge.linked(e, answer) for e in earlier if e not in direct and e != answer)


def _last_statements(partial: Partial) -> Sequence[Statement]:
    return partial.statements[-len(partial.nodes[-1].evidence) :]
