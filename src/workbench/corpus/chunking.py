"""Pages -> non-overlapping chunks of at most N words (S3 App. B).

The title entry is dropped, section and bullet markers are kept, and the rest is split into
words.  ``boundary="word"`` is the paper's rule: every chunk but a page's last has exactly N
words, wherever a paragraph ends.  ``boundary="paragraph"`` starts a new chunk rather than
cut a paragraph that would fit whole, which keeps the short fields of the embedded corpus
readable at N = 30; longer paragraphs are cut as in the paper.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from ..config import Settings
from .records import Chunk, Extent, Page

_WORD = re.compile(r"\S+")


class ChunkConfig(Settings):
    """``words``: the most white-space separated words in a chunk (100 in S3)."""

    words: int = Field(default=100, ge=1)
    boundary: Literal["word", "paragraph"] = "word"


def chunk_page(page: Page, config: ChunkConfig) -> list[Chunk]:
    """The chunks of one page in order; ids are ``<page_id>#<ordinal>``."""
    groups: list[list[Extent]] = []
    room = 0
    for index, paragraph in enumerate(page.text[1:], start=1):
        words = [m.span() for m in _WORD.finditer(paragraph)]
        if config.boundary == "paragraph" and room < len(words) <= config.words:
            room = 0
        while words:
            if room == 0:
                groups.append([])
                room = config.words
            taken, words = words[:room], words[room:]
            groups[-1].append(Extent(index, taken[0][0], taken[-1][1]))
            room -= len(taken)
    return [
        Chunk(
            f"{page.page_id}#{ordinal}",
            page.page_id,
            page.title,
            "\n".join(page.text[e.paragraph][e.start : e.end] for e in group),
            tuple(group),
        )
        for ordinal, group in enumerate(groups)
    ]


def chunk_pages(pages: list[Page], config: ChunkConfig) -> list[Chunk]:
    """All chunks of all pages, in page order."""
    return [chunk for page in pages for chunk in chunk_page(page, config)]
