"""Token surfaces: what a generated token says, without how its tokenizer spells it (S2 App. G).

A *surface* is a token without its subword prefix (``Ġ``, ``▁``, ``##`` or a space).  Its
*normal form* is lowercase and alphanumeric only; with fewer than two characters it says nothing
and is discarded.  Beyond S2:

- byte-level vocabularies spell ``é`` as ``Ã©`` and a line break as ``Ċ``, both of which pass
  for letters: the surfaces of a stream that uses ``Ġ`` are decoded first;
- a control token (``<think>``, ``<|im_end|>``) is markup and no word: it is discarded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from tokenizers.decoders import ByteLevel

SPACED = ("Ġ", "▁", " ")  # prefixes of a token that begins a word
_MARKUP = re.compile(r"\s*<[^<>\s]+>\s*")
_BYTES = ByteLevel()


def spoken(surfaces: Sequence[str]) -> list[str]:
    """Each token as text: bytes decoded, ``▁`` and ``Ġ`` turned into a leading space.

    A token that begins a word has a leading space, one that continues a word has none.  Where
    nothing in the stream begins with a space sign, tokens begin words unless they have ``##``.
    """
    if any(s.startswith("Ġ") for s in surfaces):
        return [_from_bytes(s) for s in surfaces]
    if any(s.startswith(SPACED) for s in surfaces):
        return [s.replace("▁", " ") for s in surfaces]
    return [s.removeprefix("##") if s.startswith("##") else f" {s}" for s in surfaces]


@lru_cache(maxsize=262_144)
def normal(text: str) -> str:
    """The normal form of a token's text; "" for a control token."""
    if is_markup(text):
        return ""
    return "".join(c for c in text.lower() if c.isalnum())


def is_markup(text: str) -> bool:
    """Whether a token is a control token, spelled ``<...>`` as a whole."""
    return _MARKUP.fullmatch(text) is not None


@lru_cache(maxsize=262_144)
def _from_bytes(surface: str) -> str:
    return _BYTES.decode([surface])
