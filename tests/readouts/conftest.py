"""Random Qwen2 models of a few thousand parameters, trajectories, and separable features."""

import numpy as np
import pytest
import torch

from workbench.agent.trajectory import SearchRecord, Segment, Trajectory
from workbench.readouts.heads import head_of
from workbench.readouts.probes import fit_probe

VOCABULARY, HIDDEN, BLOCKS = 40, 16, 3


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def make_model():
    def make(seed=0, **changes):
        from transformers import Qwen2Config, Qwen2ForCausalLM

        with torch.random.fork_rng():
            torch.manual_seed(seed)
            sizes = {
                "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": BLOCKS,
                "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 24,
                "max_position_embeddings": 64, "initializer_range": 0.4,
            }  # fmt: skip
            return Qwen2ForCausalLM(Qwen2Config(**(sizes | changes))).eval()

    return make


@pytest.fixture(scope="session")
def make_adapted(make_model):
    """A PeftModel whose adapters are not zero; ``adapter`` seeds them, ``seed`` the base."""

    def make(seed=0, adapter=1, rank=2):
        import peft

        model = peft.get_peft_model(
            make_model(seed),
            peft.LoraConfig(r=rank, lora_alpha=4.0, target_modules=["q_proj", "down_proj"]),
        )
        randomise(model, adapter)
        return model.eval()

    return make


def randomise(model, seed):
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=draws) * 0.5)


@pytest.fixture(scope="session")
def rerandomise():
    return randomise


@pytest.fixture(scope="session")
def make_trajectory():
    """A trajectory of question ``q``: prompt, then per search a call and what came back."""

    def make(q=0, searches=1, valid=True, seed=0):
        rng = np.random.default_rng([q, searches, valid, seed])
        prompt = np.random.default_rng(q).integers(3, VOCABULARY, 4 + q % 3)
        codes = [Segment.PROMPT] * len(prompt)
        for _ in range(searches):
            codes += [Segment.QUERY] * 2 + [Segment.OBSERVATION] * 5
        start = len(codes) + 1
        codes += [Segment.REASONING] + [Segment.ANSWER] * 2 + [Segment.REASONING]
        tokens = np.concatenate([prompt, rng.integers(3, VOCABULARY, len(codes) - len(prompt))])
        n, record = len(codes), SearchRecord("q", 0, (0, 0), (0, 0), (0, 0), [], [], [], [])
        return Trajectory(
            item_id=f"q{q}",
            group=f"q{q}",
            sample=0,
            seed=0,
            tokens=tokens.astype(np.int32),
            segments=np.array(codes, np.uint8),
            logprobs=np.zeros(n, np.float32),
            topk_ids=np.zeros((n, 0), np.int32),
            topk_logprobs=np.zeros((n, 0), np.float32),
            searches=[record] * searches,
            answer="x" if valid else None,
            answer_span=(start, start + 2) if valid else None,
            commit_index=start + 1 if valid else -1,
            valid=valid,
            invalid_reason="" if valid else "truncated",
            truncated=not valid,
            turns=1,
            invalid_actions=0,
        )

    return make


@pytest.fixture(scope="session")
def separable():
    """(values [N, L, H], labels, questions); place ``signal`` tells the label, the rest not."""

    def make(questions=40, each=3, layers=3, signal=1, width=8, shift=3.0, seed=0):
        rng = np.random.default_rng(seed)
        names = [f"q{i}" for i in range(questions) for _ in range(each)]
        labels = (rng.random(len(names)) < 0.4).astype(int)
        labels[:2] = 0, 1
        values = rng.normal(size=(len(names), layers, width)).astype(np.float32)
        values[:, signal, 0] += shift * labels
        return values, labels, names

    return make


@pytest.fixture(scope="session")
def make_head():
    """A logistic head fitted on random states of the models' width."""

    def make(layer, seed=0, architecture="logistic"):
        rng = np.random.default_rng(seed)
        states = rng.normal(size=(60, HIDDEN))
        labels = (states[:, 0] + states[:, 1] > 0).astype(int)
        return head_of(fit_probe(architecture, states, labels), architecture, layer)

    return make
