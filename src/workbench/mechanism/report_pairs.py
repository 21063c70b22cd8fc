"""The two contexts of App. I.2 as text, for any causal LM: question, documents, report.

The report is encoded by itself, so its ids are the same behind both contexts.  The question is
never cut; of the documents the trailing tokens that fit the budget are kept, in both contexts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field, model_validator

from ..agent.config import placeholders
from ..agent.text import Codec
from ..config import Settings
from ..engines.base import Engine
from ..reports.record import Rollout
from .removal import NO_DOCUMENTS, NOTHING, TOO_LONG, Pair


class ContextConfig(Settings):
    """Templates of the context, trusted text but for what is put in.

    budget : tokens of documents that a context may have (S2: a trailing context of 24K).
    """

    question: str = "Question: {question}\n\n"
    document: str = "Document {number}:\n{text}\n\n"
    report: str = "Report:\n"
    placeholder: str = "[document removed]"
    budget: int = Field(default=24_000, ge=1)

    @model_validator(mode="after")
    def _check(self) -> ContextConfig:
        if placeholders(self.question) != ["question"]:
            raise ValueError("question must hold {question} exactly once")
        if sorted(placeholders(self.document)) not in (["text"], ["number", "text"]):
            raise ValueError("document must hold {text} once and may hold {number}")
        return self


def report_pairs(
    rollouts: Sequence[Rollout], engine: Engine, config: ContextConfig | None = None
) -> list[Pair]:
    """The two contexts of each rollout's prose in the ids of ``engine``'s tokenizer.

    A rollout without prose, without document text, or with a question and a report that leave
    the engine no room for documents is kept with its reason.
    """
    config = config or ContextConfig()
    codec = Codec(engine.tokenizer)
    return [_pair(rollout, codec, engine, config) for rollout in rollouts]


def _pair(rollout: Rollout, codec: Codec, engine: Engine, config: ContextConfig) -> Pair:
    texts = [d.text for d in rollout.documents if d.text.strip()]
    if not texts:
        return Pair(rollout, NO_DOCUMENTS)
    if not rollout.prose.strip():
        return Pair(rollout, NOTHING)
    bos = engine.tokenizer.bos_token_id
    head = [] if bos is None else [bos]
    head += _filled(codec, config.question, question=rollout.question)
    tail, report = codec.trusted(config.report), codec.plain(rollout.prose)
    room = min(config.budget, engine.max_length - len(head) - len(tail) - len(report))
    if room < 1:
        return Pair(rollout, TOO_LONG)
    contexts, masks, cut = [], [], 0
    for shown in (texts, [config.placeholder] * len(texts)):
        documents: list[int] = []
        for number, text in enumerate(shown, start=1):
            documents += _filled(codec, config.document, number=str(number), text=text)
        cut = max(cut, len(documents) - room)
        before = [*head, *documents[-room:], *tail]
        contexts.append((*before, *report))
        masks.append(np.arange(len(contexts[-1])) >= len(before))
    return Pair(rollout, "", *contexts, *masks, max(cut, 0))


def _filled(codec: Codec, template: str, **values: str) -> list[int]:
    """Ids of a template, its own text trusted and what is put in plain."""
    name = next(n for n in ("question", "text") if n in values)
    before, after = template.split("{" + name + "}")
    given = {k: v for k, v in values.items() if k != name}
    before, after = (part.format(**given) for part in (before, after))
    return codec.framed(before, values[name], after)
