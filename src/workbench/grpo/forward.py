"""Log-probs and entropies at selected tokens: pack, run the trunk, apply the head in pieces.

The hidden states of all positions are needed, the logits only at policy-generated tokens: no
tensor of shape [B, T, V] is made.  Rows are padded on the right, where causal attention never
looks, so plain rows need no attention mask either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from .objective import sampled_logprobs
from .trees import Rollout, Tree, grow

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
Arithmetic = Callable[[], AbstractContextManager]


@dataclass
class Chunk:
    """Rollouts that go through the model together.

    ``rows`` index the rollouts; their tokens are the nodes of ``trees``, one tree behind the
    other.  ``nodes`` int64 [u], ascending, are the predictors of the selected tokens; rollouts
    that share a prefix share predictors.  ``targets`` int64 [n] are the selected tokens and
    ``predictor`` int64 [n] numbers the predictor of each.
    """

    rows: list[int]
    trees: list[Tree]
    nodes: Tensor
    predictor: Tensor
    targets: Tensor

    @cached_property
    def padded(self) -> Padded:
        """One row per tree."""
        return _pad(self.trees, self.nodes)


@dataclass(slots=True)
class Padded:
    """A chunk as a transformers model takes it.

    ``ids`` int64 [B, L] right-padded.  ``positions`` int64 [B, L] and ``mask`` float
    [B, 1, L, L] (0 where a token sees another, -inf where not) are there when a row holds more
    than one rollout, else None: plain causal rows.  ``batch``, ``time`` int64 [u] place the
    predictors in [B, L].
    """

    ids: Tensor
    positions: Tensor | None
    mask: Tensor | None
    batch: Tensor
    time: Tensor


def pack(
    rollouts: Sequence[Rollout],
    rows: Sequence[int],
    chunk_tokens: int,
    share_prefixes: bool,
    device="cpu",
) -> list[Chunk]:
    """Chunks of rows of similar length, at most ``chunk_tokens`` padded tokens each.

    A row of a chunk is a rollout or, with ``share_prefixes``, the tree of all rollouts of a
    group.  Rollouts without selected tokens are left out; a row longer than a chunk gets one of
    its own.
    """
    bundles: dict[object, list[int]] = {}
    for row in rows:
        if len(rollouts[row].positions):
            bundles.setdefault(rollouts[row].group if share_prefixes else row, []).append(row)
    trees = [grow(rollouts, members) for members in bundles.values()]
    trees.sort(key=lambda tree: -len(tree.tokens))
    chunks = []
    while trees:
        take = max(1, chunk_tokens // len(trees[0].tokens))
        chunks.append(_chunk(rollouts, trees[:take], device))
        trees = trees[take:]
    return chunks


def _chunk(rollouts: Sequence[Rollout], trees: list[Tree], device) -> Chunk:
    rows = [row for tree in trees for row in tree.paths]
    starts = np.cumsum([0] + [len(tree.tokens) for tree in trees])
    nodes, targets = [], []
    for tree, start in zip(trees, starts):
        for row, path in tree.paths.items():
            selected = rollouts[row].positions
            nodes.append(start + path[selected - 1])
            targets.append(rollouts[row].tokens[selected])
    nodes, predictor = np.unique(np.concatenate(nodes), return_inverse=True)
    arrays = (nodes, predictor, np.concatenate(targets))
    tensors = (torch.as_tensor(array, dtype=torch.int64, device=device) for array in arrays)
    return Chunk(rows, trees, *tensors)


def _pad(trees: list[Tree], nodes: Tensor) -> Padded:
    device, lengths = nodes.device, [len(tree.tokens) for tree in trees]
    count, width = len(trees), max(lengths)
    ids = np.zeros((count, width), dtype=np.int64)
    for i, tree in enumerate(trees):
        ids[i, : lengths[i]] = tree.tokens
    starts = torch.as_tensor(np.cumsum([0] + lengths), device=device)
    batch = torch.searchsorted(starts, nodes, right=True) - 1
    positions = mask = None
    if any(tree.branches for tree in trees):
        depth = np.zeros((count, width), dtype=np.int64)
        visible = np.zeros((count, 1, width, width), dtype=bool)
        for i, tree in enumerate(trees):
            depth[i, : lengths[i]] = tree.depth
            visible[i, 0, : lengths[i], : lengths[i]] = tree.visible()
            visible[i, 0, range(width), range(width)] = True  # padding sees itself, not nothing
        positions = torch.as_tensor(depth, device=device)
        seen = torch.as_tensor(visible, device=device)
        mask = torch.zeros(seen.shape, device=device).masked_fill_(~seen, float("-inf"))
    ids = torch.as_tensor(ids, device=device)
    return Padded(ids, positions, mask, batch, nodes - starts[batch])


def spread(chunk: Chunk, values: Sequence[np.ndarray], dtype=torch.float32) -> Tensor:
    """Per-rollout arrays of selected-token values [n_j] as one tensor [n] in chunk order."""
    flat = np.concatenate([values[row] for row in chunk.rows])
    return torch.as_tensor(flat, dtype=dtype, device=chunk.targets.device)


def gather(chunk: Chunk, flat: Tensor, rollouts: Sequence[Rollout], out: list) -> None:
    """The inverse of ``spread``: writes each rollout's part of ``flat`` [n] into ``out[row]``."""
    values = flat.detach().float().cpu().numpy()
    start = 0
    for row in chunk.rows:
        stop = start + len(rollouts[row].positions)
        out[row] = values[start:stop]
        start = stop


