"""Teacher-forced log-probs of chosen tokens, in length-sorted batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import WorkbenchError
from .base import Generation
from .sampling import top_logprobs

if TYPE_CHECKING:
    from .transformers_engine import TransformersEngine

_LOGITS = 2**24  # logits computed at once


def score(
    engine: TransformersEngine,
    sequences: Sequence[Sequence[int]],
    masks: Sequence[np.ndarray],
    top_k: int,
) -> list[Generation]:
    """See ``TransformersEngine.score``."""
    arrays = [np.asarray(sequence, np.int64) for sequence in sequences]
    for place, (tokens, mask) in enumerate(zip(arrays, masks, strict=True)):
        _check(place, tokens, np.asarray(mask), engine.max_length)
    wanted = [np.flatnonzero(mask) for mask in masks]
    # The last wanted token and what stands behind it need not go through the model.
    lengths = [int(w[-1]) if len(w) else 0 for w in wanted]
    order = sorted((i for i, n in enumerate(lengths) if n), key=lambda i: -lengths[i])
    results = [_nothing(top_k) for _ in arrays]
    for start, end in engine.chunks([lengths[i] for i in order]):
        rows = order[start:end]
        batch = _batch(engine, [arrays[i] for i in rows], [wanted[i] for i in rows], top_k)
        for row, result in zip(rows, batch, strict=True):
            results[row] = result
    return results


def _batch(
    engine: TransformersEngine, arrays: list[np.ndarray], wanted: list[np.ndarray], top_k: int
) -> list[Generation]:
    """Score right-padded sequences in one forward pass."""
    counts = [int(w[-1]) for w in wanted]
    ids = torch.zeros(len(arrays), max(counts), dtype=torch.long)
    for place, (tokens, count) in enumerate(zip(arrays, counts, strict=True)):
        ids[place, :count] = torch.from_numpy(tokens[:count])
    hidden = engine.hidden(ids)
    engine.tokens_processed += sum(counts)
    engine.tokens_padded += ids.numel() - sum(counts)
    sequence = np.repeat(np.arange(len(arrays)), [len(w) for w in wanted])
    before = np.concatenate(wanted) - 1
    targets = np.concatenate([a[w] for a, w in zip(arrays, wanted, strict=True)])
    at, where, ids = (torch.from_numpy(x).to(hidden.device) for x in (sequence, before, targets))
    parts = []
    size = max(1, _LOGITS // engine.vocabulary)
    for piece, target in zip(hidden[at, where].split(size), ids.split(size), strict=True):
        logits = engine.logits(piece)
        logprobs = logits.gather(1, target[:, None])[:, 0] - logits.logsumexp(-1)
        parts.append((logprobs, *top_logprobs(logits, top_k)))
    logprobs, top_ids, top = (torch.cat(p).cpu().numpy() for p in zip(*parts, strict=True))
    if not np.isfinite(logprobs).all():
        raise WorkbenchError(
            "the model's logits are NaN or infinite",
            where="engine.score",
            fix="the weights or the arithmetic broke: check the last update and dtype",
        )
    ends = np.cumsum([len(w) for w in wanted])[:-1]
    columns = targets.astype(np.int32), logprobs, top_ids.astype(np.int32), top
    return [
        Generation(*(part.copy() for part in parts), "scored")
        for parts in zip(*(np.split(column, ends) for column in columns), strict=True)
    ]


def _nothing(top_k: int) -> Generation:
    shape = (0, top_k)
    return Generation(
        np.empty(0, np.int32), np.empty(0, np.float32),
        np.empty(shape, np.int32), np.empty(shape, np.float32), "scored",
    )  # fmt: skip


def _check(place: int, tokens: np.ndarray, mask: np.ndarray, limit: int) -> None:
    if mask.dtype != bool or mask.shape != tokens.shape:
        raise WorkbenchError(
            f"mask {place} is {mask.dtype} {mask.shape}, expected bool {tokens.shape}",
            where="engine.score",
        )
    if mask[:1].any():
        raise WorkbenchError(
            f"token 0 of sequence {place} is masked, but nothing predicts it",
            where="engine.score",
        )
    if len(tokens) > limit:
        raise WorkbenchError(
            f"sequence {place} has {len(tokens)} tokens, the engine takes {limit}",
            where="engine.score",
        )
