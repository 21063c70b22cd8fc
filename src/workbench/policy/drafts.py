"""Sequences under construction: what demonstrations are put together from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..corpus.records import Chunk, Page
from ..questions.relations import Fact


@dataclass(slots=True)
class Demonstration:
    """Token ids int64 [T] and loss mask bool [T] (True: this token is a target)."""

    tokens: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True, slots=True)
class Made:
    """A passage made up for a lookup, in the place of a hit."""

    chunk: Chunk


@dataclass
class Draft:
    """A sequence under construction: pieces of text become ids with their loss flag."""

    encode: object
    ids: list[int] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)

    def say(self, text: str, learn: bool = True) -> Draft:
        """What the policy writes; ``learn`` False leaves it without loss."""
        tokens = self.encode(text)
        self.ids += tokens
        self.mask += [learn] * len(tokens)
        return self

    def feed(self, tokens: Sequence[int]) -> Draft:
        """What prompt or environment say, never learnt."""
        self.ids += list(tokens)
        self.mask += [False] * len(tokens)
        return self


def short_lines(pages: Sequence[Page], facts: Sequence[Fact], words: int = 16) -> dict[str, str]:
    """Fact id -> its paragraph, for paragraphs of few words; one relation for each paragraph.

    Where two relations share a field, the label cannot say which is meant, so only the first
    is looked up.
    """
    text = {p.page_id: p.text for p in pages}
    first: dict[tuple[str, int], str] = {}
    for fact in facts:
        first.setdefault((fact.page_id, fact.paragraph), fact.fact_id)
    lines = {i: text[page_id][paragraph] for (page_id, paragraph), i in first.items()}
    return {i: line for i, line in lines.items() if len(line.split()) <= words}
