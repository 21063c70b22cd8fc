"""Log-probs and entropies at selected tokens: pack, run the trunk, apply the head in pieces.

The hidden states of all positions are needed, the logits only at policy-generated tokens: no
tensor of shape [B, T, V] is made.  Rows are padded on the right, where causal attention never
looks, so plain rows need no attention mask either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from .objective import sampled_logprobs
from .trees import Rollout, Tree, grow

Loss = Callable[[Tensor, Tensor, slice], Tensor]
Arithmetic = Callable[[], AbstractContextManager]


@dataclass(slots=True)
class Chunk:
    """Rollouts that go through the model together.

    ``rows`` index the rollouts; ``ids`` int64 [B, L] right-padded.  ``positions`` int64 [B, L]
    and ``mask`` float [B, 1, L, L] (0 where a token sees another, -inf where not) are there
    when a row holds a tree of rollouts, else None: plain causal rows.  ``batch``, ``time`` int64
    [n] place each selected token's predictor in [B, L]; ``targets`` int64 [n] are the tokens.
    """

    rows: list[int]
    ids: Tensor
    positions: Tensor | None
    mask: Tensor | None
    batch: Tensor
    time: Tensor
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
    return Chunk(rows, tensor(ids), positions, mask, tensor(batch), tensor(time), tensor(targets))


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


def hidden_states(causal_lm: nn.Module, chunk: Chunk) -> Tensor:
    """Final hidden states [n, d] at the predictors of the selected tokens."""
    hidden = causal_lm.get_decoder()(
        input_ids=chunk.ids,
        position_ids=chunk.positions,
        attention_mask=chunk.mask,
        use_cache=False,
    ).last_hidden_state
    return hidden[chunk.batch, chunk.time]


def _log_probs(causal_lm: nn.Module, hidden: Tensor, targets: Tensor, temperature: float):
    logits = causal_lm.get_output_embeddings()(hidden)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return sampled_logprobs(logits if temperature == 1 else logits / temperature, targets)


@torch.no_grad()
def score(
    causal_lm: nn.Module, chunk: Chunk, temperature: float, head_rows: int, arithmetic: Arithmetic
) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies [n] of the selected tokens, without gradient.

    ``arithmetic()`` is entered around the forward pass (autocast or nothing).
    """
    with arithmetic():
        hidden = hidden_states(causal_lm, chunk)
        parts = [
            _log_probs(causal_lm, h, t, temperature)
            for h, t in zip(hidden.split(head_rows), chunk.targets.split(head_rows))
        ]
    return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])


def backward(
    causal_lm: nn.Module,
    chunk: Chunk,
    temperature: float,
    head_rows: int,
    arithmetic: Arithmetic,
    loss: Loss,
) -> tuple[Tensor, Tensor]:
    """Add the gradient of the loss to the parameters; returns log-probs and entropies [n].

    ``loss(logprobs [m], entropies [m], part)`` is called on consecutive parts of the selected
    tokens and must be a sum over tokens.  Each part's head is differentiated at once, so only
    ``head_rows`` x V logits exist at a time, then the trunk once.
    """
    with arithmetic():
        hidden = hidden_states(causal_lm, chunk)
    leaf = hidden.detach().requires_grad_(True)
    logprobs, entropies = [], []
    for start in range(0, len(leaf), head_rows):
        part = slice(start, min(start + head_rows, len(leaf)))
        with arithmetic():
            logprob, entropy = _log_probs(causal_lm, leaf[part], chunk.targets[part], temperature)
        loss(logprob, entropy, part).backward()
        logprobs.append(logprob.detach())
        entropies.append(entropy.detach())
    hidden.backward(leaf.grad)
    return torch.cat(logprobs), torch.cat(entropies)
