"""Copy tokens: generated tokens whose surface stands in the rollout's documents (S2 §3, App. G).

The documents are lowercased, their whitespace collapsed, and put one after another.  A token is
a copy when its normal form is a substring of them.  A token that holds other characters inside
(``Guinea-Bissau``, ``Vatican City`` in a vocabulary of names) would never match letters only,
so it is a copy as well when it stands there as it is, but for punctuation at its ends.

A substring also makes ``an`` a copy of ``many``.  Beside S2's test stands a stricter one: a
token is *whole* when every word that it is a part of occurs in the documents as a whole word.

A rollout without any document text has nothing to copy from, and one without a token stream or
without kept tokens nothing to copy: their share is NaN, with the reason.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from ..config import Settings
from ..reports.record import Phase, Rollout
from .surfaces import is_markup, normal, spoken

NO_STREAM, NO_DOCUMENTS, NO_TOKENS = "no token stream", "no documents", "no kept tokens"
_WORD = re.compile(r"[^\W_]+")


class CopyConfig(Settings):
    """Tokens that are looked at: of the ``reasoning`` (S2 App. G) or all ``generated`` ones."""

    phases: Literal["reasoning", "generated"] = "reasoning"


@dataclass(frozen=True, slots=True)
class Kept:
    """The kept tokens of a rollout, or why there are none.

    positions : int64 [n] places in the token stream; texts, normals : n strings.
    copy, whole : bool [n].
    generated, short, markup : tokens of the phases, and those discarded.
    """

    reason: str
    positions: np.ndarray
    texts: list[str]
    normals: list[str]
    copy: np.ndarray
    whole: np.ndarray
    generated: int = 0
    short: int = 0
    markup: int = 0


def kept_tokens(rollout: Rollout, config: CopyConfig | None = None) -> Kept:
    """The kept tokens of one rollout and which of them are copies."""
    config = config or CopyConfig()
    if rollout.tokens is None:
        return _none(NO_STREAM)
    stream = rollout.tokens
    inside = np.ones(len(stream.surfaces), dtype=bool)
    if config.phases == "reasoning":
        inside = np.asarray(stream.phases) == Phase.REASONING
    return tokens_of(stream.surfaces, inside, [d.text for d in rollout.documents])


def tokens_of(surfaces: Sequence[str], inside: np.ndarray, documents: Sequence[str]) -> Kept:
    """The kept ones among ``surfaces`` [n] where ``inside`` bool [n] is True.

    Words are put together from the whole stream, so a word may begin outside.
    """
    text, words = _log(tuple(documents))
    counts = {"generated": int(inside.sum())}
    if not words:
        return _none(NO_DOCUMENTS, **counts)
    said = spoken(surfaces)
    places = np.flatnonzero(inside)
    forms = {said[i]: normal(said[i]) for i in places}
    kept = np.array([i for i in places if len(forms[said[i]]) >= 2], dtype=np.int64)
    counts["markup"] = sum(is_markup(said[i]) for i in places)
    counts["short"] = len(places) - len(kept) - counts["markup"]
    if not len(kept):
        return _none(NO_TOKENS, **counts)
    texts = [said[i] for i in kept]
    found = {t: _stands(forms[t], t, text, words) for t in set(texts)}
    whole = _whole(said, words)
    return Kept(
        "",
        kept,
        texts,
        [forms[t] for t in texts],
        np.array([found[t] for t in texts], dtype=bool),
        whole[kept],
        **counts,
    )


@lru_cache(maxsize=64)
def _log(texts: tuple[str, ...]) -> tuple[str, frozenset[str]]:
    """D of App. G with the words in it; no name reaches from one document into the next."""
    documents = [_document(text) for text in texts]
    return "\n".join(t for t, _ in documents), frozenset().union(*(w for _, w in documents))


@lru_cache(maxsize=4096)
def _document(text: str) -> tuple[str, frozenset[str]]:
    text = " ".join(text.lower().split())
    return text, frozenset(_WORD.findall(text))


def _stands(form: str, said: str, text: str, words: frozenset[str]) -> bool:
    if form in words or form in text:
        return True
    bare = " ".join(said.lower().split())
    runs = list(_WORD.finditer(bare))
    return len(runs) > 1 and bare[runs[0].start() : runs[-1].end()] in text


def _whole(said: list[str], words: frozenset[str]) -> np.ndarray:
    """Whether all words that a token is a part of are whole words of the documents, bool [n]."""
    pieces = [" \n " if is_markup(s) else s.lower() for s in said]
    starts = np.concatenate([[0], np.cumsum([len(p) for p in pieces])]).tolist()
    hits, misses = np.zeros(len(said), dtype=bool), np.zeros(len(said), dtype=bool)
    for run in _WORD.finditer("".join(pieces)):
        first, last = (bisect_right(starts, at) - 1 for at in (run.start(), run.end() - 1))
        (hits if run[0] in words else misses)[first : last + 1] = True
    return hits & ~misses


def _none(reason: str, **counts: int) -> Kept:
    nothing = np.zeros(0, dtype=bool)
    return Kept(reason, np.zeros(0, dtype=np.int64), [], [], nothing, nothing, **counts)
