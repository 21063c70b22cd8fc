"""Trajectory: the record of one rollout, which every later room reads and none changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np


class Segment(IntEnum):
    """What a token is. Generated tokens are REASONING, CALL, QUERY and ANSWER."""

    PROMPT = 0
    REASONING = 1
    CALL = 2
    QUERY = 3
    OBSERVATION = 4
    ANSWER = 5
    PADDING = 6


GENERATED = (Segment.REASONING, Segment.CALL, Segment.QUERY, Segment.ANSWER)


@dataclass(slots=True)
class SearchRecord:
    """One executed tool call. Spans are half-open token ranges of the trajectory.

    ``tool`` is "search", or "get_doc" for a page that the report agent opened: ``query`` is then
    the page's id as asked for, and the page is the only text, if there is such a page.

    ``query_span`` holds the executed query's tokens (Q in S3), ``payload_span`` the full
    call with its tags or JSON (L is its length), ``observation_span`` what came back.
    ``ignored_queries`` were in the same call but not executed; ``observation_cut`` says that
    the passages did not fit and the policy saw only their beginning.
    """

    query: str
    turn: int
    query_span: tuple[int, int]
    payload_span: tuple[int, int]
    observation_span: tuple[int, int]
    chunk_ids: list[str]
    scores: list[float]
    titles: list[str]
    texts: list[str]
    ignored_queries: list[str] = field(default_factory=list)
    observation_cut: bool = False
    tool: str = "search"


@dataclass(slots=True)
class Trajectory:
    """One rollout, token by token.

    Attributes
    ----------
    tokens : int32 [T]; exactly what was fed and sampled, never re-tokenised text.
    segments : uint8 [T] of ``Segment`` codes.
    logprobs : float32 [T]; log-probability under the sampling distribution's model (before
        temperature and top-p when those are 1.0, else after) of each generated token, NaN on
        the others.
    topk_ids, topk_logprobs : int32 / float32 [T, k]; the k likeliest tokens at each generated
        position, -1 / NaN elsewhere. k may be 0.
    answer : parsed answer text, or None.
    answer_span : token range of the answer inside its tags, or None.
    commit_index : index of the last answer token (the answer-commit token), -1 without one.
    valid : passed the output parser; ``invalid_reason`` says why not ("" when valid).
    truncated : the budget ended it.
    turns : assistant turns; ``invalid_actions`` counts actions met with a correction.
    """

    item_id: str
    group: str
    sample: int
    seed: int
    tokens: np.ndarray
    segments: np.ndarray
    logprobs: np.ndarray
    topk_ids: np.ndarray
    topk_logprobs: np.ndarray
    searches: list[SearchRecord]
    answer: str | None
    answer_span: tuple[int, int] | None
    commit_index: int
    valid: bool
    invalid_reason: str
    truncated: bool
    turns: int
    invalid_actions: int
    seconds: float = 0.0

    @property
    def generated(self) -> np.ndarray:
        """bool [T]; True on policy-generated tokens (the loss mask M)."""
        return np.isin(self.segments, GENERATED)

    @property
    def prompt_length(self) -> int:
        """Number of leading prompt tokens."""
        return int(np.argmax(self.segments != Segment.PROMPT)) if len(self.segments) else 0
