"""Whole pages by id: what ``get_doc`` opens, and ``visit`` over a local store (S2 §5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ..corpus.records import Chunk
from .searcher import Hit


class PageStore:
    """Pages put together from a corpus' chunks, in corpus order.

    A page is opened by its ``page_id`` or by its title, whatever the case of its letters; two
    pages of one title are opened by id only.
    """

    def __init__(self, chunks: Iterable[Chunk]):
        parts: dict[str, list[str]] = defaultdict(list)
        titles: dict[str, str] = {}
        for chunk in chunks:
            parts[chunk.page_id].append(chunk.text)
            titles[chunk.page_id] = chunk.title
        self._pages = {
            page: Chunk(page, page, titles[page], "\n".join(texts), ())
            for page, texts in parts.items()
        }
        by_title: dict[str, list[str]] = defaultdict(list)
        for page, title in titles.items():
            by_title[_key(title)].append(page)
        self._by_title = {title: ids[0] for title, ids in by_title.items() if len(ids) == 1}

    def __len__(self) -> int:
        return len(self._pages)

    def open(self, docid: str) -> Hit | None:
        """The page, as a hit whose chunk is the whole page; None for an unknown id."""
        docid = docid.strip()
        page = self._pages.get(docid) or self._pages.get(self._by_title.get(_key(docid), ""))
        return Hit(page, 1.0) if page else None


def _key(title: str) -> str:
    return " ".join(title.casefold().split())
