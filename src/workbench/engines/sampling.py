"""Drawing tokens: one vectorised step for all rows, log-probs in float32."""

from __future__ import annotations

import torch
from torch import Tensor

_NUCLEUS = 128  # candidates looked at before all of the vocabulary is sorted


def draw(
    logits: Tensor, temperature: float, top_p: float, uniform: Tensor | None
) -> tuple[Tensor, Tensor]:
    """One token per row.

    Parameters
    ----------
    logits : float32 [n, V].
    temperature : 0 takes the likeliest token (the first of equals).
    top_p : only the *nucleus* may be drawn: the likeliest tokens up to and including the one
        with which their mass reaches ``top_p``; tokens as likely as that one belong to it.
    uniform : float64 [n] in [0, 1), one draw per row (unused when greedy).

    Returns
    -------
    ids int64 [n]; logprobs float32 [n] under the distribution that was drawn from: with
    temperature and within the nucleus; the model's own when greedy.  NaN where a row's logits
    hold NaN or +inf.
    """
    if temperature == 0:
        ids = logits.argmax(-1)
        return ids, _at(logits, ids) - logits.logsumexp(-1)
    scaled = logits if temperature == 1 else logits / temperature
    peak = scaled.amax(-1, keepdim=True)
    mass = (scaled - peak).exp_()
    if top_p < 1:
        mass = torch.where(mass >= nucleus_floor(mass, top_p), mass, 0.0)
    below = mass.cumsum(-1, dtype=torch.float64)
    total = below[:, -1:]
    # Smallest index whose cumulated mass exceeds the draw: never one without mass.
    threshold = torch.minimum(uniform[:, None] * total, total.nextafter(torch.zeros_like(total)))
    ids = torch.searchsorted(below, threshold, right=True)[:, 0].clamp_(max=logits.shape[-1] - 1)
    logprobs = _at(scaled, ids) - peak[:, 0] - total[:, 0].log().float()
    return ids, logprobs


def nucleus_floor(mass: Tensor, top_p: float) -> Tensor:
    """The least mass [n, 1] in each row's nucleus; ``mass`` [n, V] need not sum to one."""
    wanted = top_p * mass.sum(-1, keepdim=True)
    size = min(_NUCLEUS, mass.shape[-1])
    top = mass.topk(size).values
    if size < mass.shape[-1] and not bool((top.sum(-1, keepdim=True) >= wanted).all()):
        top = mass.sort(descending=True).values
    before = top.cumsum(-1) - top
    last = (before < wanted).sum(-1, keepdim=True).clamp_(min=1) - 1
    return top.gather(-1, last)


def top_logprobs(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` likeliest tokens and their log-probs, each [n, k], best first.

    ``logits`` float32 [n, V]; log-probs are the model's own: no temperature, no nucleus.
    """
    values, ids = logits.topk(k, dim=-1)
    if k == 0:
        return ids, values
    return ids, values - logits.logsumexp(-1, keepdim=True)


def _at(values: Tensor, ids: Tensor) -> Tensor:
    return values.gather(-1, ids[:, None])[:, 0]
