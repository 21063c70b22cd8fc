"""A KV cache of ragged rows that keep their places between turns.

transformers' caches append the same number of positions to every row.  Rows of a rollout
batch differ in length and come and go, so this cache writes each new position where its row
ends and shows the model only the rows and positions in use.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache

_STEP = 32  # positions: capacity is a multiple of it


class RowCache(Cache):
    """Keys and values [slots, heads, positions, head size] of every layer.

    A *slot* is a place along the first dimension.  ``place`` says where the next block goes;
    during the model's forward pass ``update`` writes it there and returns the slots of the
    block up to its last position.  Stale values behind a row's end are finite and must be
    masked; they are overwritten as the row grows.
    """

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.slots = 0
        self.capacity = 0
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self._block = (0, 0, 0)
        self._positions = self._index = torch.empty(0, dtype=torch.long)

    def reserve(self, slots: int, positions: int, used: int) -> None:
        """Make room for ``slots`` rows of ``positions``; ``used`` positions survive.

        Buffers follow what is live: they are made anew when too small, and when fewer than
        half of the slots are wanted any more.
        """
        if positions <= self.capacity and slots <= self.slots <= 2 * slots:
            return
        if positions > self.capacity:
            positions = max(positions, self.capacity * 3 // 2)
        self.capacity = -(-max(positions, self.capacity) // _STEP) * _STEP
        self.slots = slots
        for buffers in (self._keys, self._values):
            for layer, old in enumerate(buffers):
                new = old.new_zeros(slots, old.shape[1], self.capacity, old.shape[3])
                keep = min(slots, old.shape[0])
                new[:keep, :, :used] = old[:keep, :, :used]
                buffers[layer] = new

    def place(self, first: int, lengths: Tensor, width: int) -> Tensor:
        """Aim the next block at the slots from ``first`` on, each behind its ``lengths``.

        ``lengths`` int64 [n].  Returns positions int64 [n, width].
        """
        positions = lengths[:, None] + torch.arange(width, device=lengths.device)
        self._positions = positions
        self._index = None
        self._block = (first, len(lengths), 0)
        return positions

    def show(self, positions: int) -> None:
        """How many positions the model sees of the block's slots."""
        first, count, _ = self._block
        self._block = (first, count, positions)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args, **kwargs
    ) -> tuple[Tensor, Tensor]:
        """Write a block's keys and values [n, heads, width, size]; return all that is shown."""
        if layer_idx == len(self._keys):
            shape = (self.slots, key_states.shape[1], self.capacity, key_states.shape[3])
            self._keys.append(key_states.new_zeros(shape))
            self._values.append(value_states.new_zeros((*shape[:3], value_states.shape[3])))
        first, count, shown = self._block
        if self._index is None:
            heads = key_states.shape[1]
            slots = torch.arange(first, first + count, device=key_states.device)
            rows = slots[:, None] * heads + torch.arange(heads, device=key_states.device)
            self._index = (rows[..., None] * self.capacity + self._positions[:, None]).flatten()
        seen = []
        for buffer, new in (
            (self._keys[layer_idx], key_states),
            (self._values[layer_idx], value_states),
        ):
            size = new.shape[-1]
            buffer.view(-1, size).index_copy_(0, self._index, new.reshape(-1, size))
            seen.append(buffer[first : first + count, :, :shown])
        return seen[0], seen[1]

    def copy(self, sources: Sequence[int], targets: Sequence[int], used: int) -> None:
        """Copy ``used`` positions of the source slots over the target slots."""
        if not len(sources):
            return
        device = self._keys[0].device
        source, target = (torch.as_tensor(s, device=device) for s in (sources, targets))
        for buffer in (*self._keys, *self._values):
            buffer[target, :, :used] = buffer[source, :, :used]

    def swap(self, left: Sequence[int], right: Sequence[int], used: int) -> None:
        """Exchange ``used`` positions of slots pairwise."""
        self.copy([*left, *right], [*right, *left], used)
