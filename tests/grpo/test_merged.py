"""The update over merged weights against the transformers model with its adapters."""

from contextlib import nullcontext

import numpy as np
import peft
import pytest
import torch
import transformers

from workbench.grpo.forward import ModelPass, backward, pack, score
from workbench.grpo.lora import Policy
from workbench.grpo.merged import MergedForward, MergedPass, applicable
from workbench.grpo.trees import Rollout

VOCABULARY = 40


def adapted(kind, seed=0, **lora):
    """A random LoRA policy with grouped queries; gains and biases are away from 1 and 0."""
    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=VOCABULARY, hidden_size=24, intermediate_size=40, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=64,
        initializer_range=0.25, tie_word_embeddings=seed % 2 == 0,
    )  # fmt: skip
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    lora = {"target_modules": "all-linear", "r": 3, "lora_alpha": 5, **lora}
    model = peft.get_peft_model(model, peft.LoraConfig(**lora)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.normal_(1, 0.4)
            elif "lora_" in name:
                parameter.normal_(0, 0.3)
    return model


def rollouts():
    """Two groups whose members share prefixes of different lengths."""
    rng = np.random.default_rng(3)
    found = []
    for group in "ab":
        stem = rng.integers(1, VOCABULARY, 12)
        for keep in (4, 9, 12):
            tokens = np.concatenate([stem[:keep], rng.integers(1, VOCABULARY, 7)])
            positions = np.flatnonzero(rng.random(len(tokens)) < 0.5)
            found.append(Rollout(tokens, positions[positions > 0], group))
    return found


def differentiated(model, forward, chunk, head_rows):
    weights = torch.linspace(-1, 1, len(chunk.targets))

    def loss(logprobs, entropies, tokens):
        return (weights[tokens] * (logprobs + 0.3 * entropies)).sum()

    for parameter in model.parameters():
        parameter.grad = None
    found = backward(forward, chunk, 0.7, head_rows, loss)
    return found


def gradients(model):
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3"])
@pytest.mark.parametrize("share", [True, False])
def test_values_and_gradients_equal_the_models(kind, share):
    model = adapted(kind, seed=int(share))
    plain = ModelPass(model.get_base_model(), nullcontext)
    merged = MergedForward(model, torch.float32)
    merged.refresh()
    for chunk in pack(rollouts(), range(6), 60, share):
        expected = differentiated(model, plain, chunk, 1000)
        wanted = gradients(model)
        got = differentiated(model, MergedPass(merged), chunk, 5)
        merged.push_gradients()
        assert wanted.keys() == gradients(model).keys() and len(wanted) == 3 * 7 * 2
        for name, gradient in gradients(model).items():
            torch.testing.assert_close(gradient, wanted[name], atol=2e-4, rtol=1e-3, msg=name)
        for a, b in zip(got, expected, strict=True):
            torch.testing.assert_close(a, b, atol=1e-4, rtol=0)
        merged.refresh()
        for a, b in zip(score(MergedPass(merged), chunk, 0.7, 4), expected, strict=True):
            torch.testing.assert_close(a, b, atol=1e-4, rtol=0)
        with model.disable_adapter():
            without = score(plain, chunk, 0.7, 9)
        reference = score(MergedPass(merged, reference=True), chunk, 0.7, 9)
        torch.testing.assert_close(reference, without, atol=1e-4, rtol=0)
        assert (without[0] - expected[0]).abs().max() > 0.1


def test_some_layers_adapted_and_weights_that_move():
    model = adapted("Qwen2", target_modules=["k_proj", "down_proj"])
    plain = ModelPass(model.get_base_model(), nullcontext)
    merged = MergedForward(model, torch.float32)
    (chunk,) = pack(rollouts(), range(6), 1000, True)
    for _ in range(2):
        merged.refresh()
        differentiated(model, plain, chunk, 1000)
        wanted = gradients(model)
        differentiated(model, MergedPass(merged), chunk, 1000)
        merged.push_gradients()
        assert wanted.keys() == gradients(model).keys() and len(wanted) == 3 * 2 * 2
        for name, gradient in gradients(model).items():
            torch.testing.assert_close(gradient, wanted[name], atol=2e-4, rtol=1e-3, msg=name)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "lora_" in name:
                    parameter.mul_(-0.5)


def test_products_in_bfloat16_gradients_in_float32():
    model = adapted("Llama")
    results = []
    (chunk,) = pack(rollouts(), range(6), 1000, True)
    for dtype in (torch.float32, torch.bfloat16):
        merged = MergedForward(model, dtype)
        merged.refresh()
        differentiated(model, MergedPass(merged), chunk, 1000)
        merged.push_gradients()
        found = gradients(model)
        assert all(g.dtype == torch.float32 for g in found.values())
        results.append(torch.cat([g.flatten() for g in found.values()]))
    assert torch.cosine_similarity(*results, dim=0) > 0.99
    assert not torch.equal(*results)


def test_where_it_applies(world):
    assert applicable(adapted("Qwen3"))
    assert not applicable(adapted("Llama").get_base_model())
    assert not applicable(adapted("Llama", lora_dropout=0.1))
    assert not applicable(adapted("Llama", use_dora=True))
    assert not applicable(adapted("Llama", modules_to_save=["lm_head"], target_modules=["q_proj"]))
    for changes, lean in (
        ({}, True), ({"lean": False}, False), ({"trained": "full"}, False),
        ({"lora": {"dropout": 0.5}}, False),
    ):  # fmt: skip
        assert Policy(world.tiny_model(), world.toy_config(**changes), seed=0).lean == lean
