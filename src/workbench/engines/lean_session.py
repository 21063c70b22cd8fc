"""A session over the lean forward pass: rows that are alike so far are processed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .base import Generation, Sampling
from .lean_cache import Decoding, Held, Stems, continued, fill
from .rows import CROWDED, RowSession
from .turn import Turn

if TYPE_CHECKING:
    from .transformers_engine import TransformersEngine

_ROOM = 32  # tokens of a turn that are made room for at first


class LeanSession(RowSession):
    """Rows of one ``TransformersEngine`` whose model is fused.

    Rows that hold the same tokens when a turn begins share one stem: what is pending behind
    it goes through the model once, and decoding reads it once for all of them.  Rows that
    finish leave the decoding batch.
    """

    def __init__(
        self,
        engine: TransformersEngine,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seed: int,
    ):
        super().__init__(engine, prompts, sampling, seed)
        self._told = [list(prompt) for prompt in prompts]  # all tokens, pending or not
        self._held: dict[int, Held] = {}

    def append(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> None:
        """Queue tokens behind each row; processed with the next ``generate``."""
        super().append(rows, tokens)
        for row, more in zip(rows, tokens, strict=True):
            self._told[row].extend(more)

    def _forget(self, row: int) -> None:
        self._held.pop(row, None)
        self._told[row] = []

    def _turns(
        self, rows: list[int], limits: dict[int, int], stop: Sequence[str]
    ) -> dict[int, Generation]:
        stopper = self._engine.stopper(tuple(stop))
        alike = self._alike(rows)
        order = [row for group in alike for row in group]
        stem_of = [number for number, group in enumerate(alike) for _ in group]
        stems, logits = self._prefill([group[0] for group in alike])
        for group, length in zip(alike, stems.lengths, strict=True):
            for row in group:
                self._cached[row] = length
        room = min(_ROOM, max(limits[row] for row in rows))
        decoding = Decoding.start(self._engine.lean, stems, stem_of, room)
        turn = Turn(order, [limits[row] for row in order], self._sampling, logits.device)
        logits = logits[stem_of]
        while True:
            ids, logprobs = self._sample(turn, logits)
            turn.record(ids, logprobs, logits, stopper)
            if not turn.unfinished:
                break
            if turn.unfinished <= CROWDED * len(turn.rows):
                keep = [place for place, row in enumerate(turn.rows) if not turn.finish[row]]
                for place in set(range(len(turn.rows))).difference(keep):
                    self._held[turn.rows[place]] = decoding.held(place)
                decoding, keep = decoding.narrow(keep, CROWDED)
                ids = ids[turn.narrow(keep)]
            logits = self._step(turn, decoding, ids)
        for place, row in enumerate(turn.rows):
            self._held[row] = decoding.held(place)
        for row, tokens in turn.tokens.items():
            self._told[row] += tokens
        return self._end_turn(turn)

    def _step(self, turn: Turn, decoding: Decoding, ids: Tensor) -> Tensor:
        """One token per row of the decoding batch; finished rows in it are padding."""
        self._engine.tokens_processed += turn.unfinished
        self._engine.tokens_padded += len(turn.rows) - turn.unfinished
        return self._engine.logits(decoding.step(ids))

    def _alike(self, rows: list[int]) -> list[list[int]]:
        """Rows by what they hold, groups of similar length behind one another."""
        groups: dict[tuple, list[int]] = {}
        for row in rows:
            groups.setdefault((self._cached[row], *self._told[row]), []).append(row)
        # Groups of one last: a table of stems has a seat for every row of the largest group.
        return sorted(groups.values(), key=lambda g: (len(g) == 1, -len(self._told[g[0]])))

    def _prefill(self, rows: list[int]) -> tuple[Stems, Tensor]:
        """Stems of ``rows`` with their pending tokens; logits [n, V] behind them."""
        engine = self._engine
        pending, cached = [self._pending[row] for row in rows], [self._cached[row] for row in rows]
        stems = [len(self._told[row]) for row in rows]
        held = [self._held.get(row) for row in rows]
        block = continued(engine.lean.shape, held, cached, max(stems))
        hidden = []
        for start, end in engine.chunks([len(tokens) for tokens in pending]):
            part = slice(start, end)
            hidden.append(fill(engine.lean, block, start, pending[part], cached[part]))
        engine.tokens_processed += sum(len(tokens) for tokens in pending)
        return Stems(block, stems), engine.logits(torch.cat(hidden))
