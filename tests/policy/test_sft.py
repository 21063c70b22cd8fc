"""The training loop: schedule, batching, loss against an independent one, determinism."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbench.policy.drafts import Demonstration
from workbench.policy.model import build_model
from workbench.policy.sft import SFTConfig, lr_factor, micro_batches, target_loss, train


def _made(length, seed=0):
    rng = np.random.default_rng([length, seed])
    return Demonstration(rng.integers(3, 50, length), rng.random(length) < 0.5)


@pytest.mark.parametrize(
    ("step", "factor"),
    [(0, 0.25), (1, 0.5), (3, 1.0), (4, 1.0), (9, 1.0), (10, 1.0), (15, 0.6), (19, 0.28)],
)
def test_learning_rate_by_hand(step, factor):
    """20 steps, 4 of warm-up, decay from step 10 towards 0.2 at step 20."""
    config = SFTConfig(steps=20, warmup_steps=4, decay_from=0.5, final_lr=0.2)
    assert lr_factor(step, config) == pytest.approx(factor)


def test_no_warm_up_and_no_decay():
    config = SFTConfig(steps=5, warmup_steps=0, decay_from=1.0)
    assert [lr_factor(s, config) for s in range(5)] == [1.0] * 5


@given(st.lists(st.integers(2, 90), max_size=40), st.integers(64, 300))
def test_micro_batches_hold_every_sequence_once_within_the_limit(lengths, limit):
    batch = [_made(n, i) for i, n in enumerate(lengths)]
    parts = list(micro_batches(batch, limit))
    assert sorted(id(d) for p in parts for d in p) == sorted(map(id, batch))
    for part in parts:
        longest = max(len(d.tokens) for d in part)
        assert longest * len(part) <= limit or len(part) == 1
    ends = [(len(p[0].tokens), len(p[-1].tokens)) for p in parts]
    assert all(a[1] <= b[0] for a, b in zip(ends, ends[1:]))


@pytest.fixture
def tiny(small_model):
    return small_model.eval()


def test_the_loss_is_the_cross_entropy_of_each_unpadded_sequence(tiny):
    batch = [_made(n) for n in (5, 17, 9, 2)]
    batch[1].mask[0] = True  # nothing predicts a first token
    expected = torch.tensor(0.0, dtype=torch.float64)
    with torch.no_grad():
        for d in batch:
            logits = tiny(input_ids=torch.from_numpy(d.tokens)[None]).logits[0].double()
            logp = logits - torch.logsumexp(logits, -1, keepdim=True)
            for t in range(1, len(d.tokens)):
                if d.mask[t]:
                    expected -= logp[t - 1, d.tokens[t]]
        found = target_loss(tiny, batch, tiny.config.pad_token_id)
        assert found.item() == pytest.approx(expected.item(), rel=1e-5)
        pad = target_loss(tiny, batch, 7)  # what pads does not matter
    assert pad.item() == pytest.approx(found.item(), rel=1e-6)


def test_bfloat16_is_close_and_gives_a_float32_loss(tiny):
    batch = [_made(n) for n in (12, 20)]
    with torch.no_grad():
        exact, rough = (target_loss(tiny, batch, 0, dtype) for dtype in ("float32", "bfloat16"))
    assert rough.dtype == torch.float32
    assert rough.item() == pytest.approx(exact.item(), rel=0.02)
    assert rough.item() != exact.item()


CONFIG = SFTConfig(steps=3, tokens_per_step=600, micro_tokens=512, warmup_steps=1, dtype="float32")


def _trained(world, demonstrators, config=CONFIG):
    sizes, tokenizer = world.small, world.tokenizer
    model = build_model(sizes, len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
    log = []
    train(model, demonstrators(), config, log.append)
    return model, log


def test_three_steps_are_deterministic_and_logged(world, demonstrators):
    (a, log), (b, again) = (_trained(world, demonstrators) for _ in range(2))
    assert log == again
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters()))
    assert [p.step for p in log] == [0, 1, 2]
    assert [p.lr_factor for p in log] == [lr_factor(s, CONFIG) for s in range(3)]
    assert all(p.tokens >= 600 for p in log)
    assert not a.training


def test_how_a_step_is_cut_into_passes_does_not_change_its_gradient(world, demonstrators):
    a, small = _trained(world, demonstrators)
    b, large = _trained(world, demonstrators, CONFIG.model_copy(update={"micro_tokens": 4000}))
    assert small[0].loss == pytest.approx(large[0].loss, rel=1e-5)
    assert small[2].loss == pytest.approx(large[2].loss, rel=1e-3)


def test_training_lowers_the_loss(world, demonstrators):
    config = CONFIG.model_copy(update={"steps": 12, "lr": 5e-3})
    _, log = _trained(world, demonstrators, config)
    assert np.mean([p.loss for p in log[-3:]]) < 0.9 * log[0].loss
