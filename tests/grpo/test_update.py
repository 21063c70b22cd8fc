"""The update's gradient on a real model against a naive float64 computation of the objective."""

import copy

import numpy as np
import pytest
import torch

from workbench.errors import WorkbenchError
from workbench.grpo.config import ObjectiveConfig
from workbench.grpo.forward import pack
from workbench.grpo.lora import Policy
from workbench.grpo.update import Updater, make_batch
from workbench.grpo.workers import Workers

COEFFICIENTS = ObjectiveConfig(
    epsilon=0.2, dual_clip=1.5, entropy_coefficient=0.05, kl_coefficient=0.3, kl_clip=0.5
)


@pytest.fixture(params=[True, False], ids=["merged", "model"])
def lean(request):
    """Both forward passes of the update."""
    return request.param


def setting(world, objective=COEFFICIENTS, **changes):
    """A policy off its reference, rollouts of an older policy, random per-token advantages."""
    config = world.toy_config(objective=objective, old_logprobs="rollout", **changes)
    policy = Policy(world.tiny_model(), config, seed=5)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in policy.parameters.values():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    engine = world.ToyEngine(world.tiny_model(), None)
    sampling = world.toy_config()
    trajectories = world.toy_rollout(engine, None, world.items(4), world.ToyAgent(), sampling, 1, 3)
    rng = np.random.default_rng(2)
    advantages = [
        np.where(t.generated, rng.normal(size=len(t.tokens)), 0).astype(np.float32)
        for t in trajectories
    ]
    updater = Updater(policy, config, Workers(), seed=5)
    return policy, updater, trajectories, advantages


def gradients(policy, updater, trajectories, advantages, monkeypatch) -> dict[str, np.ndarray]:
    monkeypatch.setattr(updater, "_step", lambda record: None)
    updater.update(make_batch(trajectories, advantages, [0] * len(trajectories)), step=0)
    return {
        name: np.zeros(p.shape) if p.grad is None else p.grad.numpy().copy()
        for name, p in policy.parameters.items()
    }


def naive_objective(policy, trajectories, advantages, c: ObjectiveConfig, micro_batch: int):
    """Eq. 10, 12 and 13 with full logits, one rollout at a time, in float64.

    Returns the value and the trained parameters it depends on.
    """
    model = copy.deepcopy(policy.model).double()
    trained = [p for p in model.parameters() if p.requires_grad]

    means = []
    for start in range(0, len(trajectories), micro_batch):
        terms = []
        for t, adv in list(zip(trajectories, advantages))[start : start + micro_batch]:
            ids = torch.tensor(t.tokens[None].astype(np.int64))
            logp = model(ids).logits[0].log_softmax(-1)
            with model.disable_adapter(), torch.no_grad():
                ref_logp = model(ids).logits[0].log_softmax(-1)
            for i in np.flatnonzero(t.generated):
                token, a = int(t.tokens[i]), float(adv[i])
                ratio = (logp[i - 1, token] - float(t.logprobs[i])).exp()
                clipped = ratio.clamp(1 - c.epsilon, 1 + c.epsilon)
                term = torch.minimum(ratio * a, clipped * a)
                if a < 0:
                    term = torch.maximum(term, torch.tensor(c.dual_clip * a).double())
                u = ref_logp[i - 1, token] - logp[i - 1, token]
                kl = (u.exp() - u - 1).clamp(-c.kl_clip, c.kl_clip)
                entropy = -(logp[i - 1].exp() * logp[i - 1]).sum()
                terms.append(term + c.entropy_coefficient * entropy - c.kl_coefficient * kl)
        means.append(torch.stack(terms).mean())
    return torch.stack(means).mean(), trained


def test_gradient_against_a_naive_float64_computation(world, monkeypatch, lean):
    policy, updater, trajectories, advantages = setting(world, lean=lean, micro_batch_rollouts=5)
    got = gradients(policy, updater, trajectories, advantages, monkeypatch)
    value, trained = naive_objective(policy, trajectories, advantages, COEFFICIENTS, 5)
    (-value).backward()
    expected = {n: p.grad.numpy() for n, p in zip(got, trained)}
    scale = max(np.abs(e).max() for e in expected.values())
    assert scale > 1e-2
    for name in got:
        np.testing.assert_allclose(got[name], expected[name], atol=2e-6 * max(1, scale), rtol=2e-4)


@pytest.mark.parametrize("chunk_tokens, head_rows", [(1, 1), (40, 7), (100000, 100000)])
def test_packing_does_not_change_the_gradient(world, monkeypatch, chunk_tokens, head_rows, lean):
    expected = gradients(*setting(world, lean=lean), monkeypatch)
    packed = setting(world, lean=lean, chunk_tokens=chunk_tokens, head_rows=head_rows)
    got = gradients(*packed, monkeypatch)
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], atol=3e-6)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("chunk_tokens", [1, 1000])
def test_sharing_prefixes_does_not_change_the_gradient(
    world, monkeypatch, attention, chunk_tokens, lean
):
    expected = gradients(*setting(world, lean=lean), monkeypatch)
    shared = setting(
        world, lean=lean, share_prefixes=True, attention=attention, chunk_tokens=chunk_tokens
    )
    batch = make_batch(*shared[2:], [0] * len(shared[2]))
    plain, merged = (
        sum(c.padded.ids.numel() for c in pack(batch.rollouts, range(12), 1, share))
        for share in (False, True)
    )
    assert merged < 0.8 * plain  # there is something to share
    got = gradients(*shared, monkeypatch)
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], atol=3e-6)


