"""Sentences of a paragraph and the places where a name stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int]

_END = re.compile(r"[.!?]+[\"”’')\]]*\s+")
_WORD_BEFORE = re.compile(r"(\w+(?:\.\w+)*)\.$")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev hon st mt ft gen col lt sgt capt cmdr adm gov sen rep pres jr sr "
    "inc ltd co corp bros dept est no nos vol pp ed eds ca c cf vs v etc e.g i.e approx "
    "jan feb mar apr jun jul aug sep sept oct nov dec b d r".split()
)


def sentences(text: str, protected: Iterable[Span] = ()) -> list[Span]:
    """Spans of the sentences, which together hold every character that is no outer blank.

    A sentence ends at ``.``, ``!`` or ``?`` before a blank and a capital letter, a digit or an
    opening mark; not after an abbreviation or an initial, and not inside a ``protected`` span
    (the text of a link).  Rules, not a trained splitter: nothing to download, and the same
    spans on every machine.
    """
    inside = sorted(protected)
    found: list[Span] = []
    start = 0
    for match in _END.finditer(text):
        cut = match.end()
        if cut >= len(text) or not _begins(text[cut:].lstrip("\"“‘'([")[:1]):
            continue
        if text[match.start()] == "." and _abbreviated(text[: match.start() + 1]):
            continue
        if any(a < cut < b or a <= match.start() < b - 1 for a, b in inside):
            continue
        found.append((start, cut))
        start = cut
    found.append((start, len(text)))
    return [_trimmed(text, a, b) for a, b in found if text[a:b].strip()]


def _begins(character: str) -> bool:
    return character.isupper() or character.isdigit()


def _abbreviated(before: str) -> bool:
    match = _WORD_BEFORE.search(before[-20:])
    if match is None:
        return False
    word = match[1]
    return (
        word.lower() in _ABBREVIATIONS or len(word.rsplit(".", 1)[-1]) == 1 and word[-1].isupper()
    )


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def find_names(text: str, names: Sequence[str]) -> list[Span]:
    """Where one of the names stands, as written, on word boundaries; the longest at each place.

    Names of one character are left out.
    """
    found = [
        (start, start + len(name))
        for name in set(names)
        if len(name) > 1
        for start in _occurrences(text, name)
    ]
    kept: list[Span] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _occurrences(text: str, name: str) -> Iterator[int]:
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (at and _is_word(text[at - 1])) and not (end < len(text) and _is_word(text[end])):
            yield at
        at = text.find(name, at + 1)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order, without those that lie inside another."""
    kept: list[Span] = []
    for span in sorted(set(spans), key=lambda s: (s[0], -s[1])):
        if not kept or span[1] > kept[-1][1]:
            kept.append(span)
    return tuple(kept)
