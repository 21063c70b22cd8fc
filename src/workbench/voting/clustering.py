"""Which answers are the same answer: the normal form of S2 App. A, clusters by byte equality.

S2 declares: lowercase, collapse whitespace, strip a leading article, surrounding punctuation
and matching outer quotes.  Its worked example (App. M.6) does two things more: it drops the
lead-in of ``The answer is Toke Makinwa.`` and the accent of ``Tóke``; only then do its eight
answers form the clusters of 3, 3, 1 and 1 that it prints.  Both are settings here, on by
default; ``DECLARED`` turns them off.
"""

from __future__ import annotations

import re
import unicodedata

from ..config import Settings

_LEAD_IN = re.compile(r"^(?:the\s+)?(?:final\s+)?answer\s*(?:is\b|:)\s*:?\s*(?=\S)")
_ARTICLE = re.compile(r"^(?:the|an|a)\s+(?=\S)")
_ACCENTS = re.compile("[\u0300-\u036f]")


class ClusterRule(Settings):
    """``lead_in`` drops "the answer is"; ``accents`` folds letters with diacritics."""

    lead_in: bool = True
    accents: bool = True


DECLARED = ClusterRule(lead_in=False, accents=False)


def normal_form(answer: str, rule: ClusterRule | None = None) -> str:
    """The cluster key of an answer; empty only for an answer of nothing but whitespace.

    One article is stripped, before or inside quotes.  A step that would leave nothing is not
    taken, so ``?`` and ``The`` keep clusters of their own.
    """
    rule = rule or ClusterRule()
    text = " ".join(answer.lower().split())
    if rule.accents:
        decomposed = unicodedata.normalize("NFD", text)
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))
    if rule.lead_in:
        text = _LEAD_IN.sub("", _strip_outside(text))
    return _strip_outside(_ARTICLE.sub("", _strip_outside(text)))


def _strip_outside(text: str) -> str:
    """Text without punctuation and quotes at its ends; as it was if nothing else is in it."""
    start, end = 0, len(text)
    while start < end and _is_edge(text[start]):
        start += 1
    while end > start and _is_edge(text[end - 1]):
        end -= 1
    return text[start:end] or text


def _is_edge(character: str) -> bool:
    """Unicode punctuation, which quotes belong to, and the backtick, which is a symbol there."""
    return character in " `" or unicodedata.category(character).startswith("P")
