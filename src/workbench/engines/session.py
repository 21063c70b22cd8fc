"""A batch of growing sequences over one KV cache: every token goes through the model once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .base import Generation, Sampling
from .cache import RowCache
from .rows import CROWDED, RowSession
from .turn import Turn

if TYPE_CHECKING:
    from .transformers_engine import TransformersEngine

_AHEAD = 32  # positions reserved beyond what a turn starts with


class TransformersSession(RowSession):
    """Rows of one ``TransformersEngine``.

    ``generate`` sends the pending tokens through the model as one
    block and goes on token by token; rows that finish leave the decoding batch, and dropped
    rows leave the cache.  Equal prompts that start together are sent through once.
    """

    def __init__(
        self,
        engine: TransformersEngine,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seed: int,
    ):
        super().__init__(engine, prompts, sampling, seed)
        self._cache = RowCache()
        self._slot: dict[int, int] = {}  # of live rows that have something in the cache

    def _forget(self, row: int) -> None:
        self._slot.pop(row, None)

    def _turns(
        self, rows: list[int], limits: dict[int, int], stop: Sequence[str]
    ) -> dict[int, Generation]:
        stopper = self._engine.stopper(tuple(stop))
        order = self._arrange(rows)
        logits = self._prefill(order, max(limits[row] for row in rows))
        turn = Turn(order, [limits[row] for row in order], self._sampling, logits.device)
        lengths = torch.tensor([self._cached[row] for row in order], device=logits.device)
        while True:
            ids, logprobs = self._sample(turn, logits)
            turn.record(ids, logprobs, logits, stopper)
            if not turn.unfinished:
                break
            if turn.unfinished <= CROWDED * len(turn.rows):
                keep = self._compact(turn)
                ids, lengths = ids[keep], lengths[keep]
            logits = self._step(turn, ids, lengths)
            lengths += 1  # of finished rows too: what is written behind their end stays unseen
        return self._end_turn(turn)

    def _step(self, turn: Turn, ids: Tensor, lengths: Tensor) -> Tensor:
        """One token per row of the decoding batch; finished rows in it are padding."""
        step = turn.steps  # tokens sampled so far by the unfinished rows
        longest = max(self._cached[row] for row in turn.rows) + step
        self._cache.reserve(self._cache.slots, longest, used=longest - 1)
        logits = self._engine.block(self._cache, 0, ids[:, None], lengths, None, shown=longest)
        self._engine.tokens_processed += turn.unfinished
        self._engine.tokens_padded += len(turn.rows) - turn.unfinished
        return logits

    def _prefill(self, order: list[int], limit: int) -> Tensor:
        """Send the pending tokens of ``order`` through the model; logits [n, V] behind them."""
        pending = [self._pending[row] for row in order]
        sources = list(range(len(order)))
        if not any(self._cached[row] for row in order):
            first: dict[tuple[int, ...], int] = {}
            sources = [first.setdefault(tuple(tokens), len(first)) for tokens in pending]
            pending = [list(tokens) for tokens in first]
        used = max(self._cached[row] for row in self._live)
        grown = max(self._cached[row] for row in order) + max(map(len, pending))
        slots = max(len(order), max(self._slot.values(), default=0) + 1)
        self._cache.reserve(slots, grown + min(limit, _AHEAD), used)
        logits = []
        for start, end in self._engine.chunks([len(tokens) for tokens in pending]):
            counts = [len(tokens) for tokens in pending[start:end]]
            width = max(counts)
            ids = torch.zeros(end - start, width, dtype=torch.long)
            for place, tokens in enumerate(pending[start:end]):
                ids[place, : len(tokens)] = torch.tensor(tokens)
            cached = [self._cached[row] for row in order[start:end]]
            shown = max(a + b for a, b in zip(cached, counts, strict=True))
            logits.append(
                self._engine.block(
                    self._cache, start, ids, torch.tensor(cached), counts, shown=shown
                )
            )
            self._engine.tokens_processed += sum(counts)
            self._engine.tokens_padded += width * len(counts) - sum(counts)
        for row in order:
            self._cached[row] += len(self._pending[row])
        result = torch.cat(logits)
        if len(pending) < len(order):
            self._cache.copy(sources, range(len(order)), used=grown)
            result = result[torch.tensor(sources, device=result.device)]
        return result

    def _arrange(self, rows: list[int]) -> list[int]:
        """Bring ``rows`` into the first slots; returns them in slot order."""
        wanted, count = set(rows), len(rows)
        others = [row for row in self._slot if row not in wanted]
        places: dict[int, int] = {}
        for group, span in ((rows, range(count)), (others, range(count, count + len(others)))):
            stay = {row: self._slot[row] for row in group if self._slot.get(row, -1) in span}
            free = iter(sorted(set(span).difference(stay.values())))
            places |= stay | {row: next(free) for row in group if row not in stay}
        moved = [row for row in places if row in self._slot and self._slot[row] != places[row]]
        if moved:
            total = max(*places.values(), *self._slot.values()) + 1
            used = max(self._cached[row] for row in self._live)
            self._cache.reserve(total, used, used)
            self._cache.copy(
                [self._slot[row] for row in moved], [places[row] for row in moved], used
            )
        self._slot = places
        return sorted(rows, key=places.__getitem__)

    def _compact(self, turn: Turn) -> Tensor:
        """Move unfinished rows to the front; returns which places of the batch remain."""
        keep = turn.unfinished
        holes = [i for i in range(keep) if turn.finish[turn.rows[i]]]
        movers = [i for i in range(keep, len(turn.rows)) if not turn.finish[turn.rows[i]]]
        used = max(self._cached[row] for row in turn.rows) + turn.steps
        self._cache.swap(holes, movers, min(used, self._cache.capacity))
        order = list(range(len(turn.rows)))
        for hole, mover in zip(holes, movers, strict=True):
            order[hole], order[mover] = mover, hole
        for place, index in enumerate(order):
            self._slot[turn.rows[index]] = place
        return turn.narrow(order[:keep])
