"""Log-probs and entropies at selected tokens: pack, run the trunk, apply the head in pieces.

The hidden states of all positions are needed, the logits only at policy-generated tokens: no
tensor of shape [B, T, V] is made.  Rows are padded on the right, where causal attention never
looks, so plain rows need no attention mask either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from .objective import sampled_logprobs
from .trees import Rollout, Tree, grow

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
Arithmetic = Callable[[], AbstractContextManager]


@dataclass(slots=True)
class Chunk:
    """Rollouts that go through the model together.

    ``rows`` index the rollouts; ``ids`` int64 [B, L] right-padded.  ``positions`` int64 [B, L]
    and ``mask`` float [B, 1, L, L] (0 where a token sees another, -inf where not) are there
    when a row holds a tree of rollouts, else None: plain causal rows.  ``batch``, ``time`` int64
    [u] place the predictors of the selected tokens in [B, L], row by row; rollouts that share a
    prefix share predictors.  ``targets`` int64 [n] are the selected tokens and ``predictor``
    int64 [n] numbers the predictor of each.
    """

    rows: list[int]
    ids: Tensor
    positions: Tensor | None
    mask: Tensor | None
    batch: Tensor
    time: Tensor
    predictor: Tensor
    targets: Tensor


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
    width = len(trees[0].tokens)
    ids = np.zeros((len(trees), width), dtype=np.int64)
    for i, tree in enumerate(trees):
        ids[i, : len(tree.tokens)] = tree.tokens
    rows = [row for tree in trees for row in tree.paths]
    selected = [rollouts[row].positions for row in rows]
    paths = [path for tree in trees for path in tree.paths.values()]
    owners = np.repeat(np.arange(len(trees)), [len(tree.paths) for tree in trees])
    batch = np.repeat(owners, [len(s) for s in selected])
    time = np.concatenate([path[s - 1] for path, s in zip(paths, selected)])
    targets = np.concatenate([rollouts[row].tokens[s] for row, s in zip(rows, selected)])
    places, predictor = np.unique(batch * width + time, return_inverse=True)

    def tensor(array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=torch.int64, device=device)

    positions = mask = None
    if any(tree.branches for tree in trees):
        depth = np.zeros((len(trees), width), dtype=np.int64)
        visible = np.zeros((len(trees), 1, width, width), dtype=bool)
        for i, tree in enumerate(trees):
            depth[i, : len(tree.tokens)] = tree.depth
            visible[i, 0, : len(tree.tokens), : len(tree.tokens)] = tree.visible()
            visible[i, 0, range(width), range(width)] = True  # padding sees itself, not nothing
        positions = tensor(depth)
        seen = torch.as_tensor(visible, device=device)
        mask = torch.zeros(seen.shape, device=device).masked_fill_(~seen, float("-inf"))
    batch, time, predictor, targets = map(tensor, (*divmod(places, width), predictor, targets))
    return Chunk(rows, tensor(ids), positions, mask, batch, time, predictor, targets)


def spread(chunk: Chunk, values: Sequence[np.ndarray], dtype=torch.float32) -> Tensor:
    """Per-rollout arrays of selected-token values [n_j] as one tensor [n] in chunk order."""
    flat = np.concatenate([values[row] for row in chunk.rows])
    return torch.as_tensor(flat, dtype=dtype, device=chunk.ids.device)


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
        with self._arithmetic():
            hidden = self._model.get_decoder()(
                input_ids=chunk.ids,
                position_ids=chunk.positions,
                attention_mask=chunk.mask,
                use_cache=False,
            ).last_hidden_state
            return hidden[chunk.batch, chunk.time]

    def logits(self, hidden: Tensor) -> Tensor:
        with self._arithmetic():
            logits = self._model.get_output_embeddings()(hidden)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _pieces(chunk: Chunk, size: int) -> Iterator[tuple[slice, Tensor]]:
    """At most ``size`` predictors at a time, and which selected tokens they predict."""
    order = chunk.predictor.argsort(stable=True)
    count = len(chunk.time)
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
