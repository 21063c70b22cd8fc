"""What sessions have in common: rows, their pending tokens, limits, draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..errors import WorkbenchError
from ..seeding import torch_generator
from .base import Generation, Sampling
from .sampling import draw
from .turn import Turn

if TYPE_CHECKING:
    from .transformers_engine import TransformersEngine

_DRAWS = 256  # uniform numbers drawn per row at a time
CROWDED = 0.75  # share of unfinished rows below which a decoding batch is made smaller


class RowSession(ABC):
    """Rows of one ``TransformersEngine``; subclasses keep the cache.

    A row has tokens in the cache and *pending* tokens: its prompt, what was appended, and the
    last token it sampled.  A row's k-th draw depends on the session's seed, its number and k
    alone, not on the rows beside it.
    """

    def __init__(
        self,
        engine: TransformersEngine,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seed: int,
    ):
        self._engine, self._sampling = engine, sampling
        self._pending = [list(prompt) for prompt in prompts]
        self._cached = [0] * len(prompts)
        self._drawn = [0] * len(prompts)
        self._live = set(range(len(prompts)))
        self._seed = seed
        self._uniform = torch.empty(len(prompts), 0, dtype=torch.float64)

    def append(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> None:
        """Queue tokens behind each row; processed with the next ``generate``."""
        self._check(rows)
        for row, more in zip(rows, tokens, strict=True):
            self._pending[row].extend(more)

    def drop(self, rows: Sequence[int]) -> None:
        """Forget rows; their slots are free for others."""
        self._check(rows)
        for row in rows:
            self._live.discard(row)
            self._forget(row)
            self._pending[row] = []

    @torch.inference_mode()
    def generate(
        self, rows: Sequence[int], max_new_tokens: Sequence[int], stop: Sequence[str]
    ) -> list[Generation]:
        """Sample each row until a stop string, EOS or its own token limit.

        Raises
        ------
        WorkbenchError
            a row is unknown, dropped, named twice or has nothing to continue; a row may grow
            beyond the engine's ``max_length``; the model's logits are NaN or infinite.
        """
        self._check(rows)
        limits = dict(zip(rows, max_new_tokens, strict=True))
        if len(limits) < len(rows):
            raise WorkbenchError("a row is named twice", where="generate")
        todo = [row for row in rows if limits[row] > 0]
        for row in todo:
            self._check_length(row, limits[row])
        with self._engine.evaluating():
            turns = self._turns(todo, limits, stop) if todo else {}
        nothing = np.empty(0, np.float32)
        empty = (np.empty((0, self._sampling.top_k_logprobs), t) for t in (np.int32, np.float32))
        none = Generation(nothing.astype(np.int32), nothing, *empty, "length")
        return [turns.get(row, none) for row in rows]

    @abstractmethod
    def _turns(
        self, rows: list[int], limits: dict[int, int], stop: Sequence[str]
    ) -> dict[int, Generation]:
        """Sample one turn of every row, each at least one token, and end it by ``_end_turn``."""

    @abstractmethod
    def _forget(self, row: int) -> None:
        """Free what the cache holds of a row."""

    def _end_turn(self, turn: Turn) -> dict[int, Generation]:
        """Account for the tokens of a finished turn, the last of each row now pending."""
        for row, tokens in turn.tokens.items():
            self._pending[row] = [tokens[-1]]
            self._cached[row] += len(tokens) - 1
            self._drawn[row] += len(tokens)
        return turn.generations()

    def _sample(self, turn: Turn, logits: Tensor) -> tuple[Tensor, Tensor]:
        """One token and its log-prob for every row of the decoding batch."""
        sampling = self._sampling
        uniform = self._draws(turn) if sampling.temperature else None
        return draw(logits, sampling.temperature, sampling.top_p, uniform)

    def _draws(self, turn: Turn) -> Tensor:
        places = [self._drawn[row] + turn.steps for row in turn.rows]
        while max(places) >= (width := self._uniform.shape[1]):
            # A generator per block: a row's draws do not depend on how many rows there are.
            generator = torch_generator("session", self._seed, width // _DRAWS)
            size = len(self._pending), _DRAWS
            more = torch.rand(size, dtype=torch.float64, generator=generator)
            self._uniform = torch.cat([self._uniform, more], 1)
        return self._uniform[turn.rows, places].to(turn.device)

    def _check(self, rows: Sequence[int]) -> None:
        if unknown := sorted(set(rows) - self._live):
            raise WorkbenchError(f"rows {unknown} are unknown or dropped", where="session")

    def _check_length(self, row: int, limit: int) -> None:
        tokens = self._cached[row] + len(self._pending[row])
        if not self._pending[row]:
            raise WorkbenchError(f"row {row} has no token to continue", where="generate")
        if tokens + limit > self._engine.max_length:
            raise WorkbenchError(
                f"row {row} has {tokens} tokens and may grow by {limit}, but the engine takes "
                f"{self._engine.max_length}",
                where="generate",
                fix="lower the token limits or raise the engine's max_length",
            )
