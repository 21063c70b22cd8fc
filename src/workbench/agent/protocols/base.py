"""What a protocol is: prompt, stop strings, the parser, and the environment's messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal
from typing import Protocol as Interface

from ...errors import WorkbenchError
from ..config import AgentConfig
from ..text import Codec

Span = tuple[int, int]
Kind = Literal["search", "open", "answer", "invalid"]


@dataclass(frozen=True, slots=True)
class Action:
    """What one assistant turn asks for; spans are half-open ranges of the turn's tokens.

    kind : "search", "open" (a whole page, report protocol only), "answer" or "invalid".
    text : the executed query, the page's id or the answer, stripped; for "invalid" why it is none.
    span : the smallest token range that covers ``text``: every token that holds one of its
        characters, also one that holds a character of a tag beside it.  Empty for "invalid".
    payload : likewise the full call or answer with its tags or JSON.
    keep : tokens of the turn that count; what was generated behind a complete action does not.
    ignored : queries (or whole calls) of the turn that are not executed.
    """

    kind: Kind
    text: str
    span: Span
    payload: Span
    keep: int
    ignored: tuple[str, ...] = field(default=())

    @property
    def commit(self) -> int:
        """Index of the last answer token: the answer-commit token."""
        return self.span[1] - 1


@dataclass(frozen=True, slots=True)
class Observation:
    """Ids that the environment appends; ``cut`` when its passages did not fit."""

    ids: list[int]
    cut: bool


class Protocol(Interface):
    """The language between policy and environment. Parsing sees generated ids only."""

    stop: tuple[str, ...]  # a turn ends with the first of these, or with EOS

    def prompt(self, question: str) -> list[int]:
        """Ids of the prompt. The question is never cut."""

    def parse(self, ids: Sequence[int]) -> Action:
        """The first complete action of one turn's generated ids."""

    def observation(self, hits: Sequence, ignored: Sequence[str], limit: int) -> Observation:
        """Ids of at most ``limit`` tokens that answer a search with ``hits``."""

    def correction(self) -> list[int]:
        """Ids that answer an invalid action; empty when it ends the rollout."""

    @property
    def overhead(self) -> int:
        """Tokens of an observation's frame: what remains when all passages are cut."""


class Framed:
    """Observations and corrections as plain text inside trusted frames of ids.

    The frame's ends are encoded apart from what they frame, so its tags survive any cut and
    are token boundaries; what is framed is plain text and creates no control token.
    """

    def __init__(
        self,
        codec: Codec,
        config: AgentConfig,
        observation: tuple[list[int], list[int]],
        correction: tuple[list[int], list[int]],
    ):
        self.codec, self.config = codec, config
        self._observation = observation
        self._correction = correction
        self._plain: dict[str, list[int]] = {}

    @property
    def overhead(self) -> int:
        """Tokens of an observation's frame."""
        return sum(map(len, self._observation))

    def observation(self, hits: Sequence, ignored: Sequence[str], limit: int) -> Observation:
        """Ids of ``[before] (ignored note) passages [after]``, passages cut to fit ``limit``."""
        before, after = self._observation
        room = limit - self.overhead
        if room < 0:
            raise WorkbenchError(
                f"an observation's frame alone has {self.overhead} tokens, {limit} are allowed",
                where="agent.max_observation_tokens",
                fix="raise the limit",
            )
        body = self._body(hits, ignored)
        return Observation([*before, *body[:room], *after], cut=len(body) > room)

    def correction(self) -> list[int]:
        """Ids of the framed corrective text; empty when there is none."""
        return self._said(self.config.correction) if self.config.correction else []

    def _said(self, text: str) -> list[int]:
        """What the environment says, in the frame of corrections."""
        before, after = self._correction
        return [*before, *self._encode(text), *after]

    def _body(self, hits: Sequence, ignored: Sequence[str]) -> list[int]:
        config = self.config
        lines = []
        if ignored:
            lines.append(config.ignored.format(queries="; ".join(ignored)))
        lines += [
            config.passage.format(rank=rank, title=hit.chunk.title, text=hit.chunk.text)
            for rank, hit in enumerate(hits, start=1)
        ] or [config.no_results]
        return self._encode(config.separator.join(lines))

    def _encode(self, text: str) -> list[int]:
        # Rollouts of one question often ask the same: their observations are encoded once.
        if text not in self._plain:
            if len(self._plain) >= 4096:
                self._plain.clear()
            self._plain[text] = self.codec.plain(text)
        return self._plain[text]


def check_start(ids: list[int], config: AgentConfig, question: str) -> list[int]:
    """``ids`` unless they are more than the prompt may have."""
    if len(ids) > config.max_start_tokens:
        raise WorkbenchError(
            f"the prompt has {len(ids)} tokens, {config.max_start_tokens} are allowed",
            where=f"question {question[:80]!r}",
            fix="raise agent.max_start_tokens; a question is never cut",
        )
    return ids


def tag_pattern(*tags: str) -> re.Pattern:
    """Matches the opening and closing tags of ``tags``."""
    return re.compile(f"<(?P<close>/?)(?P<tag>{'|'.join(map(re.escape, tags))})>")


def closed_tags(text: str, pattern: re.Pattern) -> Iterator[tuple[re.Match | None, re.Match]]:
    """Every closing tag with the last opening tag since the closing tag before it, if any."""
    opening = None
    for tag in pattern.finditer(text):
        if tag["close"]:
            yield opening, tag
            opening = None
        else:
            opening = tag


def strip_span(text: str, start: int, end: int) -> Span:
    """The character span ``start:end`` without white space at its ends."""
    inside = text[start:end]
    left = len(inside) - len(inside.lstrip())
    return (start + left, start + len(inside.rstrip())) if left < len(inside) else (start, start)


def invalid(reason: str, keep: int) -> Action:
    """The invalid action of a turn of ``keep`` tokens."""
    return Action("invalid", reason, (0, 0), (0, 0), keep)
