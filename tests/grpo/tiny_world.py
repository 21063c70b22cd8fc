"""A world small enough to train in a second: a 2-layer Llama, toy rollouts, a toy reward.

Loaded by path from conftest.py and from the subprocess tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from workbench.agent.trajectory import Segment, Trajectory
from workbench.config import Settings
from workbench.grpo.config import GRPOConfig, LoraConfig, ObjectiveConfig, OptimiserConfig
from workbench.grpo.trainer import Trainer
from workbench.methods.base import Scores
from workbench.methods.group_relative import GroupRelative, GroupRelativeParams
from workbench.questions.graph import Item
from workbench.seeding import torch_generator

VOCABULARY, GOOD = 23, range(3, 10)
KILLED = {"steps": 9, "lora": LoraConfig(rank=4, dropout=0.1), "mini_batch_questions": 2}


def tiny_model(seed: int = 0):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config).eval()


def items(count: int) -> list[Item]:
    return [Item(f"q{i}", f"question {i}", ("x",), "1-hop", (), "train") for i in range(count)]


@dataclass
class ToyEngine:
    model: object
    tokenizer: object
    tokens_processed: int = 0

    def refresh(self) -> None:
        """Nothing to do: it runs the trained model itself."""


class ToyAgent(Settings):
    """Nothing to set."""


@torch.no_grad()
def toy_rollout(engine, searcher, questions, agent, sampling, seed, samples_per_item):
    """Prompt of 2-4 tokens, two generated ones, two observed ones, 2-4 generated ones."""
    trajectories = []
    for question in questions:
        number = int(question.item_id[1:])
        prompt = 2 + number % 3
        rng = torch_generator("toy", seed, question.item_id)
        ids = (torch.arange(prompt) + number) % (VOCABULARY - 1) + 1
        ids, logp = ids.repeat(samples_per_item, 1), torch.full((samples_per_item, prompt), np.nan)
        codes = [Segment.PROMPT] * prompt
        for code in [Segment.QUERY] * 2 + [Segment.OBSERVATION] * 2 + [Segment.ANSWER] * 4:
            logits = engine.model(ids).logits[:, -1].float()
            p = (logits / (sampling.temperature or 1e-3)).softmax(-1)
            new = torch.multinomial(p, 1, generator=rng)
            observed = code == Segment.OBSERVATION
            ids = torch.cat([ids, torch.full_like(new, 21) if observed else new], 1)
            logp = torch.cat([logp, p.gather(1, new).log() * (np.nan if observed else 1)], 1)
            codes.append(code)
        for sample in range(samples_per_item):
            n = len(codes) - (number + sample) % 3
            engine.tokens_processed += n
            tokens, logprobs = ids[sample, :n].numpy(), logp[sample, :n].numpy()
            trajectories.append(
                Trajectory(
                    item_id=question.item_id,
                    group=question.item_id,
                    sample=sample,
                    seed=seed,
                    tokens=tokens.astype(np.int32),
                    segments=np.array(codes[:n], np.uint8),
                    logprobs=logprobs.astype(np.float32),
                    topk_ids=np.zeros((n, 0), np.int32),
                    topk_logprobs=np.zeros((n, 0), np.float32),
                    searches=[],
                    answer="x",
                    answer_span=(n - 1, n),
                    commit_index=n - 1,
                    valid=True,
                    invalid_reason="",
                    truncated=False,
                    turns=2,
                    invalid_actions=0,
                )
            )
    return trajectories


def toy_reward(questions, trajectories) -> Scores:
    """Share of generated tokens that lie in ``GOOD``."""
    share = np.array([np.isin(t.tokens[t.generated], GOOD).mean() for t in trajectories])
    return Scores(share, {"outcome": share})


def toy_method() -> GroupRelative:
    return GroupRelative("toy", GroupRelativeParams(), toy_reward)


def toy_config(**changes) -> GRPOConfig:
    settings = {
        "steps": 6,
        "questions_per_step": 4,
        "group_size": 4,
        "mini_batch_questions": None,
        "micro_batch_rollouts": 5,
        "lora": LoraConfig(rank=4, alpha=8.0),
        "optimiser": OptimiserConfig(lr=0.02, warmup_ratio=0.2),
        "objective": ObjectiveConfig(entropy_coefficient=0.001, kl_coefficient=0.001),
        "chunk_tokens": 60,
        "head_rows": 16,
        "checkpoint_every": 2,
    }
    return GRPOConfig(**{**settings, **changes})


def toy_trainer(folder, config: GRPOConfig | None = None, **changes) -> Trainer:
    arguments = {
        "model": tiny_model(),
        "tokenizer": None,
        "searcher": None,
        "items": items(11),
        "method": toy_method(),
        "agent": ToyAgent(),
        "config": config or toy_config(),
        "folder": folder,
        "seed": 3,
        "engine": ToyEngine,
        "rollout": toy_rollout,
    }
    return Trainer(**{**arguments, **changes})
