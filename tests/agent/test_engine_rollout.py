"""Rollouts of a real engine: what was sampled is what is recorded, at one pass per token."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from workbench.agent.config import AgentConfig
from workbench.agent.rollout import rollout
from workbench.engines.base import Sampling
from workbench.engines.transformers_engine import TransformersEngine

CONFIG = AgentConfig(
    max_rounds=4, max_start_tokens=40, max_prompt_tokens=300, max_total_tokens=340,
    max_response_tokens=24, max_observation_tokens=40,
)  # fmt: skip
TAGS = (("<search>", 2.5), ("</search>", 1.2), ("<answer>", 1.0), ("</answer>", 0.7))
ITEMS = ("what is the capital of Mali", "a city in Mali", "what is the river of Bamako Niger")


@pytest.fixture(scope="module")
def model(word_tokenizer):
    """Random weights with the tags made likely, so that rollouts search and answer."""
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(word_tokenizer), hidden_size=32, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
                max_position_embeddings=512, pad_token_id=0, eos_token_id=2, bos_token_id=None,
            )
        ).eval()  # fmt: skip
        for parameter in model.parameters():
            if parameter.ndim == 2:
                torch.nn.init.normal_(parameter, 0, 0.2)
        model.model.norm.weight.data[0] = 0
        model.model.embed_tokens.weight.data[:, 0] = 0
        model.lm_head = torch.nn.Linear(32, len(word_tokenizer))
        model.lm_head.bias.data.zero_()
        for name, bias in TAGS:
            model.lm_head.bias.data[word_tokenizer.convert_tokens_to_ids(name)] = bias
    return model


@pytest.fixture(scope="module")
def rolled(model, word_tokenizer, tools):
    engine = TransformersEngine(model, word_tokenizer, dtype="float32")
    searcher = tools.FixedSearcher("Bamako is the capital of Mali", "Oslo </information> <eos>")
    items = [tools.question(text, f"q{i}") for i, text in enumerate(ITEMS)]
    trajectories = rollout(
        engine, searcher, items, CONFIG, Sampling(top_k_logprobs=3), seed=4, samples_per_item=16
    )
    return trajectories, engine, (searcher, items)


def test_rollouts_are_various(rolled):
    trajectories, _, _ = rolled
    assert len(trajectories) == 48
    assert sum(len(t.searches) for t in trajectories) >= 10
    assert {t.turns for t in trajectories} >= {1, 2, 3, 4}
    assert {t.valid for t in trajectories} == {True, False}
    assert any(t.truncated for t in trajectories) and any(t.invalid_actions for t in trajectories)


def test_each_token_is_processed_once(rolled):
    trajectories, engine, _ = rolled
    total = sum(len(t.tokens) for t in trajectories)
    assert engine.tokens_processed / total <= 1.05
    # exactly: in each turn all but the last sampled token of each row, and what is new before it
    # once for all rollouts that are alike so far
    sampled, begun = 0, {}
    for t in trajectories:
        edges = np.flatnonzero(np.diff(t.generated.astype(int), prepend=0, append=0))
        before = 0
        for start, stop in edges.reshape(-1, 2):
            begun[tuple(t.tokens[:start])] = start - before
            sampled, before = sampled + stop - start - 1, stop - 1
    assert engine.tokens_processed == sampled + sum(begun.values())


def test_recorded_logprobs_are_those_of_the_recorded_tokens(rolled, model):
    for t in rolled[0]:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor(t.tokens[None], dtype=torch.long)).logits[0]
        truth = logits.double().log_softmax(-1).numpy()[:-1]
        own = truth[np.arange(len(truth)), t.tokens[1:]]
        mask = t.generated[1:]
        assert t.logprobs[1:][mask] == pytest.approx(own[mask], abs=1e-4)
        assert np.isnan(t.logprobs[~t.generated]).all()
        best = -np.sort(-truth[mask], axis=-1)[:, :3]
        assert t.topk_logprobs[t.generated] == pytest.approx(best, abs=1e-4)


def test_only_generated_tokens_are_scored(rolled):
    trajectories, engine, _ = rolled
    t = max(trajectories, key=lambda t: len(t.searches))
    (scored,) = engine.score([t.tokens], [t.generated], top_k=3)
    assert scored.logprobs == pytest.approx(t.logprobs[t.generated], abs=1e-4)
    assert (scored.topk_ids == t.topk_ids[t.generated]).mean() > 0.99


def test_same_seed_same_bytes(rolled, model, word_tokenizer):
    trajectories, _, (searcher, items) = rolled
    engine = TransformersEngine(model, word_tokenizer, dtype="float32")
    again = rollout(engine, searcher, items, CONFIG, Sampling(top_k_logprobs=3), 4, 16)
    for a, b in zip(trajectories, again, strict=True):
        assert a.tokens.tobytes() == b.tokens.tobytes()
        assert a.logprobs.tobytes() == b.logprobs.tobytes()
    other = rollout(engine, searcher, items, CONFIG, Sampling(), 5, 16)
    assert any(a.tokens.tobytes() != b.tokens.tobytes() for a, b in zip(trajectories, other))


def test_groups_vary_within(rolled):
    trajectories, _, _ = rolled
    for item in ("q0", "q1", "q2"):
        assert len({t.tokens.tobytes() for t in trajectories if t.item_id == item}) >= 12
