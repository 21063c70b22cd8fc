"""The trainer with the real agent, engine, searcher and reward, on a random tiny policy."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from workbench.agent.config import AgentConfig
from workbench.agent.trajectory import Segment
from workbench.corpus.records import Chunk, Extent
from workbench.corpus.store import save_corpus
from workbench.grpo import GRPOConfig, LoraConfig, ObjectiveConfig, OptimiserConfig, read_log
from workbench.grpo.trainer import Trainer
from workbench.methods.base import Scores
from workbench.methods.group_relative import GroupRelative, GroupRelativeParams
from workbench.questions.graph import Item
from workbench.retrieval.config import RetrievalConfig
from workbench.retrieval.index import build_index
from workbench.retrieval.searcher import load_searcher
from workbench.seeding import torch_generator

TAGS = ["<think>", "</think>", "<search>", "</search>", "<information>", "</information>",
        "<answer>", "</answer>"]  # fmt: skip
CITIES = ["bamako", "paris", "oslo", "rome"]
AGENT = AgentConfig(
    max_rounds=3, passages=1, correction="again", max_start_tokens=16, max_prompt_tokens=80,
    max_response_tokens=12, max_observation_tokens=12, max_total_tokens=96,
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    words = ["<pad>", "<unk>", "<eos>", *TAGS, "Question:", "capital", "of", ":", "again", *CITIES]
    words += ["mali", "france", "norway", "italy"]
    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>",
        additional_special_tokens=TAGS,
    )  # fmt: skip


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    chunks = [
        Chunk(f"{c}#0", c, c, f"capital of {c} : {city}", (Extent(1, 0, 9),))
        for c, city in zip(("mali", "france", "norway", "italy"), CITIES)
    ]
    corpus = save_corpus(folder / "corpus.parquet", chunks)
    config = RetrievalConfig(encoder="bm25")
    build_index(corpus, config, folder / "bm25")
    return load_searcher(folder / "bm25", corpus, config)


def policy(tokenizer):
    import torch

    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
            max_position_embeddings=128, pad_token_id=0, bos_token_id=None, eos_token_id=2,
        )
    ).eval()  # fmt: skip
    generator = torch_generator("weights", 0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(0.15 * torch.randn(parameter.shape, generator=generator))
    return model


def validity(items, trajectories) -> Scores:
    """1 for a rollout with an answer: a reward that a random policy meets often enough."""
    valid = np.array([float(t.valid) for t in trajectories])
    return Scores(valid, {"outcome": valid})


def trainer(tokenizer, searcher, folder, steps, method):
    config = GRPOConfig(
        steps=steps,
        questions_per_step=4,
        group_size=8,
        mini_batch_questions=None,
        micro_batch_rollouts=16,
        objective=ObjectiveConfig(kl_coefficient=0.0, entropy_coefficient=0.0),
        lora=LoraConfig(rank=4, alpha=8.0),
        optimiser=OptimiserConfig(lr=0.01, warmup_ratio=0.0),
        checkpoint_every=2,
    )
    items = [
        Item(c, f"capital of {c}", (city,), "1-hop, single", (), "train")
        for c, city in zip(("mali", "france", "norway", "italy"), CITIES)
    ]
    seen = []
    return seen, Trainer(
        model=policy(tokenizer),
        tokenizer=tokenizer,
        searcher=searcher,
        items=items,
        method=method,
        agent=AGENT,
        config=config,
        folder=folder,
        seed=0,
        on_step=[seen.append],
    )


def test_real_rollouts_are_trained_on(tokenizer, searcher, tmp_path):
    method = GroupRelative("validity", GroupRelativeParams(), validity)
    seen, run = trainer(tokenizer, searcher, tmp_path, 12, method)
    run.run()
    rows = read_log(tmp_path)
    searched = [t for report in seen for t in report.trajectories if t.searches]
    assert searched and any(t.valid for report in seen for t in report.trajectories)
    for report in seen:
        for t, advantage in zip(report.trajectories, report.advantages):
            assert not advantage[t.segments == Segment.OBSERVATION].any()
            assert not advantage[t.segments == Segment.PROMPT].any()
    # Every token once, and the engine samples from the very policy that is trained.
    assert all(row["prefill_ratio"] <= 1.05 for row in rows)
    record = json.loads((tmp_path / "arithmetic.json").read_text())
    assert record["update"] == record["rollout"]
    assert record["update"]["name"] == "float32" and record["update"]["lean"]
    gaps = [row["logprob_gap"] for row in rows if "logprob_gap" in row]
    assert gaps and max(gaps) < 1e-4
    valid = [row["valid"] for row in rows]
    assert np.mean(valid[-4:]) > np.mean(valid[:4]) + 0.1


def test_a_resumed_run_repeats_the_unbroken_one(tokenizer, searcher, tmp_path):
    method = GroupRelative("validity", GroupRelativeParams(), validity)
    _, unbroken = trainer(tokenizer, searcher, tmp_path / "a", 4, method)
    unbroken.run()
    _, broken = trainer(tokenizer, searcher, tmp_path / "b", 4, method)
    for _ in range(3):
        broken._train_step()
    seen, resumed = trainer(tokenizer, searcher, tmp_path / "b", 4, method)
    resumed.run()
    assert [report.step for report in seen] == [3, 4]
    for name in ("final/adapter_model.safetensors", "metrics.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
