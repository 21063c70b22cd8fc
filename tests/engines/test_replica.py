"""Merged copies of adapter models, refresh, dtypes, models that are refused."""

import numpy as np
import peft
import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from workbench.engines.base import Sampling
from workbench.engines.dtype import compute_dtype
from workbench.engines.replica import mergeable
from workbench.engines.transformers_engine import TransformersEngine
from workbench.errors import WorkbenchError

SEQUENCE, MASK = list(range(9, 29)), [False] + [True] * 19


def adapted(make_model, seed=1, scale=0.3, tied=False, **config):
    """A LoRA model whose adapters do something."""
    torch.manual_seed(seed)
    config = {"target_modules": "all-linear", "lora_dropout": 0.5, **config}
    model = make_model(tie_word_embeddings=tied)
    model = peft.get_peft_model(model, peft.LoraConfig(r=4, **config)).eval()
    shake(model, scale)
    return model


def shake(model, scale):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_(0, scale)


def logprobs(engine):
    return engine.score([SEQUENCE], [np.array(MASK)])[0].logprobs


def truth(model):
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([SEQUENCE])).logits[0].double().log_softmax(-1)
    return logits[torch.arange(19), torch.tensor(SEQUENCE[1:])].numpy()


def test_merged_copy_computes_what_the_adapter_model_computes(tokenizer, make_model):
    model = adapted(make_model)
    before = {name: p.clone() for name, p in model.named_parameters()}
    for merge in (True, False):
        engine = TransformersEngine(model, tokenizer, dtype="float32", merge=merge)
        assert logprobs(engine) == pytest.approx(truth(model), abs=1e-4)
    with model.disable_adapter():
        base = truth(model)
    assert abs(truth(model) - base).max() > 0.1
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert all(p.requires_grad == ("lora_" in name) for name, p in model.named_parameters())


def test_refresh_follows_the_adapters(tokenizer, make_model):
    model = adapted(make_model)
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    old = logprobs(engine)
    shake(model, 0.4)
    assert logprobs(engine).tobytes() == old.tobytes()
    engine.refresh()
    assert logprobs(engine) == pytest.approx(truth(model), abs=1e-4)
    with model.disable_adapter():
        engine.refresh()
        assert logprobs(engine) == pytest.approx(truth(model), abs=1e-4)
    # another model of the same shape, e.g. a checkpoint
    other = adapted(make_model, seed=7)
    engine.refresh(other)
    assert logprobs(engine) == pytest.approx(truth(other), abs=1e-4)


def test_building_an_engine_draws_nothing(tokenizer, make_model):
    model = adapted(make_model)
    state = torch.get_rng_state()
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    engine.open([[9]], Sampling(), 0).generate([0], [5], ())
    assert torch.equal(state, torch.get_rng_state())


def test_a_plain_model_is_run_itself_and_stays_in_training(tokenizer, make_model):
    model = make_model(attention_dropout=0.5).train()
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    old = logprobs(engine)
    assert model.training
    assert logprobs(engine).tobytes() == old.tobytes()  # no dropout
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    assert abs(logprobs(engine) - old).max() > 0.1
    first = engine.open([[9]], Sampling(temperature=0.0), 0).generate([0], [9], ())[0]
    again = engine.open([[9]], Sampling(temperature=0.0), 0).generate([0], [9], ())[0]
    assert first.logprobs.tobytes() == again.logprobs.tobytes() and model.training


def test_what_cannot_be_merged_runs_as_it_is(tokenizer, make_model):
    for config in (
        {"use_dora": True},
        {"modules_to_save": ["lm_head"], "target_modules": ["q_proj"]},
        {"target_modules": ["embed_tokens", "q_proj"]},
        {"target_modules": ["lm_head", "q_proj"], "tied": True},
    ):
        model = adapted(make_model, **config)
        assert not mergeable(model)
        engine = TransformersEngine(model, tokenizer, dtype="float32")
        assert logprobs(engine) == pytest.approx(truth(model), abs=1e-4)
        shake(model, 0.2)
        assert logprobs(engine) == pytest.approx(truth(model), abs=1e-4)
    assert not mergeable(make_model())
    assert mergeable(adapted(make_model, tied=True))


def test_bfloat16_is_a_copy_in_bfloat16(tokenizer, make_model):
    model = adapted(make_model, scale=0.1)
    engine = TransformersEngine(model, tokenizer, dtype="bfloat16")
    assert engine.lean.head.dtype == torch.bfloat16
    assert model.get_output_embeddings().weight.dtype == torch.float32
    assert engine.compute.record()["name"] == "bfloat16"
    values = logprobs(engine)
    assert values.dtype == "float32" and 0 < abs(values - truth(model)).max() < 0.5
    generation = engine.open([[9, 10]], Sampling(), 0).generate([0], [9], ())[0]
    scored = engine.score([[9, 10, *generation.tokens]], [mask_of(2, len(generation.tokens))])[0]
    assert scored.logprobs == pytest.approx(generation.logprobs, abs=0.1)


def mask_of(zeros, ones):
    return np.arange(zeros + ones) >= zeros


def test_compute_dtype(monkeypatch):
    def on(parameters, lean=False, **has):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has)
        return compute_dtype("auto", "cpu", parameters, lean).name

    assert on(2_000_000, amx_bf16=True) == "bfloat16"
    assert on(2_000_000, avx512_bf16=True) == "float32"
    assert on(109_000_000, avx512_bf16=True) == "bfloat16"
    assert on(109_000_000) == on(109_000_000, lean=True) == "float32"
    assert on(2_000_000, lean=True, avx512_bf16=True) == "bfloat16"
    assert compute_dtype("bfloat16").torch is torch.bfloat16
    record = compute_dtype("float32").record()
    assert record == {
        "choice": "float32", "name": "float32", "device": "cpu", "reason": "asked for",
    }  # fmt: skip
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    assert compute_dtype("auto", "cuda").name == "float32"


def test_models_that_the_cache_cannot_hold_are_refused(tokenizer):
    sizes = dict(
        vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, intermediate_size=16, head_dim=8, pad_token_id=0,
    )  # fmt: skip
    for model, what in (
        (MistralForCausalLM(MistralConfig(**sizes, sliding_window=8)), "sliding_attention layers"),
        (Gemma2ForCausalLM(Gemma2Config(**sizes)), "sliding_attention layers"),
        (GraniteForCausalLM(GraniteConfig(**sizes, logits_scaling=8.0)), "logits_scaling"),
    ):
        with pytest.raises(WorkbenchError, match=what):
            TransformersEngine(model, tokenizer, dtype="float32")