@pytest.mark.parametrize("share_prefixes", [False, True])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_bfloat16_stays_near_float32(world, monkeypatch, attention, share_prefixes, lean):
    # Without a clip of the KL, which some tokens are so near to that rounding decides.
    smooth = COEFFICIENTS.model_copy(update={"kl_clip": 100.0})
    expected = gradients(*setting(world, smooth, lean=lean), monkeypatch)
    got = setting(
        world,
        smooth,
        lean=lean,
        dtype="bfloat16",
        attention=attention,
        share_prefixes=share_prefixes,
    )
    got = gradients(*got, monkeypatch)
    flat = [np.concatenate([g.ravel() for g in grads.values()]) for grads in (expected, got)]
    cosine = flat[0] @ flat[1] / np.linalg.norm(flat[0]) / np.linalg.norm(flat[1])
    assert cosine > 0.99
    assert all(g.dtype == np.float32 for g in got.values())


PLAIN = ObjectiveConfig(entropy_coefficient=0, kl_coefficient=0)


def test_no_gradient_outside_the_mask(world, monkeypatch, lean):
    policy, updater, trajectories, advantages = setting(world, lean=lean, objective=PLAIN)
    expected = gradients(policy, updater, trajectories, advantages, monkeypatch)
    # Prompt and observation log-probs are never read; tokens after the last selected neither.
    for t in trajectories:
        t.logprobs = np.where(t.generated, t.logprobs, 99.0).astype(np.float32)
        t.tokens = np.append(t.tokens, np.int32(1))
        t.segments = np.append(t.segments, np.uint8(6))
        t.logprobs = np.append(t.logprobs, np.float32(np.nan))
    padded = [np.append(a, np.float32(0)) for a in advantages]
    for p in policy.parameters.values():
        p.grad = None
    got = gradients(policy, updater, trajectories, padded, monkeypatch)
    for name in expected:
        np.testing.assert_array_equal(got[name], expected[name])


def test_credit_on_one_token_reaches_only_that_token(world, monkeypatch, lean):
    policy, updater, trajectories, advantages = setting(world, lean=lean, objective=PLAIN)
    place = int(np.flatnonzero(trajectories[0].generated)[2])
    single = [np.zeros_like(a) for a in advantages]
    single[0][place] = 1.0
    trajectories[0].logprobs[place] = np.nan  # set below so that the ratio is 1
    ids = torch.tensor(trajectories[0].tokens[None].astype(np.int64))
    logp = policy.model(ids).logits[0, place - 1].log_softmax(-1)[int(ids[0, place])]
    trajectories[0].logprobs[place] = logp.item()
    got = gradients(policy, updater, trajectories, single, monkeypatch)
    counts = [int(t.generated.sum()) for t in trajectories]
    weight = 1 / sum(counts[:5]) / 3  # first of three micro-batches of five rollouts
    expected = torch.autograd.grad(-weight * logp, list(policy.parameters.values()))
    for (name, values), e in zip(got.items(), expected):
        np.testing.assert_allclose(values, e.numpy(), atol=1e-7, err_msg=name)


def test_zero_advantages_without_penalties_leave_the_weights(world):
    policy, updater, trajectories, advantages = setting(world, objective=PLAIN)
    before = {n: p.detach().clone() for n, p in policy.parameters.items()}
    batch = make_batch(trajectories, [0 * a for a in advantages], [0] * len(trajectories))
    records = updater.update(batch, step=0)
    assert records[0].sums(PLAIN, True) == {}
    # AdamW's decay still applies: the step itself is not special.
    for name, p in policy.parameters.items():
        torch.testing.assert_close(p, before[name] * (1 - 0.01 * records[0].lr))


def test_a_batch_without_any_selected_token_changes_nothing(world):
    policy, updater, trajectories, advantages = setting(world)
    for t in trajectories:
        t.segments[:] = 0
    before = {n: p.detach().clone() for n, p in policy.parameters.items()}
    updater.update(make_batch(trajectories, [0 * a for a in advantages], [0] * 12), step=0)
    assert all(torch.equal(p, before[n]) for n, p in policy.parameters.items())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t, a: (t, a[:-1]), "advantages"),
        (lambda t, a: (t, a + 1), "0 off the generated tokens"),
        (lambda t, a: (t, np.where(t.generated, np.nan, 0)), "finite"),
    ],
)
def test_bad_advantages_are_refused(world, spoil, message):
    _, _, trajectories, advantages = setting(world)
    t, a = spoil(trajectories[0], advantages[0])
    with pytest.raises(WorkbenchError, match=f"item q0, sample 0: .*{message}"):
        make_batch([t], [a], [0])


def test_a_generated_token_without_logprob_is_refused(world):
    _, _, trajectories, advantages = setting(world)
    trajectories[0].logprobs[-1] = np.nan
    with pytest.raises(WorkbenchError, match="no log-prob"):
        make_batch(trajectories[:1], advantages[:1], [0])


def test_a_half_precision_policy_is_refused(world):
    with pytest.raises(WorkbenchError, match="must be float32"):
        Policy(world.tiny_model().bfloat16(), world.toy_config(trained="full"), seed=0)


def test_lora_initialisation_is_named_by_the_seed(world):
    def weights(seed):
        return Policy(world.tiny_model(), world.toy_config(), seed).parameters

    torch.manual_seed(11)
    one = weights(0)
    torch.manual_seed(12)
    again, other = weights(0), weights(1)
    assert all(torch.equal(one[n], again[n]) for n in one)
    assert not all(torch.equal(one[n], other[n]) for n in one)


def test_unknown_lora_targets_are_refused(world):
    config = world.toy_config(lora={"targets": ("no_such_layer",)})
    with pytest.raises(WorkbenchError, match="no_such_layer"):
        Policy(world.tiny_model(), config, seed=0)
