"""The engine interface: token ids in, token ids out, log-probs always.

An engine owns a policy for inference.  A *session* is a batch of growing sequences: the
environment appends observation tokens, the engine appends what it samples, and each token
is processed once.  ``TransformersEngine`` keeps a KV cache; a vLLM engine meets the same
interface through prefix caching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from pydantic import Field

from ..config import Settings

Choice = Literal["auto", "float32", "bfloat16"]  # see ``workbench.engines.dtype``


class Sampling(Settings):
    """How tokens are drawn. ``temperature`` 0 is greedy.

    A token's log-prob is that of the distribution it was drawn from: with temperature, and
    within the nucleus when ``top_p`` < 1 (the model's own when greedy).  The ``top_k_logprobs``
    likeliest tokens come with the model's own log-probs, so none of them is -inf.
    """

    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k_logprobs: int = Field(default=0, ge=0)


@dataclass(slots=True)
class Generation:
    """What one row generated in one call.

    tokens int32 [n]; logprobs float32 [n]; topk_ids int32 [n, k]; topk_logprobs float32
    [n, k]; ``finish`` is "stop" (a stop string completed; its tokens are included), "eos"
    (the EOS token is included) or "length".
    """

    tokens: np.ndarray
    logprobs: np.ndarray
    topk_ids: np.ndarray
    topk_logprobs: np.ndarray
    finish: str


class Session(Protocol):
    """A batch of sequences under construction; rows are numbered from 0 and stay valid."""

    def append(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> None:
        """Queue tokens (an observation) behind each row; processed with the next generate."""

    def generate(
        self, rows: Sequence[int], max_new_tokens: Sequence[int], stop: Sequence[str]
    ) -> list[Generation]:
        """Sample each row until a stop string, EOS or its own token limit."""

    def drop(self, rows: Sequence[int]) -> None:
        """Forget finished rows and free their cache."""


class Engine(Protocol):
    """A policy ready for inference."""

    tokenizer: object
    max_rows: int  # rows that one session may have
    max_length: int  # tokens that a row may have
    tokens_processed: int  # forward-pass tokens so far, padding excluded

    def open(self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int) -> Session:
        """Start a session with one row per prompt; equal prompts may share their prefill."""

    def score(
        self, sequences: Sequence[Sequence[int]], masks: Sequence[np.ndarray], top_k: int = 0
    ) -> list[Generation]:
        """Teacher-forced log-probs of the tokens where ``masks`` is True, one pass, no grad."""

    def refresh(self, model: object | None = None) -> None:
        """Run the weights of ``model`` (default: the model it has) as they are now.

        To be called whenever weights have changed or adapters were switched, and before the
        next ``open`` or ``score``; until then the engine may run the old weights or the new.
        A session that was opened before is not continued.  ``model`` has the shape of the one
        that the engine was built with.
        """
