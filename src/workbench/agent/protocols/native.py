"""Native tool protocol (S3, App. A.2): JSON calls through the tokenizer's own chat template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from json import JSONDecodeError, JSONDecoder
from json.decoder import scanstring

from ...errors import WorkbenchError
from ..config import AgentConfig, split_template
from ..text import Codec
from .base import (
    Action,
    Framed,
    Span,
    check_start,
    closed_tags,
    invalid,
    strip_span,
    tag_pattern,
)

TOOL = "search"
_SPACE = re.compile(r"[ \t\n\r]*")
# Stand-ins that no template treats specially, to find our text in what it renders.
_QUESTION, _FIRST, _SECOND, _RESULT = (f"qxz{n}zxq" for n in ("ask", "one", "two", "res"))


class NativeProtocol(Framed):
    """Calls are JSON in ``<tool_call>`` tags, the answer stands in ``<answer>`` tags.

    A turn ends with EOS.  Its first complete action counts: a call whose JSON names the
    search tool and has a ``query_list`` with text first in it, or an answer.  The first query
    is executed; the other queries and later calls are reported as ignored.  JSON that does
    not parse is no call: its text stays and the turn counts.

    Later turns only append: what the template renders between the end of an assistant turn
    and the next generation is taken once, as ids, and the history is never rendered again.
    """

    stop = ()

    def __init__(self, tokenizer: object, config: AgentConfig):
        codec = Codec(tokenizer)
        self._template = ChatTemplate(tokenizer, config)
        encode = codec.trusted
        super().__init__(
            codec,
            config,
            tuple(map(encode, self._template.reply("tool"))),
            tuple(map(encode, self._template.reply("user"))),
        )
        self._tag = tag_pattern(config.call_tag, config.answer_tag)

    def prompt(self, question: str) -> list[int]:
        """Ids of system message, tool schema and user message, ready for generation."""
        before, after = self._template.prompt()
        return check_start(self.codec.framed(before, question, after), self.config, question)

    def parse(self, ids: Sequence[int]) -> Action:
        """The first complete action of one turn's generated ids."""
        pieces = self.codec.pieces(ids)
        text, reason = pieces.text, "no call and no answer"
        blocks = [
            (opening, closing)
            for opening, closing in closed_tags(text, self._tag)
            if opening and opening["tag"] == closing["tag"]
        ]
        for place, (opening, closing) in enumerate(blocks):
            inside = opening.end(), closing.start()
            if closing["tag"] == self.config.answer_tag:
                kind, queries = "answer", []
                span = strip_span(text, *inside)
                problem = "" if span[0] < span[1] else "empty answer"
            else:
                kind = "search"
                span, queries, problem = _read_call(text, *inside)
            if problem:
                reason = problem
                continue
            said = queries[0].strip() if queries else text[slice(*span)]
            spans = pieces.tokens(*span), pieces.tokens(opening.start(), closing.end())
            ignored = queries[1:]
            if kind == "search":
                for later, end in blocks[place + 1 :]:
                    if end["tag"] == self.config.call_tag:
                        ignored += _queries(text[later.end() : end.start()])
            return Action(kind, said, *spans, len(ids), tuple(q for q in ignored if q.strip()))
        return invalid(reason, len(ids))


