"""What voting knows of a rollout, whoever made it: answer, prose, documents, log-probs.

A trajectory of this workbench, a rollout of an endpoint and a released one all become this
record (S2 §2); votes and the analyses of copy inflation read nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

OK = "ok"
NO_ANSWER = "no_answer"
API_ERROR = "api_error"


class Phase(IntEnum):
    """Where a generated token stands.  The answer turn's hidden reasoning is REASONING."""

    REASONING = 0
    CALL = 1
    ANSWER = 2


@dataclass(slots=True)
class TokenStream:
    """The generated tokens of a rollout in order, observations left out.

    surfaces : n strings, each token as its tokenizer spells it; a leading ``Ġ``, ``▁``, space
        or ``##`` says how it joins the token before.
    logprobs : float32 [n], nats; NaN where it is not known.
    topk : float32 [n, k], log-probs of the likeliest candidates, NaN for a missing one.
    phases : uint8 [n] of ``Phase`` codes.
    """

    surfaces: list[str]
    logprobs: np.ndarray
    topk: np.ndarray
    phases: np.ndarray


@dataclass(frozen=True, slots=True)
class Document:
    """What one tool call returned (S2 §4: one document per search or visit call).

    text : as returned, before any cut to the context.
    ids : the corpus documents it shows, in order; empty when they are not known.
    tool : "search", "get_doc" or "visit".
    """

    text: str
    ids: tuple[str, ...] = ()
    tool: str = "search"


@dataclass(slots=True)
class Rollout:
    """One of N parallel rollouts of a question.

    Attributes
    ----------
    question_id, rollout_id : strings; the pair names the rollout.
    question, gold : the question and its accepted answers; empty when they are not known.
    gold_documents : ids of the documents that support the answer, empty when not known.
    answer : the predicted answer; None when there is none, and then it abstains from votes.
    prose : the answer turn's text without hidden reasoning (P of S2 §2).
    documents : the retrieval log, in order.
    tokens : None when no log-probs were kept.
    confidence : verbalised, in [0, 100]; None when it was not asked for or not understood.
    correct : the judge's verdict, None when nobody judged.
    status : "ok", "no_answer", or what went wrong.
    forced : the final answer was forced by a budget.
    cell : names the run it belongs to, such as "FRAMES / gpt-oss-120b".
    """

    question_id: str
    rollout_id: str
    question: str = ""
    gold: tuple[str, ...] = ()
    gold_documents: tuple[str, ...] = ()
    answer: str | None = None
    prose: str = ""
    documents: list[Document] = field(default_factory=list)
    tokens: TokenStream | None = None
    confidence: float | None = None
    correct: bool | None = None
    status: str = OK
    forced: bool = False
    cell: str = ""
