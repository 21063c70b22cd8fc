"""Settings of the agent: protocol, texts of the environment, budgets."""

from __future__ import annotations

import string
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..config import Settings

Count = Annotated[int, Field(gt=0)]


class AgentConfig(Settings):
    """How a rollout is prompted, what the environment says, and when it must end.

    ``protocol`` "tag" writes ``<search>q</search>`` and ``<answer>a</answer>`` (S1);
    "native" makes JSON tool calls through the tokenizer's chat template (S3, App. A.2).

    Texts
        ``prompt`` holds ``{question}``: the whole prompt (tag) or the user message (native,
        after ``system`` unless that is empty).  ``observation`` frames ``{passages}`` (tag;
        the chat template frames the native tool response).  ``passage`` writes one passage
        from ``{rank}`` (from 1), ``{title}`` and ``{text}``; ``separator`` stands between
        passages; ``no_results`` replaces them when a search found none.  ``correction`` is
        said after an invalid action; empty: an invalid action ends the rollout.
        ``correction_frame`` frames ``{correction}`` (tag).  ``ignored`` names ``{queries}``
        that were in a call but not executed (native).  ``tool`` and ``tool_query`` describe
        the search tool (native).

    Budgets
        ``max_rounds`` assistant turns; the last may not search, since nothing could read the
        result.  ``answer_round`` adds one more turn for the answer, so that all
        ``max_rounds`` may search.  ``passages`` per search.  In tokens: ``max_start_tokens``
        of the prompt; ``max_prompt_tokens`` of the context that a turn starts from;
        ``max_response_tokens`` of a turn; ``max_observation_tokens`` of an observation, its
        frame included; ``max_total_tokens`` of the trajectory.
    """

    protocol: Literal["tag", "native"] = "tag"
    prompt: str = "Question: {question} <think>"
    system: str = ""
    search_tag: str = Field(default="search", min_length=1)
    answer_tag: str = Field(default="answer", min_length=1)
    call_tag: str = Field(default="tool_call", min_length=1)
    observation: str = "<information> {passages} </information>"
    passage: str = "{title} : {text}"
    separator: str = "\n"
    no_results: str = "No results."
    correction: str = "This was no valid action. Search, or give the answer."
    correction_frame: str = "{correction}"
    ignored: str = "Only the first query of a call is executed. Ignored: {queries}"
    tool: str = "Search a collection of passages."
    tool_query: str = "Queries; the first one is executed."
    max_rounds: Count = 4
    answer_round: bool = False
    passages: Count = 3
    max_start_tokens: Count = 2048
    max_prompt_tokens: Count = 4096
    max_response_tokens: Count = 500
    max_observation_tokens: Count = 500
    max_total_tokens: Count = 4596

    @property
    def turns(self) -> int:
        """Assistant turns of a rollout at most."""
        return self.max_rounds + self.answer_round

    @model_validator(mode="after")
    def _check(self) -> AgentConfig:
        for name, fields in (
            ("prompt", {"question"}),
            ("observation", {"passages"}),
            ("correction_frame", {"correction"}),
            ("ignored", {"queries"}),
        ):
            if placeholders(getattr(self, name)) != sorted(fields):
                raise ValueError(f"{name} must hold {fields} exactly once and no other field")
        if not set(placeholders(self.passage)) <= {"rank", "title", "text"}:
            raise ValueError("passage may hold {rank}, {title} and {text} only")
        if "text" not in placeholders(self.passage):
            raise ValueError("passage must hold {text}")
        tags = [self.search_tag, self.answer_tag, self.call_tag]
        if len(set(tags)) < 3:
            raise ValueError(f"search_tag, answer_tag and call_tag must differ, got {tags}")
        if not self.max_start_tokens <= self.max_prompt_tokens <= self.max_total_tokens:
            raise ValueError("limits must rise: start <= prompt <= total tokens")
        return self


def placeholders(template: str) -> list[str]:
    """Names in braces in ``template``, sorted, repeated as often as they occur.

    Raises ValueError for a template that ``str.format`` would not take.
    """
    parsed = list(string.Formatter().parse(template))
    for _, name, form, conversion in parsed:
        if name is not None and (not name.isidentifier() or form or conversion):
            raise ValueError(f"only plain {{name}} fields are allowed, got {{{name}}}")
    return sorted(name for _, name, _, _ in parsed if name is not None)


def split_template(template: str) -> tuple[str, str]:
    """The text before and after the only placeholder of ``template`` (``{{`` read as ``{``)."""
    before, after, seen = "", "", False
    for literal, name, _, _ in string.Formatter().parse(template):
        before, after = (before, after + literal) if seen else (before + literal, after)
        seen = seen or name is not None
    return before, after
