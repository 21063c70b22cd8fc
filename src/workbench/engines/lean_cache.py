"""Keys and values for the lean session: histories that rows share, and turns of their own.

The rollouts of a question start alike and many stay alike until their second turn.  A *stem*
holds what some rows had in common when they began a turn, once; what each row adds during the
turn stands in a ``Block``.  A decoding step reads a stem once for all its rows, and reading is
most of what attention costs in decoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from .fused import Shape
from .lean import Attend, LeanDecoder


@dataclass(slots=True, eq=False)
class Block:
    """Keys and values by layer, float32 [rows, kv heads, positions, head]."""

    keys: list[Tensor]
    values: list[Tensor]

    @classmethod
    def new(cls, shape: Shape, rows: int, positions: int) -> Block:
        """Zeros: what is masked must still be finite."""
        size = rows, shape.kv_heads, positions, shape.head
        return cls(*([torch.zeros(size) for _ in range(shape.layers)] for _ in range(2)))

    def tensors(self) -> list[Tensor]:
        return [*self.keys, *self.values]

    def take(self, rows: Tensor, positions: int) -> Block:
        """A copy of some rows up to ``positions``."""
        return Block(
            [t[:, :, :positions].index_select(0, rows) for t in self.keys],
            [t[:, :, :positions].index_select(0, rows) for t in self.values],
        )

    def grow(self, positions: int) -> None:
        """Make room for ``positions``."""
        for tensors in (self.keys, self.values):
            for layer, old in enumerate(tensors):
                new = old.new_zeros(*old.shape[:2], positions, old.shape[3])
                new[:, :, : old.shape[2]] = old
                tensors[layer] = new


@dataclass(slots=True, eq=False)
class Stems:
    """Histories by number: a block with ``lengths`` tokens in its rows."""

    block: Block
    lengths: list[int]


@dataclass(slots=True)
class Held:
    """Where a row's cached tokens are: stem ``number`` and then ``place`` of a turn's block."""

    stems: Stems
    number: int
    block: Block
    place: int


def continued(shape: Shape, held: Sequence[Held | None], cached: Sequence[int], room: int) -> Block:
    """A block of ``room`` positions that starts with ``cached`` tokens of each row ``held``."""
    block = Block.new(shape, len(held), room)
    stems: dict[int, list[int]] = {}
    turns: dict[int, list[int]] = {}
    for number, part in enumerate(held):
        if part is not None:
            stems.setdefault(id(part.stems), []).append(number)
            turns.setdefault(id(part.block), []).append(number)
    for numbers in stems.values():
        parts = [held[number] for number in numbers]
        width = max(part.stems.lengths[part.number] for part in parts)
        source = torch.tensor([part.number for part in parts])
        for new, old in zip(block.tensors(), parts[0].stems.block.tensors(), strict=True):
            new[numbers, :, :width] = old[:, :, :width].index_select(0, source)
    heads = torch.arange(shape.kv_heads)
    for numbers in turns.values():
        parts = [held[number] for number in numbers]
        starts = [part.stems.lengths[part.number] for part in parts]
        old_room = parts[0].block.keys[0].shape[2]
        target, source = [], []
        for number, part, start in zip(numbers, parts, starts, strict=True):
            steps = torch.arange(cached[number] - start)
            target.append((number * shape.kv_heads + heads)[:, None] * room + start + steps)
            source.append((part.place * shape.kv_heads + heads)[:, None] * old_room + steps)
        target, source = (torch.cat([t.flatten() for t in part]) for part in (target, source))
        for new, old in zip(block.tensors(), parts[0].block.tensors(), strict=True):
            flat = old.view(-1, shape.head).index_select(0, source)
            new.view(-1, shape.head).index_copy_(0, target, flat)
    return block


def fill(
    decoder: LeanDecoder, block: Block, first: int, tokens: Sequence[list[int]], cached: list[int]
) -> Tensor:
    """Send tokens behind the rows from ``first`` on, which have ``cached`` ones.

    Returns hidden states float32 [n, H] behind each row's last token.
    """
    shape, count = decoder.shape, len(tokens)
    counts, lengths = torch.tensor([len(row) for row in tokens]), torch.tensor(cached)
    width, shown = int(counts.max()), int((counts + lengths).max())
    offsets = torch.arange(width)
    real = (offsets < counts[:, None]).flatten().nonzero()[:, 0]
    places = lengths[:, None] + offsets
    ends = counts.cumsum(0) - 1  # the rows' last tokens among the packed ones
    last = places[torch.arange(count), counts - 1]
    masks = [(torch.arange(shown) <= p[..., None])[:, None] for p in (places, last[:, None])]
    groups = shape.heads > shape.kv_heads
    rows = (first + torch.arange(count))[:, None].expand(count, width).flatten()[real]
    places = places.flatten()[real]
    rows = rows[:, None] * shape.kv_heads + torch.arange(shape.kv_heads)
    index = (rows * block.keys[0].shape[2] + places[:, None]).flatten()

    def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        seen = []
        for tensor, new in ((block.keys[layer], key), (block.values[layer], value)):
            tensor.view(-1, shape.head).index_copy_(0, index, new.reshape(-1, shape.head))
            seen.append(tensor[first : first + count, :, :shown])
        everywhere = len(query) == len(real)
        if everywhere:
            seats = query.new_zeros(count * width, *query.shape[1:])
            query = seats.index_copy_(0, real, query)
        query = query.unflatten(0, (count, -1)).transpose(1, 2)
        mask = masks[0] if everywhere else masks[1]
        out = F.scaled_dot_product_attention(query, *seen, mask, scale=1.0, enable_gqa=groups)
        out = out.transpose(1, 2).flatten(2).flatten(0, 1)
        return out[real] if everywhere else out

    ids = torch.tensor([token for row in tokens for token in row])
    return decoder.run(ids, places, attend, ends)


@dataclass(slots=True)
class Decoding:
    """Rows that go on token by token; those of a stem stand side by side.

    ``stem_of`` [n] numbers each row's stem, ascending.  All rows have sampled the same number
    of tokens since their stems ended.
    """

    decoder: LeanDecoder
    stems: Stems
    stem_of: list[int]
    block: Block
    steps: int = 0
    _mask: Tensor = field(init=False)
    _slots: Tensor = field(init=False)
    _most: int = field(init=False)

    @classmethod
    def start(cls, decoder: LeanDecoder, stems: Stems, stem_of: list[int], room: int) -> Decoding:
        return cls(decoder, stems, stem_of, Block.new(decoder.shape, len(stem_of), room))

    def __post_init__(self) -> None:
        lengths = torch.tensor(self.stems.lengths)
        unseen = torch.arange(int(lengths.max())) >= lengths[:, None]
        mask = torch.zeros(unseen.shape).masked_fill_(unseen, float("-inf"))
        self._mask = mask.repeat_interleave(self.decoder.shape.kv_heads, 0)[:, None]
        seats: list[int] = []  # rows sit in a table of stems, as wide as the largest has rows
        for place, number in enumerate(self.stem_of):
            same = place and self.stem_of[place - 1] == number
            seats.append(seats[-1] + 1 if same else 0)
        self._most = max(seats) + 1
        self._slots = torch.tensor(self.stem_of) * self._most + torch.tensor(seats)

    def held(self, place: int) -> Held:
        """Where the row at ``place`` has its tokens."""
        return Held(self.stems, self.stem_of[place], self.block, place)

    def narrow(self, keep: Sequence[int], crowded: float) -> Decoding:
        """Go on with the rows at ``keep``, ascending; stems without rows may leave."""
        stem_of = [self.stem_of[place] for place in keep]
        room = self.block.keys[0].shape[2]
        block = self.block.take(torch.tensor(keep), room)
        used = sorted(set(stem_of))
        stems = self.stems
        if len(used) <= crowded * len(stems.lengths):
            lengths = [stems.lengths[number] for number in used]
            stems = Stems(stems.block.take(torch.tensor(used), max(lengths)), lengths)
            stem_of = [used.index(number) for number in stem_of]
        return Decoding(self.decoder, stems, stem_of, block, self.steps)

    def step(self, ids: Tensor) -> Tensor:
        """Process one token per row; hidden states float32 [n, H] behind them."""
        if self.steps == (room := self.block.keys[0].shape[2]):
            self.block.grow(2 * room)
        lengths = torch.tensor(self.stems.lengths)[self.stem_of]
        positions = lengths + self.steps
        self.steps += 1
        return self.decoder.run(ids, positions, self._attend())

    def _attend(self) -> Attend:
        shape, most, slots, steps = self.decoder.shape, self._most, self._slots, self.steps
        heads, size, groups = shape.kv_heads, shape.head, shape.heads // shape.kv_heads
        count, table = len(self.stem_of), len(self.stems.lengths)
        shown = self._mask.shape[-1]
        dense = count == table * most  # every seat is taken

        def seated(x: Tensor) -> Tensor:
            """Rows [n, kv heads, groups, e] by stem: [stems * kv heads, most * groups, e]."""
            if not dense:
                full = x.new_zeros(table * most, *x.shape[1:])
                full[slots] = x
                x = full
            x = x.unflatten(0, (table, most)).transpose(1, 2)
            return x.reshape(table * heads, most * groups, x.shape[-1])

        def by_row(x: Tensor) -> Tensor:
            """The inverse."""
            x = x.view(table, heads, most, groups, x.shape[-1]).transpose(1, 2)
            x = x.reshape(table * most, heads, groups, x.shape[-1])
            return x if dense else x[slots]

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = self.block.keys[layer], self.block.values[layer]
            keys[:, :, steps - 1], values[:, :, steps - 1] = key, value
            own_keys, own_values = (t[:, :, :steps].flatten(0, 1) for t in (keys, values))
            stem_keys, stem_values = (
                t[layer][:, :, :shown].flatten(0, 1)
                for t in (self.stems.block.keys, self.stems.block.values)
            )
            query = query.unflatten(1, (heads, groups))
            stem = torch.baddbmm(self._mask, seated(query), stem_keys.transpose(1, 2))
            own = torch.bmm(query.flatten(0, 1), own_keys.transpose(1, 2))
            scores = torch.cat([by_row(stem), own.unflatten(0, (count, heads))], -1)
            weights = scores.softmax(-1)
            seen = by_row(torch.bmm(seated(weights[..., :shown]), stem_values)).flatten(0, 1)
            seen = seen.baddbmm(weights[..., shown:].flatten(0, 1), own_values)
            return seen.view(count, heads * groups * size)

        return attend
