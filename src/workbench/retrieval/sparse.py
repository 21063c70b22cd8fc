"""BM25: bm25s makes and stores the term-weight matrix, a sparse product scores a batch.

bm25s's own ``retrieve`` visits every row for every query and breaks ties by whatever its
argpartition left in place.  The matrix it stores holds the finished score of each
(term, passage) pair, so the scores of a batch are one sparse product over the postings of the
terms that the batch names; it stores no zeros, so a passage that scores 0 never appears.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import WorkbenchError
from .config import BM25Config, RetrievalConfig
from .ranking import top_rows

_POSTINGS_PER_BLOCK = 1 << 24  # bounds the memory of one product: about 200 MB


def make_tokenizer(config: BM25Config):
    """The bm25s tokenizer that ``config`` describes, with an empty vocabulary."""
    from bm25s.tokenization import Tokenizer

    try:
        words = re.compile(config.token_pattern).findall
    except re.error as error:
        raise WorkbenchError(
            f"not a regular expression: {error}", where="retrieval.bm25.token_pattern"
        ) from error
    splitter = (lambda text: words(fold_accents(text))) if config.fold_accents else words
    return Tokenizer(
        lower=True, splitter=splitter, stopwords=config.stopwords, stemmer=_stemmer(config.stemmer)
    )


def _stemmer(language: str | None):
    if language is None:
        return None
    import Stemmer

    if language not in Stemmer.algorithms():
        raise WorkbenchError(
            f"no stemmer for {language!r}",
            where="retrieval.bm25.stemmer",
            fix=f"one of {', '.join(Stemmer.algorithms())}",
        )
    return Stemmer.Stemmer(language)


def fold_accents(text: str) -> str:
    """Letters without their combining marks: ``"são"`` in any normal form gives ``"sao"``."""
    if text.isascii():
        return text
    return "".join(
        c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) != "Mn"
    )


def build_bm25(texts: Sequence[str], config: RetrievalConfig, folder: Path) -> int:
    """Index ``texts`` into ``folder``; returns the dimension, the number of terms."""
    import bm25s

    tokenizer = make_tokenizer(config.bm25)
    ids = tokenizer.tokenize(texts, update_vocab=True, show_progress=False, allow_empty=False)
    vocabulary = tokenizer.get_vocab_dict()
    if not vocabulary:
        raise WorkbenchError(
            "no passage holds a word to index",
            where="retrieval.bm25",
            fix="check token_pattern and stopwords",
        )
    c = config.bm25
    index = bm25s.BM25(k1=c.k1, b=c.b, method=c.method, backend="numpy")
    index.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    index.save(folder, show_progress=False)
    return len(vocabulary)


class BM25Index:
    """A loaded BM25 index.

    Raises
    ------
    WorkbenchError
        at construction: a file is missing or corrupt, or its arrays do not fit together.
    """

    def __init__(self, folder: Path, config: RetrievalConfig):
        import bm25s

        rebuild = "delete the folder and build the index again"
        try:
            index = bm25s.BM25.load(folder, mmap=config.memory_map, show_progress=False)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
            raise WorkbenchError(
                f"the BM25 index cannot be read: {error}", where=folder, fix=rebuild
            ) from error
        self._data, self._indices = index.scores["data"], index.scores["indices"]
        self._indptr, self.rows = index.scores["indptr"], index.scores["num_docs"]
        self.dimension = len(index.vocab_dict)
        whole = len(self._data) == len(self._indices) == self._indptr[-1]
        if not whole or len(self._indptr) != self.dimension + 1:
            raise WorkbenchError(
                f"the BM25 index is not whole: {len(self._data)} scores, {len(self._indices)} "
                f"row numbers, {self._indptr[-1]} announced, {len(self._indptr) - 1} terms for a "
                f"vocabulary of {self.dimension}",
                where=folder,
                fix=rebuild,
            )
        self._tokenizer = make_tokenizer(config.bm25)
        if config.bm25.stemmer is None:
            self._tokenizer.word_to_id = index.vocab_dict
        else:
            self._tokenizer.stem_to_sid = index.vocab_dict

    def search(self, queries: Sequence[str], k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows int [m] and scores float32 [m], m <= k, of each query; scores are positive."""
        terms = self._tokenizer.tokenize(
            queries, update_vocab=False, show_progress=False, allow_empty=False
        )
        found = []
        for block in self._blocks(terms):
            product = self._product(block)
            for start, end in zip(product.indptr[:-1], product.indptr[1:], strict=True):
                found.append(top_rows(product.indices[start:end], product.data[start:end], k))
        return found

    def _blocks(self, terms: list[list[int]]) -> Iterator[list[list[int]]]:
        """Consecutive queries whose postings together stay within the bound (one at least)."""
        block, size = [], 0
        for query in terms:
            ids = np.asarray(query, dtype=np.int64)
            postings = int((self._indptr[ids + 1] - self._indptr[ids]).sum())
            if block and size + postings > _POSTINGS_PER_BLOCK:
                yield block
                block, size = [], 0
            block.append(query)
            size += postings
        if block:
            yield block

    def _product(self, terms: list[list[int]]):
        """CSR matrix [queries, rows]; a query's repeated term counts as often as it occurs."""
        from scipy.sparse import csr_matrix

        flat = np.array([t for query in terms for t in query], dtype=np.int64)
        if not len(flat):
            return csr_matrix((len(terms), self.rows), dtype=np.float32)
        used, column = np.unique(flat, return_inverse=True)
        starts, ends = self._indptr[used], self._indptr[used + 1]
        parts = [slice(s, e) for s, e in zip(starts, ends, strict=True)]
        postings = csr_matrix(
            (
                np.concatenate([self._data[p] for p in parts]),
                np.concatenate([self._indices[p] for p in parts]),
                np.concatenate([[0], np.cumsum(ends - starts)]),
            ),
            shape=(len(used), self.rows),
        )
        bounds = np.cumsum([0] + [len(query) for query in terms])
        weights = csr_matrix(
            (np.ones(len(flat), dtype=np.float32), column, bounds), shape=(len(terms), len(used))
        )
        return weights @ postings