class Pass(Protocol):
    """A policy's forward pass in two halves, the second differentiated in pieces."""

    def hidden(self, chunk: Chunk) -> Tensor:
        """Final hidden states [u, d] at the predictors of the selected tokens."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits float32 (or float64) [m, V] of hidden states [m, d]."""


class ModelPass:
    """The transformers model itself; ``arithmetic()`` is entered around it (autocast)."""

    def __init__(self, causal_lm: nn.Module, arithmetic: Arithmetic):
        self._model, self._arithmetic = causal_lm, arithmetic

    def hidden(self, chunk: Chunk) -> Tensor:
        padded = chunk.padded
        with self._arithmetic():
            hidden = self._model.get_decoder()(
                input_ids=padded.ids,
                position_ids=padded.positions,
                attention_mask=padded.mask,
                use_cache=False,
            ).last_hidden_state
            return hidden[padded.batch, padded.time]

    def logits(self, hidden: Tensor) -> Tensor:
        with self._arithmetic():
            logits = self._model.get_output_embeddings()(hidden)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _pieces(chunk: Chunk, size: int) -> Iterator[tuple[slice, Tensor]]:
    """At most ``size`` predictors at a time, and which selected tokens they predict."""
    order = chunk.predictor.argsort(stable=True)
    count = len(chunk.nodes)
    starts = torch.arange(0, count + size, size, device=order.device).clamp_(max=count)
    edges = torch.searchsorted(chunk.predictor[order], starts).tolist()
    for start, low, high in zip(range(0, count, size), edges, edges[1:]):
        yield slice(start, min(start + size, count)), order[low:high]


def _log_probs(model: Pass, chunk: Chunk, hidden: Tensor, part: slice, tokens: Tensor, t: float):
    logits = model.logits(hidden)
    rows = chunk.predictor[tokens] - part.start
    return sampled_logprobs(logits if t == 1 else logits / t, chunk.targets[tokens], rows)


@torch.no_grad()
def score(model: Pass, chunk: Chunk, temperature: float, head_rows: int) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies [n] of the selected tokens, without gradient."""
    hidden = model.hidden(chunk)
    logprobs, entropies = hidden.new_empty(2, len(chunk.targets), dtype=torch.float32)
    for part, tokens in _pieces(chunk, head_rows):
        found = _log_probs(model, chunk, hidden[part], part, tokens, temperature)
        logprobs[tokens], entropies[tokens] = (values.float() for values in found)
    return logprobs, entropies


def backward(
    model: Pass, chunk: Chunk, temperature: float, head_rows: int, loss: Loss
) -> tuple[Tensor, Tensor]:
    """Add the gradient of the loss to the parameters; returns log-probs and entropies [n].

    ``loss(logprobs [m], entropies [m], tokens int64 [m])`` is called on parts of the selected
    tokens, which it is told, and must be a sum over tokens.  Each part's head is
    differentiated at once, so only ``head_rows`` x V logits exist at a time, then the trunk
    once.
    """
    hidden = model.hidden(chunk)
    leaf = hidden.detach().requires_grad_(True)
    logprobs, entropies = leaf.new_empty(2, len(chunk.targets), dtype=torch.float32)
    for part, tokens in _pieces(chunk, head_rows):
        found = _log_probs(model, chunk, leaf[part], part, tokens, temperature)
        loss(*found, tokens).backward()
        logprobs[tokens], entropies[tokens] = (values.detach().float() for values in found)
    hidden.backward(leaf.grad)
    return logprobs, entropies
