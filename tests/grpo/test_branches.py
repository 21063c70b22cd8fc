"""Attention branch by branch against attention over whole trees with a mask."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.grpo import branches as module
from workbench.grpo.branches import BranchAttention, at, blocks, branches
from workbench.grpo.trees import Rollout, grow

groups = st.lists(
    st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=9), min_size=1, max_size=5),
    min_size=1, max_size=3,
)  # fmt: skip


def trees_of(sequences):
    found = []
    for group in sequences:
        rollouts = [Rollout(np.array(s, np.int32), np.arange(1, len(s))) for s in group]
        found.append(grow(rollouts, range(len(rollouts))))
    return found


def dense(query, key, value, nodes, trees):
    """The same with one mask over all tokens."""
    total = sum(len(tree.tokens) for tree in trees)
    seen, start = torch.zeros(total, total, dtype=torch.bool), 0
    for tree in trees:
        stop = start + len(tree.tokens)
        seen[start:stop, start:stop] = torch.from_numpy(tree.visible())
        start = stop
    key, value = (t.repeat_interleave(query.shape[1] // key.shape[1], 1) for t in (key, value))
    scores = torch.einsum("qhd,khd->hqk", query, key)
    weights = scores.masked_fill(~seen[nodes], float("-inf")).softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, value).flatten(1)


@settings(max_examples=20, deadline=None)
@given(groups, st.integers(0, 1000), st.sampled_from([1, 3, 1000]), st.sampled_from([1, 10, 10**6]))
def test_values_and_gradients_equal_dense_attention(sequences, seed, queries, scores):
    trees = trees_of(sequences)
    generator = torch.Generator().manual_seed(seed)
    total = sum(len(tree.tokens) for tree in trees)
    some = (torch.rand(total, generator=generator) < 0.4).nonzero()[:, 0]
    for nodes in (torch.arange(total), some) if len(some) else (torch.arange(total),):
        tensors = [
            torch.randn(len(nodes) if heads == 4 else total, heads, 6, generator=generator)
            for heads in (4, 2, 2)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_QUERIES", queries)
            patch.setattr(module, "_SCORES", scores)
            made = blocks(at(branches(trees), nodes.numpy()))
        results = []
        for compute, how in ((BranchAttention.apply, (made,)), (dense, (nodes, trees))):
            inputs = [t.clone().requires_grad_() for t in tensors]
            out = compute(*inputs, *how)
            weights = torch.arange(out.numel()).view(out.shape).cos()
            (out * weights).sum().backward()
            results.append([out, *(t.grad for t in inputs)])
        for got, expected in zip(*results, strict=True):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)


def test_branches_by_hand():
    # 5 6 7 (8), 5 6 9 4 (2), 5 6 9 3 (1): nodes 5 6 7 | 9 3 | 4, 3 and 4 behind 5 6 9
    (tree,) = trees_of([[[5, 6, 7, 8], [5, 6, 9, 4, 2], [5, 6, 9, 3, 1]]])
    found = branches([tree])
    assert [b.queries.tolist() for b in found] == [[0, 1, 2], [3, 4], [5]]
    assert [b.keys.tolist() for b in found] == [[0, 1, 2], [0, 1, 3, 4], [0, 1, 3, 5]]
    assert [b.offsets.tolist() for b in found] == [[0, 1, 2], [2, 3], [3]]
    # the nodes 1 and 3 only: numbered 0 and 1, and what stands behind them is not needed
    found = at(found, np.array([1, 3]))
    assert [b.queries.tolist() for b in found] == [[0], [1]]
    assert [b.keys.tolist() for b in found] == [[0, 1], [0, 1, 3]]
