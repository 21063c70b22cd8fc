"""Text to ids and back, with the environment's own markup kept apart from foreign text.

Two kinds of text go into a context.  *Trusted* text is a template: ``<information>`` or
``<|im_start|>`` in it become the tokenizer's control tokens.  *Plain* text is a question, a
passage, a query: whatever it spells, it stays ordinary characters.  On the way back, every
generated token is assigned the characters it adds, so that spans in the text become spans of
tokens exactly.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers.decoders import DecodeStream

from ..errors import WorkbenchError


@dataclass(frozen=True, slots=True)
class Pieces:
    """Decoded text and the place of each token in it.

    Token i adds the characters ``bounds[i]:bounds[i + 1]`` of ``text``.  Rule: tokens are
    decoded one after another, and a token adds what the decoded prefix grows by once it ends
    on a whole character; a token that ends inside a character (part of an emoji, say) adds
    nothing, the one that completes it adds it all.  A token that is decoded with a space
    before it owns that space.  Bytes that never become a character are not in ``text``.
    """

    text: str
    bounds: tuple[int, ...]

    def tokens(self, start: int, end: int) -> tuple[int, int]:
        """The smallest token range whose characters cover ``text[start:end]``.

        A token that straddles an end of the span belongs to it, and so do the parts of a
        character at its start.  An empty span gives an empty range.
        """
        first = bisect_right(self.bounds, start) - 1
        if start == end:
            return first, first
        while first > 0 and self.bounds[first - 1] == self.bounds[first] == start:
            first -= 1
        return first, bisect_left(self.bounds, end)


class Codec:
    """Encoding and decoding with one fast tokenizer.

    *Control tokens* are the tokenizer's special tokens and every added token spelled
    ``<...>`` (``<think>``, ``<tool_call>``), the unknown token excepted.
    """

    def __init__(self, tokenizer: object):
        if not getattr(tokenizer, "is_fast", False):
            raise WorkbenchError(
                "the agent needs a fast tokenizer (one with a tokenizer.json)",
                where=type(tokenizer).__name__,
                fix="load it with AutoTokenizer.from_pretrained(..., use_fast=True)",
            )
        self.tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        unknown = tokenizer.unk_token_id  # asked once: transformers takes long to say
        control = {
            index: token.content
            for index, token in tokenizer.added_tokens_decoder.items()
            if index != unknown
            and (token.special or re.fullmatch(r"<.+>", token.content, re.DOTALL))
        }
        self.control = frozenset(control)
        spelled = sorted(control.values(), key=len, reverse=True)
        self._control_text = re.compile("|".join(map(re.escape, spelled)) or r"(?!)", re.I)

    def trusted(self, text: str) -> list[int]:
        """Ids of a template's text; its markup becomes control tokens."""
        return self._encode(text, split=False)

    def plain(self, text: str) -> list[int]:
        """Ids of foreign text; none of them is a control token.

        Markup in it is cut after its first character, so that it is encoded as ordinary
        characters: ``<`` and ``answer>``.
        """
        ids = self._encode(text, split=True)
        if self.control.isdisjoint(ids):
            return ids
        cuts = [0, *(m.start() + 1 for m in self._control_text.finditer(text)), len(text)]
        ids = [i for a, b in zip(cuts, cuts[1:]) for i in self._encode(text[a:b], split=True)]
        if self.control.isdisjoint(ids):
            return ids
        return [i for c in text for i in self._encode(c, split=True) if i not in self.control]

    def framed(self, before: str, plain: str, after: str) -> list[int]:
        """Ids of plain text between two trusted ones.

        Encoded as one string, as a chat template's text is, unless the plain text would then
        change what is a control token; in that case the three are encoded apart.
        """
        ends = self.trusted(before), self.trusted(after)
        if not self._control_text.search(plain):
            ids = self._encode(before + plain + after, split=False)
            if self._controls(ids) == [*self._controls(ends[0]), *self._controls(ends[1])]:
                return ids
        return [*ends[0], *self.plain(plain), *ends[1]]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids``, special tokens spelled out."""
        return self._backend.decode(list(ids), skip_special_tokens=False)

    def pieces(self, ids: Sequence[int]) -> Pieces:
        """Text of ``ids`` with the characters that each token adds."""
        stream = DecodeStream(skip_special_tokens=False)
        texts, bounds = [], [0]
        for index in ids:
            text = stream.step(self._backend, int(index)) or ""
            texts.append(text)
            bounds.append(bounds[-1] + len(text))
        return Pieces("".join(texts), tuple(bounds))

    def _controls(self, ids: list[int]) -> list[int]:
        return [i for i in ids if i in self.control]

    def _encode(self, text: str, split: bool) -> list[int]:
        # Lone surrogates cannot be encoded; everything else is passed on as it is.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return self.tokenizer(
            text, add_special_tokens=False, split_special_tokens=split, verbose=False
        ).input_ids
