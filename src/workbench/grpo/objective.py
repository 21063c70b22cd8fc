"""The GRPO objective on selected tokens: tensors [n], one entry per policy-generated token.

    J = min(ρA, clip(ρ, 1-ε, 1+ε)A) + α_H·H - β·KL_LV                    (S1 Eq. 10)
    ρ = π_θ/π_old of the sampled token                                     (S1 Eq. 9)
    KL_LV = clip(exp(u) - u - 1, -κ, κ),  u = log π_ref - log π_θ          (S1 Eq. 13)

With a dual clip c (S3 Table 2) the surrogate of a negative advantage is at least c·A.  The
gradient is zero wherever a clip is active.  J is maximised; the reduction over tokens is in
``workbench.grpo.reduction``.

Log-probs of -inf (a masked or impossible token) never give NaN: differences of log-probs are
limited to ±``LOG_RATIO_LIMIT`` with zero gradient beyond, and a difference of two -inf counts
as 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0


def log_ratio(above: Tensor, below: Tensor) -> Tensor:
    """``above - below`` of log-probs, finite: see the module docstring."""
    limit = LOG_RATIO_LIMIT
    return (above - below).nan_to_num(nan=0.0, posinf=limit, neginf=-limit).clamp(-limit, limit)


def surrogate(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    epsilon: float,
    dual_clip: float | None = None,
) -> Tensor:
    """Clipped surrogate [n] of the sampled tokens (to be maximised)."""
    ratio = log_ratio(logprobs, old_logprobs).exp()
    value = torch.min(ratio * advantages, ratio.clamp(1 - epsilon, 1 + epsilon) * advantages)
    if dual_clip is None:
        return value
    return torch.where(advantages < 0, torch.max(value, dual_clip * advantages), value)


def clip_shares(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    epsilon: float,
    dual_clip: float | None = None,
) -> dict[str, Tensor]:
    """Where a clip stops the gradient: bool [n] each for "low", "high" and "dual".

    "low" is ρ < 1-ε with A < 0, "high" ρ > 1+ε with A > 0, "dual" ρ > c with A < 0.
    """
    ratio = log_ratio(logprobs, old_logprobs).exp()
    bound = float("inf") if dual_clip is None else dual_clip
    return {
        "low": (ratio < 1 - epsilon) & (advantages < 0),
        "high": (ratio > 1 + epsilon) & (advantages > 0),
        "dual": (ratio > bound) & (advantages < 0),
    }


def low_variance_kl(logprobs: Tensor, ref_logprobs: Tensor, kappa: float) -> Tensor:
    """Clipped low-variance KL estimate [n] of the sampled tokens (S1 Eq. 13)."""
    u = log_ratio(ref_logprobs, logprobs)
    return (u.exp() - u - 1).clamp(-kappa, kappa)


def low_variance_kl_slope(logprobs: Tensor, ref_logprobs: Tensor, kappa: float) -> Tensor:
    """d KL_LV / d log π_θ [n] = 1 - exp(u), 0 where the clip is active.

    It is not the gradient of the KL divergence itself, so runs log its norm beside the value.
    """
    u = log_ratio(ref_logprobs, logprobs)
    active = (u.exp() - u - 1).abs() > kappa
    return (1 - u.exp()).masked_fill(active | (u.abs() >= LOG_RATIO_LIMIT), 0.0)


class _SampledLogprob(torch.autograd.Function):
    """log softmax(logits)[token] and the entropy of softmax(logits), without [n, V] autograd."""

    @staticmethod
    def forward(ctx, logits: Tensor, rows: Tensor, tokens: Tensor):
        ctx.set_materialize_grads(False)
        logp = logits.log_softmax(-1)
        sampled = logp[rows, tokens]
        logp.clamp_(min=torch.finfo(logp.dtype).min / 2)  # 0 * log 0 is 0, not NaN
        p = logp.exp()
        entropy = -torch.linalg.vecdot(p, logp)
        ctx.save_for_backward(p, logp, entropy, rows, tokens)
        return sampled, entropy

    @staticmethod
    def backward(ctx, d_sampled: Tensor | None, d_entropy: Tensor | None):
        p, logp, entropy, rows, tokens = ctx.saved_tensors
        slope = torch.zeros_like(entropy)
        if d_sampled is not None:
            slope.index_add_(0, rows, d_sampled)
        if d_entropy is None:
            grad = p * -slope[:, None]
        else:
            grad = (logp + entropy[:, None]).mul_(d_entropy[:, None]).add_(slope[:, None])
            grad.mul_(p).neg_()
        if d_sampled is not None:
            grad.index_put_((rows, tokens), d_sampled, accumulate=True)
        return grad, None, None


def sampled_logprobs(
    logits: Tensor, tokens: Tensor, rows: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Log-prob [n] of each sampled token and entropy [n], in nats, of the full distribution.

    Parameters
    ----------
    logits : float [u, V]; -inf entries have probability 0.
    tokens : int64 [n].
    rows : int64 [n], the distribution that each token was drawn from; None: one each, u = n.
    """
    if rows is None:
        rows = torch.arange(len(tokens), device=tokens.device)
    logprobs, entropies = _SampledLogprob.apply(logits, rows, tokens)
    return logprobs, entropies[rows]
