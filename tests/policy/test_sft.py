"""The training loop: schedule, batching, loss against an independent one, determinism."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.policy.drafts import Demonstration
from workbench.policy.model import build_model
from workbench.policy.sft import (
    SFTConfig,
    lr_factor,
    micro_batches,
    step_batches,
    target_loss,
    train,
)


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


def _model(world, **changes):
    sizes, tokenizer = world.small.model_copy(update=changes), world.tokenizer
    return build_model(sizes, len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, 0)


def _trained(world, demonstrators, config=CONFIG, checkpoint=None):
    model, log = _model(world), []
    train(model, demonstrators(), config, log.append, checkpoint)
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


def test_statements_are_a_share_of_the_exposures(demonstrators, monkeypatch):
    """A quarter of them, rounded down: facts shown fewer than four times are not stated."""
    d, stated = demonstrators(), []
    monkeypatch.setattr(
        type(d), "statement", lambda self, item, rng: stated.append(item.item_id) or _made(50)
    )
    config = SFTConfig(steps=20, tokens_per_step=20_000, statements=0.25)
    monkeypatch.setattr(type(d), "draw", lambda self, rng, early: _made(20_000))
    assert len(list(step_batches(d, config))) == 20
    expected = [i.item_id for i in d.single for _ in range(i.exposures // 4)]
    assert sorted(stated) == sorted(expected) and expected


# -- checkpoints ------------------------------------------------------------------------------


class Killed(Exception):
    pass


LONG = CONFIG.model_copy(update={"steps": 5, "checkpoint_every": 2})


@pytest.fixture(scope="module")
def unbroken(world, demonstrators):
    return _trained(world, demonstrators, LONG)


def _same(a, b):
    own, other = a.state_dict(), b.state_dict()
    return own.keys() == other.keys() and all(torch.equal(own[k], other[k]) for k in own)


def _kill(world, demonstrators, path, after, config=LONG):
    """Train until step ``after`` was logged; nothing of the training itself is cleaned up."""

    def on_step(progress):
        if progress.step == after:
            raise Killed

    with pytest.raises(Killed):
        train(_model(world), demonstrators(), config, on_step, path)


@pytest.mark.parametrize(("after", "kept"), [(0, None), (1, None), (2, 2), (3, 2), (4, 4)])
def test_a_killed_training_goes_on_to_the_same_weights(
    world, demonstrators, unbroken, tmp_path, after, kept
):
    path = tmp_path / "deep" / "state.pt"
    _kill(world, demonstrators, path, after)
    steps = len(torch.load(path, weights_only=True)["log"]) if path.exists() else None
    assert steps == kept
    path.parent.mkdir(exist_ok=True)
    path.with_name("state.pt.part").write_bytes(b"killed while writing")
    model, log = _trained(world, demonstrators, LONG, path)
    assert _same(model, unbroken[0]) and log == unbroken[1]
    assert not model.training


def test_it_can_be_killed_again_and_again(world, demonstrators, unbroken, tmp_path):
    path = tmp_path / "state.pt"
    for after in (2, 3, 4):
        _kill(world, demonstrators, path, after)
    model, log = _trained(world, demonstrators, LONG, path)
    assert _same(model, unbroken[0]) and log == unbroken[1]


def test_a_checkpoint_of_the_last_step_is_the_whole_training(world, demonstrators, tmp_path):
    config = LONG.model_copy(update={"steps": 4})
    path = tmp_path / "state.pt"
    model, log = _trained(world, demonstrators, config, path)
    again, repeated = _trained(world, demonstrators, config, path)
    assert _same(model, again) and log == repeated
    assert not _same(again, _model(world))


def test_checkpoints_do_not_change_the_training(world, demonstrators, unbroken, tmp_path):
    model, log = _trained(world, demonstrators, LONG, tmp_path / "state.pt")
    assert _same(model, unbroken[0]) and log == unbroken[1]


def _refused(path, message, model, demonstrator, config=LONG):
    with pytest.raises(WorkbenchError, match=message) as error:
        train(model, demonstrator, config, checkpoint=path)
    assert error.value.where == str(path)
    assert error.value.fix == "delete it to start anew"


@pytest.fixture(scope="module")
def state(world, demonstrators, tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "state.pt"
    _kill(world, demonstrators, path, 2)
    return path


@pytest.mark.parametrize("change", [{"lr": 1e-3}, {"steps": 6}, {"seed": 1}, {"dtype": "bfloat16"}])
def test_a_checkpoint_of_other_settings_is_refused(world, demonstrators, state, change):
    model, other = _model(world), LONG.model_copy(update=change)
    _refused(state, "of other settings", model, demonstrators(), other)
    assert _same(model, _model(world))  # nothing was loaded


def test_a_checkpoint_of_other_demonstrations_is_refused(world, demonstrators, state):
    _refused(state, "of other settings", _model(world), demonstrators(sloppy=0.5))


def test_a_checkpoint_of_another_model_is_refused(world, demonstrators, state):
    for sizes in ({"intermediate_size": 36}, {"layers": 3}):
        _refused(state, "of another model", _model(world, **sizes), demonstrators())


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused(world, demonstrators, state, tmp_path, keep):
    whole = state.read_bytes()
    path = tmp_path / "state.pt"
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    _refused(path, "not a readable checkpoint", _model(world), demonstrators())


@pytest.mark.parametrize(
    "content",
    [b"\0" * 64, b"no checkpoint at all\n", b"PK\x03\x04 not a zip", b"cnumpy\n."],
)
def test_another_file_is_refused(world, demonstrators, tmp_path, content):
    path = tmp_path / "state.pt"
    path.write_bytes(content)
    _refused(path, "not a readable checkpoint", _model(world), demonstrators())


@pytest.mark.parametrize(
    "content", [{}, [1, 2], 7, {"log": 5}, {"log": [], "settings": {}}, {"log": [(1, 2)]}]
)
def test_what_torch_wrote_for_something_else_is_refused(world, demonstrators, tmp_path, content):
    path = tmp_path / "state.pt"
    torch.save(content, path)
    _refused(path, "not a readable checkpoint", _model(world), demonstrators())