class ChatTemplate:
    """Text that a tokenizer's chat template puts around our messages.

    Raises
    ------
    WorkbenchError
        the tokenizer has no chat template or one without tools; or its renderings do not
        agree: the prompt is no prefix of the conversation that goes on, an assistant turn
        does not end with EOS, or a tool turn is rendered differently later on.
    """

    def __init__(self, tokenizer: object, config: AgentConfig):
        self._tokenizer, self._config = tokenizer, config
        before, after = split_template(config.prompt)
        self._opening = [{"role": "user", "content": f"{before}{_QUESTION}{after}"}]
        if config.system:
            self._opening.insert(0, {"role": "system", "content": config.system})
        schema = {
            "type": "object",
            "properties": {
                "query_list": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": config.tool_query,
                }
            },
            "required": ["query_list"],
        }
        function = {"name": TOOL, "description": config.tool, "parameters": schema}
        # An agent of one turn cannot search: its prompt does not offer it.
        self._tools = [{"type": "function", "function": function}] if config.turns > 1 else None
        if not tokenizer.chat_template:
            raise self._fault("has no chat template")
        self._prompt = self._render(self._opening)
        if self._tools and "query_list" not in self._prompt:
            raise self._fault("does not render tools")

    def prompt(self) -> tuple[str, str]:
        """The rendered prompt before and after the question."""
        return self._split(self._prompt, _QUESTION)

    def reply(self, role: str) -> tuple[str, str]:
        """What stands before and after a message of ``role`` that follows an assistant turn.

        It starts behind the turn's EOS and ends where the next assistant turn begins.
        """
        turns = [
            [{"role": "assistant", "content": turn}, {"role": role, "content": _RESULT}]
            for turn in (_FIRST, _SECOND)
        ]
        once = self._render([*self._opening, *turns[0]])
        twice = self._render([*self._opening, *turns[0], *turns[1]])
        if not once.startswith(self._prompt + _FIRST):
            raise self._fault("renders the prompt anew when the conversation goes on")
        reply = self._after_turn(once, _FIRST)
        if self._after_turn(twice, _SECOND) != reply:
            raise self._fault(f"renders a later {role} message differently from an earlier one")
        return self._split(reply, _RESULT)

    def _after_turn(self, rendered: str, turn: str) -> str:
        after = self._split(rendered, turn)[1]
        eos = self._tokenizer.eos_token
        if not eos or not after.startswith(eos):
            raise self._fault(f"does not end an assistant turn with the EOS token {eos!r}")
        return after[len(eos) :]

    def _split(self, text: str, mark: str) -> tuple[str, str]:
        if text.count(mark) != 1:
            raise self._fault(f"renders a message {text.count(mark)} times instead of once")
        before, _, after = text.partition(mark)
        return before, after

    def _render(self, messages: list[dict]) -> str:
        from jinja2 import TemplateError

        try:
            return self._tokenizer.apply_chat_template(
                messages, tools=self._tools, add_generation_prompt=True, tokenize=False
            )
        except TemplateError as error:
            raise self._fault(f"refuses our messages: {error}") from error

    def _fault(self, what: str) -> WorkbenchError:
        return WorkbenchError(
            f"the chat template {what}",
            where=str(self._tokenizer.name_or_path) or "tokenizer",
            fix="use the tag protocol, or a tokenizer whose template can grow turn by turn",
        )


def _read_call(text: str, start: int, end: int) -> tuple[Span, list[str], str]:
    """Character span of the first query as written, all queries, and what is wrong ("" if ok)."""
    nothing = (start, start), []
    try:
        call = _members(text, start, end)
        if "name" not in call or call["name"][0] != TOOL:
            return *nothing, f"a call of another tool than {TOOL}"
        arguments = _members(text, *call.get("arguments", (None, start, start))[1:])
        queries, first, _ = arguments.get("query_list", (None, start, start))
    except JSONDecodeError as error:
        return *nothing, f"call is not JSON: {error.msg}"
    if not isinstance(queries, list) or not all(isinstance(q, str) for q in queries):
        return *nothing, "call without a query_list of strings"
    if not queries or not queries[0].strip():
        return *nothing, "empty query"
    quote = text.index('"', first)
    inside, past = quote + 1, scanstring(text, quote + 1)[1] - 1
    raw = text[inside:past]
    inside += len(raw) - len(raw.lstrip())
    return (inside, inside + len(raw.strip())), queries, ""


def _queries(call: str) -> list[str]:
    """The queries of a call that is not executed; its whole text when it has none."""
    _, queries, problem = _read_call(call, 0, len(call))
    return [call.strip()] if problem else queries


def _members(text: str, start: int, end: int) -> dict[str, tuple[object, int, int]]:
    """Members of the JSON object that fills ``text[start:end]``: value and its place.

    Raises JSONDecodeError for anything else, repeated keys included.
    """
    text, members, decoder = text[:end], {}, JSONDecoder()
    at = _skip(text, start, "{")
    if _SPACE.sub("", text[at:]) == "}":
        return members
    while True:
        at = _skip(text, at, '"')
        key, at = scanstring(text, at)
        at = _space(text, _skip(text, at, ":"))
        try:
            value, past = decoder.raw_decode(text, at)
        except RecursionError:
            raise JSONDecodeError("nested too deeply", text, at) from None
        if key in members:
            raise JSONDecodeError(f"repeated key {key!r}", text, at)
        members[key] = (value, at, past)
        at = _space(text, past)
        if text[at : at + 1] == "}":
            if _space(text, at + 1) != end:
                raise JSONDecodeError("extra text behind the object", text, at + 1)
            return members
        at = _skip(text, at, ",")


def _skip(text: str, at: int, expected: str) -> int:
    at = _space(text, at)
    if text[at : at + 1] != expected:
        raise JSONDecodeError(f"{expected} expected", text, at)
    return at + 1


def _space(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()
