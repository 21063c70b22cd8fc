"""Snapshots: the adapter alone, live weights untouched, mismatches named."""

import peft
import pytest
import torch

from workbench.errors import WorkbenchError
from workbench.readouts.snapshot import base_hash, take_snapshot, tensors_hash


def logits(model):
    with torch.no_grad():
        return model(input_ids=torch.arange(1, 9)[None]).logits


def fingerprint(model):
    """Bits, storage and version of every parameter: what engines and optimisers look at."""
    return {
        n: (p.data_ptr(), p._version, p.requires_grad, tensors_hash({"p": p}))
        for n, p in model.named_parameters()
    }


def test_of_lora_it_holds_the_adapter_alone(make_adapted):
    model = make_adapted()
    snapshot = take_snapshot(model)
    assert snapshot.kind == "adapter"
    assert snapshot.tensors and all("lora_" in name for name in snapshot.tensors)
    share = sum(t.numel() for t in snapshot.tensors.values())
    assert share < 0.1 * sum(p.numel() for p in model.parameters())


def test_the_model_computes_as_the_snapshot_and_comes_back(make_adapted, rerandomise):
    model = make_adapted()
    then, snapshot = logits(model), take_snapshot(model)
    rerandomise(model, 2)
    now, before = logits(model), fingerprint(model)
    assert not torch.equal(then, now)
    with snapshot.in_place(model):
        assert torch.equal(logits(model), then)
    assert torch.equal(logits(model), now)
    assert fingerprint(model) == before


def test_it_comes_back_after_an_error_too(make_adapted, rerandomise):
    model = make_adapted()
    snapshot = take_snapshot(model)
    rerandomise(model, 2)
    before = fingerprint(model)
    with pytest.raises(RuntimeError), snapshot.in_place(model):
        raise RuntimeError
    assert fingerprint(model) == before


def test_training_on_does_not_touch_it(make_adapted, rerandomise):
    model = make_adapted()
    snapshot = take_snapshot(model)
    before = snapshot.hash
    rerandomise(model, 3)
    assert snapshot.hash == before


def test_of_the_base_policy_it_is_empty(make_model, make_adapted):
    snapshot = take_snapshot(make_model())
    assert snapshot.kind == "base" and snapshot.tensors == {}
    model = make_adapted()
    adapted, before = logits(model), fingerprint(model)
    with snapshot.in_place(model):
        assert torch.allclose(logits(model), logits(make_model()), atol=1e-6)
    assert torch.equal(logits(model), adapted) and fingerprint(model) == before
    plain = make_model()
    with snapshot.in_place(plain):
        assert torch.equal(logits(plain), logits(make_model()))


def test_of_a_fully_trained_policy_it_is_everything(make_model):
    model = make_model()
    snapshot, then = take_snapshot(model, full=True), logits(model)
    assert snapshot.kind == "full" and snapshot.base == ""
    with torch.no_grad():
        model.model.layers[0].mlp.down_proj.weight.mul_(2)
    now = logits(model)
    snapshot.check(model)
    with snapshot.in_place(model):
        assert torch.equal(logits(model), then)
    assert torch.equal(logits(model), now)


def test_the_base_has_one_hash_with_and_without_adapters(make_model, make_adapted):
    assert base_hash(make_model()) == base_hash(make_adapted()) == base_hash(make_adapted(0, 9))
    assert base_hash(make_model()) != base_hash(make_model(1))
    saved = peft.get_peft_model(
        make_model(), peft.LoraConfig(target_modules=["q_proj"], modules_to_save=["lm_head"])
    )
    assert base_hash(saved) == base_hash(make_model())
    assert any("lm_head" in name for name in take_snapshot(saved).tensors)


def test_the_hash_sees_names_types_shapes_and_bytes():
    one = torch.arange(6.0)
    hashes = {
        tensors_hash(tensors)
        for tensors in (
            {},
            {"a": one},
            {"b": one},
            {"a": one.double()},
            {"a": one.view(2, 3)},
            {"a": one + 1e-6},
            {"a": one[:3], "b": one[3:]},
        )
    }
    assert len(hashes) == 7
    assert tensors_hash({"b": one, "a": one}) == tensors_hash({"a": one, "b": one})


def test_another_base_is_refused(make_adapted):
    snapshot = take_snapshot(make_adapted())
    snapshot.check(make_adapted(adapter=5))
    with pytest.raises(WorkbenchError, match="base policy"):
        snapshot.check(make_adapted(seed=1))


def test_other_adapters_are_refused(make_adapted, make_model):
    snapshot = take_snapshot(make_adapted())
    with pytest.raises(WorkbenchError, match=r"lora_A.* is \(2, .*\) in the snapshot and \(3, "):
        snapshot.check(make_adapted(rank=3))
    with pytest.raises(WorkbenchError), snapshot.in_place(make_adapted(rank=3)):
        pass
    with pytest.raises(WorkbenchError, match="0 active adapters"):
        snapshot.check(make_model())


def test_what_cannot_be_frozen(make_adapted):
    model = make_adapted()
    with pytest.raises(WorkbenchError, match="not trained in full"):
        take_snapshot(model, full=True)
    model.merge_adapter()
    with pytest.raises(WorkbenchError, match="merged"):
        take_snapshot(model)
