"""The objective against hand values and against plain numpy in float64."""

import math

import numpy as np
import pytest
import torch

from workbench.grpo.objective import (
    clip_shares,
    low_variance_kl,
    low_variance_kl_slope,
    sampled_logprobs,
    surrogate,
)

F64 = torch.float64
INF = float("inf")


def tensor(*values):
    return torch.tensor(values, dtype=F64)


# -- hand values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("advantage", "ratio", "loss", "slope"),
    [(-1, 5.0, 3.0, 0), (-1, 0.5, 0.8, 0), (1, 5.0, -1.2, 0), (1, 0.5, -0.5, 0.5)],
)
def test_dual_clip_handed_cases(advantage, ratio, loss, slope):
    logprobs = tensor(math.log(ratio)).requires_grad_()
    value = surrogate(logprobs, tensor(0.0), tensor(advantage), 0.2, 3.0)
    value.sum().backward()
    assert -value.item() == pytest.approx(loss, rel=1e-12)
    assert logprobs.grad.item() == pytest.approx(slope, abs=1e-12)


def test_without_dual_clip_a_negative_advantage_is_unbounded():
    value = surrogate(tensor(math.log(5.0)), tensor(0.0), tensor(-1.0), 0.2)
    assert value.item() == pytest.approx(-5.0)


@pytest.mark.parametrize(
    ("logprob", "ref", "value", "slope"),
    [(-3, -1, 4.38906, 1 - math.e**2), (-1, -3, 1.13534, 1 - math.e**-2), (-30, -1, 10, 0)],
)
def test_low_variance_kl_handed_cases(logprob, ref, value, slope):
    logprobs = tensor(logprob).requires_grad_()
    kl = low_variance_kl(logprobs, tensor(ref), 10.0)
    kl.sum().backward()
    assert kl.item() == pytest.approx(value, abs=1e-5)
    assert logprobs.grad.item() == pytest.approx(slope, abs=1e-12)
    assert low_variance_kl_slope(logprobs.detach(), tensor(ref), 10.0).item() == pytest.approx(
        slope, abs=1e-12
    )


def test_at_ratio_one_the_gradient_is_the_advantage():
    logprobs = tensor(-1.0, -2.0, -3.0).requires_grad_()
    surrogate(logprobs, logprobs.detach(), tensor(2.0, -3.0, 0.0), 0.2, 3.0).sum().backward()
    assert logprobs.grad.tolist() == [2.0, -3.0, 0.0]


def test_clip_shares():
    ratio = tensor(0.5, 0.5, 1.0, 2.0, 2.0, 4.0, 4.0).log()
    advantages = tensor(-1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 0.0)
    shares = clip_shares(ratio, torch.zeros(7, dtype=F64), advantages, 0.2, 3.0)
    assert shares["low"].tolist() == [True] + [False] * 6
    assert shares["high"].tolist() == [False] * 3 + [True] + [False] * 3
    assert shares["dual"].tolist() == [False] * 5 + [True, False]


# -- infinite log-probs -----------------------------------------------------------------------


@pytest.mark.parametrize("new", [-INF, -1.0])
@pytest.mark.parametrize("old", [-INF, -1.0])
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 1.0])
def test_infinite_logprobs_never_give_nan(new, old, advantage):
    logprobs = tensor(new).requires_grad_()
    value = surrogate(logprobs, tensor(old), tensor(advantage), 0.2)
    value = value - low_variance_kl(logprobs, tensor(old), 10.0)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(logprobs.grad).all()


def test_a_masked_vocabulary_entry_has_no_entropy_and_no_gradient():
    logits = torch.tensor([[0.0, 1.0, -INF, 2.0]], dtype=F64, requires_grad=True)
    logprob, entropy = sampled_logprobs(logits, torch.tensor([1]))
    p = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    assert logprob.item() == pytest.approx(math.log(p[1]), rel=1e-12)
    assert entropy.item() == pytest.approx(-(p * np.log(p)).sum(), rel=1e-12)
    (logprob + entropy).sum().backward()
    assert torch.isfinite(logits.grad).all() and logits.grad[0, 2] == 0


# -- plain numpy in float64 -------------------------------------------------------------------


def numpy_objective(logits, tokens, old, ref, advantages, weights, c):
    """The objective written again, token by token, with loops and math only."""
    total = 0.0
    for i, row in enumerate(logits):
        highest = max(row)
        normaliser = highest + math.log(sum(math.exp(x - highest) for x in row))
        logp = [x - normaliser for x in row]
        entropy = -sum(math.exp(x) * x for x in logp)
        new, adv = logp[tokens[i]], advantages[i]
        ratio = math.exp(new - old[i])
        clipped = min(max(ratio, 1 - c["epsilon"]), 1 + c["epsilon"])
        value = min(ratio * adv, clipped * adv)
        if adv < 0 and c["dual"] is not None:
            value = max(value, c["dual"] * adv)
        u = ref[i] - new
        kl = min(max(math.exp(u) - u - 1, -c["kappa"]), c["kappa"])
        total += weights[i] * (value + c["alpha"] * entropy - c["beta"] * kl)
    return total


@pytest.mark.parametrize("dual", [None, 3.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_and_gradient_against_finite_differences(seed, dual):
    rng = np.random.default_rng(seed)
    n, vocabulary = 12, 7
    c = {"epsilon": 0.2, "dual": dual, "alpha": 0.3, "beta": 0.4, "kappa": 2.0}
    logits = rng.normal(size=(n, vocabulary)) * 2
    tokens = rng.integers(0, vocabulary, n)
    logp = np.log(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))[np.arange(n), tokens]
    # Spread ratios over all clip regions, and references over both sides of the KL clip.
    old = logp - np.log(rng.choice([0.4, 0.7, 0.95, 1.05, 1.5, 4.0], n))
    ref = logp + rng.choice([-4.0, -0.5, 0.5, 1.2, 2.5], n)
    advantages, weights = rng.normal(size=n) * 2, rng.uniform(0.1, 1, n)

    x = torch.tensor(logits, requires_grad=True)
    new, entropy = sampled_logprobs(x, torch.tensor(tokens))
    value = surrogate(new, torch.tensor(old), torch.tensor(advantages), c["epsilon"], dual)
    value = value + c["alpha"] * entropy
    value = value - c["beta"] * low_variance_kl(new, torch.tensor(ref), c["kappa"])
    total = (torch.tensor(weights) * value).sum()
    total.backward()

    arguments = (tokens, old, ref, advantages, weights, c)
    assert total.item() == pytest.approx(numpy_objective(logits, *arguments), rel=1e-12)
    step = 1e-6
    for i in range(n):
        for v in range(vocabulary):
            up, down = logits.copy(), logits.copy()
            up[i, v] += step
            down[i, v] -= step
            slope = numpy_objective(up, *arguments) - numpy_objective(down, *arguments)
            assert x.grad[i, v].item() == pytest.approx(slope / (2 * step), abs=2e-8)
