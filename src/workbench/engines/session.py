"""A batch of growing sequences over one KV cache: every token goes through the model once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..errors import WorkbenchError
from ..seeding import torch_generator
from .base import Generation, Sampling
from .cache import RowCache
from .sampling import draw
from .turn import Turn

if TYPE_CHECKING:
    from .transformers_engine import TransformersEngine

_AHEAD = 32  # positions reserved beyond what a turn starts with
_DRAWS = 256  # uniform numbers drawn per row at a time
_CROWDED = 0.75  # share of unfinished rows below which a decoding batch is compacted


class TransformersSession:
    """Rows of one ``TransformersEngine``.

    A row has tokens in the cache and *pending* tokens: its prompt, what was appended, and the
    last token it sampled.  ``generate`` sends the pending tokens through the model as one
    block and goes on token by token; rows that finish leave the decoding batch, and dropped
    rows leave the cache.  Equal prompts that start together are sent through once.

    A row's k-th draw depends on the session's seed, its number and k alone, not on the rows
    beside it.
    """

    def __init__(
        self,
        engine: TransformersEngine,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seed: int,
    ):
        self._engine, self._sampling = engine, sampling
        self._cache = RowCache()
        self._pending = [list(prompt) for prompt in prompts]
        self._cached = [0] * len(prompts)
        self._drawn = [0] * len(prompts)
        self._slot: dict[int, int] = {}  # of live rows that have something in the cache
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
            self._slot.pop(row, None)
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
            if turn.unfinished <= _CROWDED * len(turn.rows):
                keep = self._compact(turn)
                ids, lengths = ids[keep], lengths[keep]
            logits = self._step(turn, ids, lengths)
            lengths += 1  # of finished rows too: what is written behind their end stays unseen
        for row in rows:
            tokens = turn.tokens[row]
            self._pending[row] = [tokens[-1]]
            self._cached[row] += len(tokens) - 1
            self._drawn[row] += len(tokens)
        return turn.generations()

    def _sample(self, turn: Turn, logits: Tensor) -> tuple[Tensor, Tensor]:
        """One token and its log-prob for every row of the decoding batch."""
        sampling = self._sampling
        uniform = self._draws(turn) if sampling.temperature else None
        return draw(logits, sampling.temperature, sampling.top_p, uniform)

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
