"""Tag protocol (S1): ``<search>q</search>``, ``<information>..</information>``, ``<answer>``."""

from __future__ import annotations

from collections.abc import Sequence

from ..config import AgentConfig, split_template
from ..text import Codec
from .base import (
    Action,
    Framed,
    Kind,
    check_start,
    closed_tags,
    invalid,
    strip_span,
    tag_pattern,
)


class TagProtocol(Framed):
    """Actions are tagged text; a turn ends with the first closing tag of an action.

    It is an action if the last opening tag before that closing tag is its own and there is
    text between them; else the turn is invalid.
    """

    def __init__(self, tokenizer: object, config: AgentConfig):
        codec = Codec(tokenizer)
        frames = [
            tuple(map(codec.trusted, split_template(template)))
            for template in (config.observation, config.correction_frame)
        ]
        super().__init__(codec, config, *frames)
        self._speak({config.search_tag: "search", config.answer_tag: "answer"})

    def _speak(self, kinds: dict[str, Kind]) -> None:
        """The tags of actions and what each asks for."""
        self._kinds = kinds
        self._tag = tag_pattern(*kinds)
        self.stop = tuple(f"</{tag}>" for tag in kinds)

    def prompt(self, question: str) -> list[int]:
        """Ids of the prompt template with the question in it."""
        before, after = split_template(self.config.prompt)
        return check_start(self.codec.framed(before, question, after), self.config, question)

    def parse(self, ids: Sequence[int]) -> Action:
        """The action of one turn's generated ids, its kind from the first closing tag."""
        pieces = self.codec.pieces(ids)
        opening, closing = next(closed_tags(pieces.text, self._tag), (None, None))
        if closing is None:
            return invalid("no complete action", len(ids))
        keep = pieces.tokens(*closing.span())[1]
        if opening is None:
            return invalid(f"{closing[0]} without its opening tag", keep)
        if opening["tag"] != closing["tag"]:
            return invalid(f"{opening[0]} closed by {closing[0]}", keep)
        kind = self._kinds[closing["tag"]]
        start, end = strip_span(pieces.text, opening.end(), closing.start())
        if start == end:
            return invalid(f"empty {kind}", keep)
        return Action(
            kind,
            pieces.text[start:end],
            pieces.tokens(start, end),
            pieces.tokens(opening.start(), closing.end()),
            keep,
        )
