"""What has to be looked up for a question, in which order and with which query.

A question graph becomes a list of lookups, one for each required passage: nodes in order, each
after its prerequisites.  Demonstrations search for them one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..questions.graph import Item
from ..questions.relations import BY_NAME, Fact

STYLES = ("good", "subject alone", "another field")


@dataclass(frozen=True, slots=True)
class Lookup:
    """One required passage.

    Attributes
    ----------
    fact : what the passage says.
    word : what the query knows: the page's title, or the object that describes the page.
    backward : whether the page is what is looked for, by its object.
    answers : names of the node's answer.
    first, second : of the two passages of a conjunctive node, which one this is.
    last : whether the answer to the question stands here.
    """

    fact: Fact
    word: str
    backward: bool = False
    answers: tuple[str, ...] = ()
    first: bool = False
    second: bool = False
    last: bool = False

    def query(self, style: int = 0) -> str:
        """The query in one of `STYLES`; styles 1 and 2 mostly miss the passage."""
        relation = BY_NAME[self.fact.relation]
        if style == 1:
            return self.word
        if style == 2:
            names = list(BY_NAME)
            relation = BY_NAME[names[(names.index(relation.name) + 7) % len(names)]]
        return relation.query.format(s=self.word)


def lookups_of(item: Item, facts: Mapping[str, Fact]) -> list[Lookup]:
    """The lookups of an item made from the embedded corpus."""
    found: list[Lookup] = []
    for node in item.nodes:
        needed = [facts[fact_id] for fact_id in node.fact_id.split("&")]
        backward = node.answers[0] == needed[0].title and not node.prerequisites
        for place, fact in enumerate(needed):
            found.append(
                Lookup(
                    fact,
                    fact.answer if backward else fact.title,
                    backward,
                    node.answers,
                    first=place == 0 and len(needed) > 1,
                    second=place == 1,
                    last=node is item.nodes[-1] and place == len(needed) - 1,
                )
            )
    return found
