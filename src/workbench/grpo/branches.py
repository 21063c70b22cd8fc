"""Attention of trees that are packed behind one another, branch by branch.

A tree is laid out as chains: the first rollout, then for each further one what it adds.  A
chain's tokens see the path from the root to it and, causally, the chain itself.  So a chain is
attended to like a rollout of its own whose beginning is in the cache, and nothing is computed
between branches that do not see each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .trees import Tree

_QUERIES = 128  # of a branch that are computed together
_SCORES = 2**19  # scores of one head that are computed together
_WASTE = 1.2  # padded over real scores of branches that are computed together


@dataclass(slots=True)
class Branch:
    """Nodes ``queries`` int64 [q] at ``offsets`` int64 [q] of the path ``keys`` int64 [k]."""

    queries: np.ndarray
    offsets: np.ndarray
    keys: np.ndarray

    @property
    def scores(self) -> int:
        return len(self.queries) * len(self.keys)


@dataclass(slots=True)
class Block:
    """Branches of similar size, padded.

    ``queries`` int64 [n * w] and ``keys`` int64 [n, k] number tokens, 0 where there is none;
    ``real`` int64 [m] are the places of ``queries`` in use.  ``mask`` float32 [n, w, k] is to
    be added to the scores.  ``runs`` (branch, start of keys, first token, count): keys that
    are tokens in a row.
    """

    queries: Tensor
    keys: Tensor
    real: Tensor
    mask: Tensor
    runs: list[tuple[int, int, int, int]]


def branches(trees: Sequence[Tree]) -> list[Branch]:
    """All chains of trees that are packed behind one another."""
    found, start = [], 0
    for tree in trees:
        first = tree.branches[0][0] if tree.branches else len(tree.tokens)
        chains = [(0, first, np.zeros(0, np.int64)), *tree.branches]
        for low, high, stem in chains:
            nodes = np.arange(low, high)
            offsets = np.arange(len(stem), len(stem) + len(nodes))
            found.append(Branch(start + nodes, offsets, start + np.concatenate([stem, nodes])))
        start += len(tree.tokens)
    return found


def at(found: Sequence[Branch], nodes: np.ndarray) -> list[Branch]:
    """The branches with queries at ``nodes`` only, which ascend and are numbered from 0 on."""
    kept = []
    for branch in found:
        low, high = np.searchsorted(nodes, (branch.queries[0], branch.queries[-1] + 1))
        if low < high:
            offsets = branch.offsets[nodes[low:high] - branch.queries[0]]
            keys = branch.keys[: offsets[-1] + 1]
            kept.append(Branch(np.arange(low, high), offsets, keys))
    return kept


def blocks(found: Sequence[Branch]) -> list[Block]:
    """Branches in blocks of similar size."""
    pieces = [piece for branch in found for piece in _pieces(branch)]
    ordered = sorted(pieces, key=lambda branch: (len(branch.queries), len(branch.keys)))
    made: list[Block] = []
    group: list[Branch] = []
    for branch in ordered:
        grown = [*group, branch]
        padded = len(grown) * len(branch.queries) * max(len(b.keys) for b in grown)
        crowded = padded > _SCORES or padded > _WASTE * sum(b.scores for b in grown)
        if group and crowded:
            made.append(_block(group))
            grown = [branch]
        group = grown
    return [*made, _block(group)] if group else made


def _pieces(branch: Branch) -> Iterator[Branch]:
    """A long chain in parts: its first tokens need not be held against its last ones."""
    count = len(branch.queries)
    for part in np.array_split(np.arange(count), -(-count // _QUERIES)):
        offsets = branch.offsets[part]
        yield Branch(branch.queries[part], offsets, branch.keys[: offsets[-1] + 1])


def _block(group: list[Branch]) -> Block:
    width = max(len(branch.queries) for branch in group)
    length = max(len(branch.keys) for branch in group)
    queries = np.zeros((len(group), width), np.int64)
    offsets = np.zeros((len(group), width), np.int64)
    keys = np.zeros((len(group), length), np.int64)
    real = np.zeros((len(group), width), bool)
    runs = []
    for i, branch in enumerate(group):
        count = len(branch.queries)
        queries[i, :count], offsets[i, :count], real[i, :count] = (
            branch.queries, branch.offsets, True
        )  # fmt: skip
        keys[i, : len(branch.keys)] = branch.keys
        edges = np.flatnonzero(np.diff(branch.keys) != 1) + 1
        for low, high in zip([0, *edges], [*edges, len(branch.keys)]):
            runs.append((i, int(low), int(branch.keys[low]), int(high - low)))
    unseen = torch.arange(length) > torch.from_numpy(offsets)[..., None]
    return Block(
        torch.from_numpy(queries.ravel()),
        torch.from_numpy(keys),
        torch.from_numpy(np.flatnonzero(real)),
        torch.zeros(unseen.shape).masked_fill_(unseen, float("-inf")),
        runs,
    )


class BranchAttention(torch.autograd.Function):
    """[m, heads * d] of query [m, heads, d], key and value [T, kv heads, d], over ``blocks``.

    The query is scaled already.  Each query belongs to exactly one block.
    """

    @staticmethod
    def forward(ctx, query: Tensor, key: Tensor, value: Tensor, blocks: list[Block]) -> Tensor:
        out = query.new_empty(query.shape)
        saved = []
        for block in blocks:
            parts = _gathered(block, query, key, value)
            weights = torch.baddbmm(_spread(block, query, key), parts[0], parts[1].transpose(1, 2))
            weights = weights.softmax(-1)
            seen = _by_token(torch.bmm(weights, parts[2]), block, query, key)
            out.index_copy_(0, block.queries[block.real], seen)
            saved.append(weights)
        ctx.blocks = blocks
        ctx.save_for_backward(query, key, value, *saved)
        return out.flatten(1)

    @staticmethod
    def backward(ctx, grad: Tensor):
        query, key, value, *saved = ctx.saved_tensors
        grad = grad.view(query.shape)
        grad_query = torch.empty_like(query)
        both = torch.zeros(len(key), 2, *key.shape[1:])
        for block, weights in zip(ctx.blocks, saved, strict=True):
            q, k, v = _gathered(block, query, key, value)
            g = _heads(grad[block.queries], len(block.keys), key.shape[1])
            # Padding sees tokens too: what comes back through it must not count.
            g = g * _real(block, query, key)
            slope = torch.bmm(g, v.transpose(1, 2))
            slope = torch._softmax_backward_data(slope, weights, -1, weights.dtype)
            seen = _by_token(torch.bmm(slope, k), block, query, key)
            grad_query.index_copy_(0, block.queries[block.real], seen)
            pair = torch.bmm(slope.transpose(1, 2), q), torch.bmm(weights.transpose(1, 2), g)
            pair = torch.stack([p.unflatten(0, (len(block.keys), -1)) for p in pair], 2)
            pair = pair.permute(0, 3, 2, 1, 4).float()  # [n, k, 2, kv heads, d]
            for branch, low, first, count in block.runs:
                both[first : first + count] += pair[branch, low : low + count]
        grad_key, grad_value = both.to(key.dtype).unbind(1)
        return grad_query, grad_key, grad_value, None


def _gathered(block: Block, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
    """Query [n * kv heads, groups * w, d], key and value [n * kv heads, k, d] of a block."""
    count, heads = len(block.keys), key.shape[1]
    places = block.keys.flatten()
    pair = (_heads(t.index_select(0, places), count, heads) for t in (key, value))
    return _heads(query.index_select(0, block.queries), count, heads), *pair


def _heads(x: Tensor, count: int, kv_heads: int) -> Tensor:
    """[count * w, heads, d] as [count * kv heads, heads / kv heads * w, d]."""
    x = x.unflatten(0, (count, -1)).transpose(1, 2)
    return x.reshape(count * kv_heads, -1, x.shape[-1])


def _by_token(x: Tensor, block: Block, query: Tensor, key: Tensor) -> Tensor:
    """The inverse for queries: [real, heads, d]."""
    x = x.view(len(block.keys), query.shape[1], -1, query.shape[2]).transpose(1, 2)
    return x.flatten(0, 1)[block.real]


def _spread(block: Block, query: Tensor, key: Tensor) -> Tensor:
    groups = query.shape[1] // key.shape[1]
    mask = block.mask.to(query.dtype).repeat(1, groups, 1)
    return mask.repeat_interleave(key.shape[1], 0)


def _real(block: Block, query: Tensor, key: Tensor) -> Tensor:
    """1 for real queries, 0 for padding: [n * kv heads, groups * w, 1]."""
    real = query.new_zeros(len(block.queries), 1, 1).index_fill_(0, block.real, 1)
    return _heads(real.expand(-1, query.shape[1], 1), len(block.keys), key.shape[1])
