"""Log-probs and entropies at selected tokens: pack, run the trunk, apply the head in pieces.

The hidden states of all positions are needed, the logits only at policy-generated tokens: no
tensor of shape [B, T, V] is made.  Rows are padded on the right, where causal attention never
looks, so there is no attention mask either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import WorkbenchError
from .objective import sampled_logprobs

Loss = Callable[[Tensor, Tensor, slice], Tensor]
Arithmetic = Callable[[], AbstractContextManager]


@dataclass(slots=True)
class Rollout:
    """What the update needs of a trajectory.

    ``tokens`` int [T]; ``positions`` int [n], ascending, the selected tokens (never token 0).
    """

    tokens: np.ndarray
    positions: np.ndarray

    def __post_init__(self) -> None:
        if len(self.positions) and self.positions[0] == 0:
            raise WorkbenchError("the first token has no context to be predicted from")

    @property
    def inputs(self) -> int:
        """Tokens that must go through the model: all before the last selected one."""
        return int(self.positions[-1]) if len(self.positions) else 0


@dataclass(slots=True)
class Chunk:
    """Rollouts that go through the model together.

    ``rows`` index the rollouts; ``ids`` int64 [B, L] right-padded; ``batch``, ``time`` int64
    [n] place each selected token's predictor in [B, L]; ``targets`` int64 [n] are the tokens.
    """

    rows: list[int]
    ids: Tensor
    batch: Tensor
    time: Tensor
    targets: Tensor


def pack(
    rollouts: Sequence[Rollout], rows: Sequence[int], chunk_tokens: int, device="cpu"
) -> list[Chunk]:
    """Chunks of rollouts of similar length, at most ``chunk_tokens`` padded tokens each.

    Rollouts without selected tokens are left out; a longer one gets a chunk of its own.
    """
    todo = sorted(
        (r for r in rows if len(rollouts[r].positions)), key=lambda r: (-rollouts[r].inputs, r)
    )
    chunks = []
    while todo:
        width = rollouts[todo[0]].inputs
        take = max(1, chunk_tokens // width)
        chunks.append(_chunk(rollouts, todo[:take], width, device))
        todo = todo[take:]
    return chunks


def _chunk(rollouts: Sequence[Rollout], rows: list[int], width: int, device) -> Chunk:
    ids = np.zeros((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, : rollouts[row].inputs] = rollouts[row].tokens[: rollouts[row].inputs]
    counts = [len(rollouts[row].positions) for row in rows]
    time = np.concatenate([rollouts[row].positions for row in rows]) - 1
    targets = np.concatenate([rollouts[row].tokens[rollouts[row].positions] for row in rows])
    batch = np.repeat(np.arange(len(rows)), counts)

    def tensor(array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=torch.int64, device=device)

    return Chunk(rows, tensor(ids), tensor(batch), tensor(time), tensor(targets))


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
    hidden = causal_lm.get_decoder()(input_ids=chunk.ids, use_cache=False).last_hidden_state
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
