"""Relations by name and field, and the facts that they read out of the corpus text.

Nothing is taken from outside the text, so every fact is grounded in a paragraph with the
character span of its mention.  The relations themselves stand in `relation_table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..corpus.embedded import field_of
from ..corpus.records import Page
from .relation_table import RELATIONS, Relation

# Descriptions that are used in pairs only: their objects are met in many other fields, so that even
# one that a single page has is hard to recognise there.
PAIRED = frozenset(
    {
        "currency", "independence_from", "national_day", "export_partner", "import_partner",
        "language", "symbol",
    }
)  # fmt: skip
FIELDS: tuple[str, ...] = tuple(dict.fromkeys(r.field for r in RELATIONS))
BY_NAME: dict[str, Relation] = {r.name: r for r in RELATIONS}


@dataclass(frozen=True, slots=True)
class Fact:
    """``relation`` holds between the page and ``answer``, read at ``paragraph[start:end]``."""

    fact_id: str
    page_id: str
    title: str
    relation: str
    answer: str
    paragraph: int
    start: int
    end: int


def read_facts(pages: list[Page], max_words: int = 6) -> Iterator[Fact]:
    """Facts of all pages in page order; one per page and relation, of those with one object.

    Answers of more than ``max_words`` words are left out: they are clauses, not entities.
    A page that gives one answer to two relations of the same kind keeps the first of them: one
    person as head of state and of government, as author of words and music; one country as the
    former ruler and the main export partner.
    """
    compiled = [(r, re.compile(r.pattern)) for r in RELATIONS if not r.listed]
    for page in pages:
        seen: dict[str, str] = {}
        by_field = _paragraphs(page)
        for relation, pattern in compiled:
            index = by_field.get(relation.field)
            match = pattern.search(page.text[index]) if index else None
            if match is None:
                continue
            answer = match["answer"]
            if len(answer.split()) > max_words or seen.get(answer) == relation.kind:
                continue
            seen[answer] = relation.kind
            yield _fact(page, relation, match, index, f"{page.page_id}.{relation.name}")


def read_lists(pages: list[Page]) -> Iterator[Fact]:
    """Facts of the listed relations, one per object; an object named twice counts once."""
    compiled = [(r, re.compile(r.pattern)) for r in RELATIONS if r.listed]
    for page in pages:
        by_field = _paragraphs(page)
        for relation, pattern in compiled:
            index = by_field.get(relation.field)
            found = pattern.finditer(page.text[index]) if index else ()
            by_answer = {match["answer"]: match for match in reversed(list(found))}
            for place, match in enumerate(sorted(by_answer.values(), key=lambda m: m.start())):
                fact_id = f"{page.page_id}.{relation.name}.{place}"
                yield _fact(page, relation, match, index, fact_id)


def _paragraphs(page: Page) -> dict[str, int]:
    by_field: dict[str, int] = {}
    for index, paragraph in enumerate(page.text[1:], start=1):
        by_field.setdefault(field_of(paragraph), index)
    return by_field


def _fact(page: Page, relation: Relation, match: re.Match, index: int, fact_id: str) -> Fact:
    start, end = match.span("answer")
    return Fact(
        fact_id, page.page_id, page.title, relation.name, match["answer"], index, start, end
    )
