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
from .lean import LeanDecoder

_SHORTER = 0.8  # tokens of a table's longest stem over those of the one before: worth a table
_STEMS = 6  # stems of a table for which tokens alone are the reason


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
class Table:
    """Stems ``first:last``, whose rows ``start:stop`` sit on ``seats`` each.

    ``slots`` int64 number the rows' seats, stem by stem; ``mask`` float32 [stems * kv heads, 1,
    shown] hides what a stem is too short for.
    """

    first: int
    last: int
    start: int
    stop: int
    seats: int
    slots: Tensor
    mask: Tensor

    def seated(self, x: Tensor) -> Tensor:
        """Rows [n, kv heads, groups, e] by stem: [stems * kv heads, seats * groups, e]."""
        heads, count = x.shape[1], (self.last - self.first) * self.seats
        if len(x) < count:
            x = x.new_zeros(count, *x.shape[1:]).index_copy_(0, self.slots, x)
        if self.seats > 1:
            x = x.unflatten(0, (-1, self.seats)).transpose(1, 2)
        return x.reshape((self.last - self.first) * heads, -1, x.shape[-1])

    def by_row(self, x: Tensor, heads: int) -> Tensor:
        """The inverse."""
        x = x.view(self.last - self.first, heads, self.seats, -1, x.shape[-1])
        x = x.transpose(1, 2).flatten(0, 1)
        return x if len(x) == len(self.slots) else x[self.slots]


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
    _tables: list[Table] = field(init=False)
    _lengths: Tensor = field(init=False)

    @classmethod
    def start(cls, decoder: LeanDecoder, stems: Stems, stem_of: list[int], room: int) -> Decoding:
        return cls(decoder, stems, stem_of, Block.new(decoder.shape, len(stem_of), room))

    def __post_init__(self) -> None:
        self._lengths = torch.tensor(self.stems.lengths)[self.stem_of]
        counts = [0] * len(self.stems.lengths)
        for number in self.stem_of:
            counts[number] += 1
        self._tables, first, start = [], 0, 0
        for last in _cuts(counts, self.stems.lengths):
            stop = start + sum(counts[first:last])
            self._tables.append(self._table(first, last, start, stop, counts[first:last]))
            first, start = last, stop

    def _table(self, first: int, last: int, start: int, stop: int, counts: list[int]) -> Table:
        most = max(1, *counts)
        slots = [i * most + seat for i, count in enumerate(counts) for seat in range(count)]
        lengths = torch.tensor(self.stems.lengths[first:last])
        unseen = torch.arange(int(lengths.max())) >= lengths[:, None]
        mask = torch.zeros(unseen.shape).masked_fill_(unseen, float("-inf"))
        mask = mask.repeat_interleave(self.decoder.shape.kv_heads, 0)[:, None]
        return Table(first, last, start, stop, most, torch.tensor(slots), mask)

    def held(self, place: int) -> Held:
        """Where the row at ``place`` has its tokens."""
        return Held(self.stems, self.stem_of[place], self.block, place)

    def narrow(self, keep: list[int], crowded: float) -> tuple[Decoding, list[int]]:
        """Go on with the rows at ``keep``, ascending; stems without rows may leave.

        Returns also ``keep`` in the order in which the rows now stand.
        """
        stem_of = [self.stem_of[place] for place in keep]
        stems, used = self.stems, sorted(set(stem_of))
        if len(used) <= crowded * len(stems.lengths):
            used.sort(key=lambda number: (stem_of.count(number) == 1, -stems.lengths[number]))
            lengths = [stems.lengths[number] for number in used]
            stems = Stems(stems.block.take(torch.tensor(used), max(lengths)), lengths)
            keep = [p for number in used for p, stem in zip(keep, stem_of) if stem == number]
            stem_of = [used.index(self.stem_of[place]) for place in keep]
        block = self.block.take(torch.tensor(keep), self.block.keys[0].shape[2])
        return Decoding(self.decoder, stems, stem_of, block, self.steps), keep

    def step(self, ids: Tensor) -> Tensor:
        """Process one token per row; hidden states float32 [n, H] behind them."""
        if self.steps == (room := self.block.keys[0].shape[2]):
            self.block.grow(2 * room)
        positions = self._lengths + self.steps
        self.steps += 1
        return self.decoder.run(ids, positions, self._attend)

    def _attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        steps, heads = self.steps, self.decoder.shape.kv_heads
        keys, values = self.block.keys[layer], self.block.values[layer]
        keys[:, :, steps - 1], values[:, :, steps - 1] = key, value
        keys, values = (t[:, :, :steps].flatten(0, 1) for t in (keys, values))
        query = query.unflatten(1, (heads, -1))
        own = torch.bmm(query.flatten(0, 1), keys.transpose(1, 2)).view(*query.shape[:3], steps)
        seen = torch.empty_like(query)
        for table in self._tables:
            rows = slice(table.start, table.stop)
            if table.start == table.stop:
                continue
            shown = table.mask.shape[-1]
            stem_keys, stem_values = (
                t[layer][table.first : table.last, :, :shown].flatten(0, 1)
                for t in (self.stems.block.keys, self.stems.block.values)
            )
            asked = table.seated(query[rows])
            scores = torch.baddbmm(table.mask, asked, stem_keys.transpose(1, 2))
            scores = torch.cat([table.by_row(scores, heads), own[rows]], -1)
            weights = scores.softmax(-1)
            found = torch.bmm(table.seated(weights[..., :shown]), stem_values)
            seen[rows] = table.by_row(found, heads)
            own[rows] = weights[..., shown:]
        seen = seen.flatten(0, 1).baddbmm_(own.flatten(0, 1), values)
        return seen.view(len(query), -1)


def _cuts(counts: Sequence[int], lengths: Sequence[int]) -> list[int]:
    """Where tables of stems end: before stems of one row at most, and of far fewer tokens."""
    shared = max((i + 1 for i, count in enumerate(counts) if count > 1), default=0)
    cuts, first = [], 0
    for place in range(1, len(counts)):
        shorter = max(lengths[place:]) < _SHORTER * max(lengths[first:place])
        if place == shared or (shorter and min(place - first, len(counts) - place) >= _STEMS):
            cuts.append(place)
            first = place
    return [*cuts, len(counts)]
