"""Alternatives of the same type: what an answer can be replaced by in the documents (S1 §7.3.1).

The type of an answer is the kind of its relation ("city", "person", "country"): that of the
fact behind the question's last node.  Questions of other sources have no such facts; theirs is
``kind`` in the item's ``meta``, else the item's category.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from ..evaluation.answers import contains_phrase, normalise_answer
from ..questions.graph import Item, Node
from ..questions.relations import BY_NAME, Fact
from ..seeding import generator

PAGE_KIND = "country"  # what the pages of the embedded corpus are about


def node_kind(node: Node, facts: Mapping[str, Fact]) -> str | None:
    """Kind of a node's answer: the object of a fact behind it, else the page it is about.

    None when the node's facts are not among ``facts``.
    """
    behind = [facts[name] for name in node.fact_id.split("&") if name in facts]
    own = {normalise_answer(answer) for answer in node.answers}
    for fact in behind:
        if normalise_answer(fact.answer) in own:
            return BY_NAME[fact.relation].kind
    return PAGE_KIND if behind else None


def answer_kind(item: Item, facts: Mapping[str, Fact]) -> str:
    """Kind of an item's answer, with the fallbacks named above."""
    if item.nodes and (kind := node_kind(item.nodes[-1], facts)):
        return kind
    return str(item.meta.get("kind") or f"an answer of category {item.category}")


class Alternatives:
    """Entities and values of a corpus by kind.

    Parameters
    ----------
    items : their answers, and those of their nodes, are the entities, with all their names.
    facts : by fact id (of the embedded corpus); their objects are entities, too.
    """

    def __init__(self, items: Iterable[Item], facts: Mapping[str, Fact] | None = None):
        self._facts = dict(facts or {})
        names: dict[str, dict[str, dict[str, str]]] = {}
        for kind, answers in self._entities(items):
            found = names.setdefault(kind, {}).setdefault(normalise_answer(answers[0]), {})
            for answer in answers:
                found.setdefault(normalise_answer(answer), answer)
        self._pools = {
            kind: [tuple(entities[key].values()) for key in sorted(entities) if key]
            for kind, entities in names.items()
        }
        self._longer = cache(self._find_longer)

    def _entities(self, items: Iterable[Item]) -> Iterator[tuple[str, tuple[str, ...]]]:
        for item in items:
            if item.answers:
                yield answer_kind(item, self._facts), item.answers
            for node in item.nodes:
                if node.answers and (kind := node_kind(node, self._facts)):
                    yield kind, node.answers
        for fact in self._facts.values():
            yield BY_NAME[fact.relation].kind, (fact.answer,)

    def kind(self, item: Item) -> str:
        """Type of the item's answer."""
        return answer_kind(item, self._facts)

    def pool(self, kind: str) -> list[tuple[str, ...]]:
        """Names of every entity of a kind, the main one first, in order of the main names."""
        return self._pools.get(kind, [])

    def choose(self, item: Item, texts: Iterable[str], seed: int = 0) -> tuple[str, ...] | None:
        """Names of an alternative to the item's answer, or None when no entity will do.

        It has the answer's kind, shares no name with the answer, neither holds the other, and
        it stands neither in the question nor in ``texts``.  An item's alternatives are tried
        in one order (generator "entity replacement"), whatever the texts.
        """
        answers = [normalise_answer(answer) for answer in item.answers]
        said = [normalise_answer(text) for text in (item.question, *texts)]
        pool = self.pool(self.kind(item))
        for place in generator("entity replacement", seed, item.item_id).permutation(len(pool)):
            names = [normalise_answer(name) for name in pool[place]]
            related = any(
                n == a or contains_phrase(n, a) or contains_phrase(a, n)
                for n in names
                for a in answers
            )
            if not related and not any(contains_phrase(t, n) for t in said for n in names):
                return pool[place]
        return None

    def longer_names(self, answers: tuple[str, ...]) -> frozenset[str]:
        """Names of other entities that hold one of ``answers``: "Equatorial Guinea", "Guinea"."""
        return self._longer(answers)

    def _find_longer(self, answers: tuple[str, ...]) -> frozenset[str]:
        own = {normalise_answer(answer) for answer in answers}
        return frozenset(
            name
            for pool in self._pools.values()
            for names in pool
            if own.isdisjoint(normals := [normalise_answer(n) for n in names])
            for name, normal in zip(names, normals, strict=True)
            if any(contains_phrase(normal, answer) for answer in own)
        )
