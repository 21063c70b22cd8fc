"""Pages, chunks and places in them: the units that retrieval returns and evidence names.

A page's ``text`` is a list as in KILT: entry 0 is the title, the others are paragraphs,
section markers (``Section::::Geography.``) and bullets (``BULLET::::- ...``), kept in
order.  A *paragraph index* is a position in that list; a *mention* is a character span
inside one paragraph (S3 App. B).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """One document before chunking. ``text[0]`` is the title."""

    page_id: str
    title: str
    text: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Extent:
    """The characters ``start:end`` of paragraph ``paragraph`` that a chunk holds."""

    paragraph: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable passage: ``text`` is its extents joined by newlines, without the title."""

    chunk_id: str
    page_id: str
    title: str
    text: str
    extents: tuple[Extent, ...]

    def contains(self, page_id: str, paragraph: int, offset: int) -> bool:
        """Whether character ``offset`` of ``paragraph`` of ``page_id`` lies in this chunk."""
        return page_id == self.page_id and any(
            s.paragraph == paragraph and s.start <= offset < s.end for s in self.extents
        )
