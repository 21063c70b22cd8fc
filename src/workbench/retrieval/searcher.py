"""Searcher: a batch of queries in, passages out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from ..corpus.records import Chunk
from ..corpus.store import Corpus
from ..errors import WorkbenchError
from .config import RetrievalConfig
from .index import open_index


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found; ``score`` is its BM25 score or its cosine with the query."""

    chunk: Chunk
    score: float


class Index(Protocol):
    """What a searcher needs of an index, wherever it lives."""

    def search(self, queries: Sequence[str], k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows int [m] and scores float [m], m <= k, of each query, best first."""


class Searcher:
    """Finds passages of ``chunks`` by an index over the same rows."""

    def __init__(self, chunks: Sequence[Chunk], index: Index, top_k: int = 3):
        self._chunks, self._index, self.top_k = chunks, index, top_k

    def search(self, queries: Sequence[str], k: int | None = None) -> list[list[Hit]]:
        """The best ``k`` (default ``top_k``) passages of each query, best first.

        Equal scores keep corpus order.  The hits of a query do not depend on the order of the
        batch, and equal queries are searched once.  A blank query has no hits, and neither has
        one that shares no term with the corpus under BM25.

        Raises
        ------
        WorkbenchError
            before anything is searched: ``queries`` is one string or holds something else
            than strings, or ``k`` is not a positive integer.
        """
        k = self.top_k if k is None else k
        if not isinstance(k, int) or k < 1:
            raise WorkbenchError(f"k must be a positive integer, got {k!r}", where="search")
        if isinstance(queries, str):
            raise WorkbenchError(
                "queries is one string, a list is needed", where="search", fix="search([query])"
            )
        for place, query in enumerate(queries):
            if not isinstance(query, str):
                raise WorkbenchError(
                    f"query {place} is a {type(query).__name__}, not text", where="search"
                )
        cleaned = [_clean(query) for query in queries]
        unique = sorted(set(cleaned) - {""})
        found = {}
        for query, (rows, scores) in zip(unique, self._index.search(unique, k), strict=True):
            pairs = zip(rows.tolist(), scores.tolist(), strict=True)
            found[query] = [Hit(self._chunks[row], score) for row, score in pairs]
        return [list(found.get(query, ())) for query in cleaned]


def _clean(query: str) -> str:
    """The query without outer space and without lone surrogates, which no tokenizer takes."""
    return query.strip().encode("utf-8", "replace").decode("utf-8")


def load_searcher(folder: Path | str, corpus: Corpus, config: RetrievalConfig) -> Searcher:
    """The searcher over the index in ``folder``; see ``open_index`` for what is refused."""
    return Searcher(corpus.chunks, open_index(folder, corpus, config), config.top_k)
