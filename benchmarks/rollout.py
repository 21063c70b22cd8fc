"""Seconds of multi-turn rollouts on CPU, by part, for a 2 M parameter Llama.

Every rollout searches twice and answers: three turns of about 25 tokens and two observations
of about 110, in groups of five per question.  The model's weights are random and its sampled
tokens are replaced by a script, so that the work is the same on every run; everything else is
the rollout of ``workbench.agent``: prefill, decoding over the cache, sampling with log-probs,
parsing, encoding observations.  With ``--direct`` that share of the groups answers at once, which
is closer to a policy that knows something.  ``--transformers`` runs the transformers model
instead of the lean pass.

    python benchmarks/rollout.py [--questions 8 32] [--direct 0] [--kv-heads 3]
        [--dtype float32] [--transformers] [--lora] [--repeat 3]

Reported are CPU seconds of this process (wall seconds in brackets), since a busy machine
stretches the wall.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from workbench.agent.config import AgentConfig
from workbench.agent.rollout import rollout
from workbench.engines.base import Sampling
from workbench.engines.lean_session import LeanSession
from workbench.engines.session import TransformersSession
from workbench.engines.transformers_engine import TransformersEngine
from workbench.questions.graph import Item

SPECIAL = ["<pad>", "<unk>", "<eos>", "<think>", "</think>", "<search>", "</search>",
           "<information>", "</information>", "<answer>", "</answer>"]  # fmt: skip
VOCABULARY = 4096
TURN, PASSAGE = 25, 34


class Clock:
    """CPU and wall seconds by part."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = defaultdict(float)
        self.wall: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, part: str):
        cpu, wall = time.thread_time(), time.perf_counter()
        yield
        self.cpu[part] += time.thread_time() - cpu
        self.wall[part] += time.perf_counter() - wall


def build_tokenizer():
    words = [*SPECIAL, *(f"w{i}" for i in range(VOCABULARY - len(SPECIAL)))]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>",
        additional_special_tokens=SPECIAL[3:],
    )  # fmt: skip


def build_model(kv_heads: int, lora: bool):
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=192, num_hidden_layers=4, num_attention_heads=3,
            num_key_value_heads=kv_heads, head_dim=64, intermediate_size=512,
            max_position_embeddings=2048, tie_word_embeddings=True, pad_token_id=0,
            bos_token_id=None, eos_token_id=2,
        )
    ).eval()  # fmt: skip
    if lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=8, target_modules="all-linear")).eval()
    return model


class Passages:
    """A searcher that answers at once: three passages that depend on the query."""

    def search(self, queries, k):
        return [[self._hit(query, rank) for rank in range(k)] for query in queries]

    def _hit(self, query, rank):
        rng = np.random.default_rng([sum(map(ord, query)), rank])
        text = " ".join(f"w{i}" for i in rng.integers(0, 4000, PASSAGE))
        chunk = SimpleNamespace(chunk_id=f"{query}/{rank}", title=f"w{rank}", text=text)
        return SimpleNamespace(chunk=chunk, score=1.0)


class Script:
    """What each row says turn by turn; lengths vary by a few tokens."""

    def __init__(self, tokenizer, questions: int, direct: float, samples: int):
        rng = np.random.default_rng(1)
        self.turns = []
        for row in range(questions * samples):
            answers_at_once = (row // samples) < direct * questions
            kinds = ["answer"] if answers_at_once else ["search", "search", "answer"]
            self.turns.append(
                [self._turn(tokenizer, rng, row, place, kind) for place, kind in enumerate(kinds)]
            )

    def _turn(self, tokenizer, rng, row, place, kind):
        inside = 4 if kind == "search" else 2
        count = TURN - 3 - inside + int(rng.integers(-5, 6))
        words = [f"w{i}" for i in rng.integers(0, 4000, count)]
        said = " ".join(f"w{(row * 7 + place * 3 + i) % 4000}" for i in range(inside))
        text = f"{' '.join(words)} </think> <{kind}> {said} </{kind}>"
        return tokenizer(text, add_special_tokens=False).input_ids


def instrument(engine: TransformersEngine, script: Script, clock: Clock) -> None:
    """Time the engine's parts and let the script choose the tokens."""

    class Scripted(TransformersSession if engine.lean is None else LeanSession):
        def generate(self, rows, limits, stop):
            self._turn_of = getattr(self, "_turn_of", [-1] * len(self._pending))
            for row in rows:
                self._turn_of[row] += 1
            with clock("engine"):
                return super().generate(rows, limits, stop)

        def _prefill(self, *args):
            with clock("prefill"):
                return super()._prefill(*args)

        def _step(self, *args):
            with clock("decode"):
                return super()._step(*args)

        def _sample(self, turn, logits):
            with clock("sample"):
                ids, logprobs = super()._sample(turn, logits)
            chosen = []
            for row in turn.rows:
                words = script.turns[row][self._turn_of[row]]
                chosen.append(words[min(turn.steps, len(words) - 1)])
            return torch.tensor(chosen), logprobs

    engine.open = lambda prompts, sampling, seed: Scripted(engine, prompts, sampling, seed)


def measure(questions: int, args, samples: int = 5) -> None:
    tokenizer, model = build_tokenizer(), build_model(args.kv_heads, args.lora)
    items = [Item(f"q{i}", " ".join(f"w{i * 11 + j}" for j in range(12)), ("w1",), "", (), "test")
             for i in range(questions)]  # fmt: skip
    script = Script(tokenizer, questions, args.direct, samples)
    config = AgentConfig(
        max_response_tokens=64, max_observation_tokens=160, max_start_tokens=64,
        max_prompt_tokens=600, max_total_tokens=700,
    )  # fmt: skip
    best, total_tokens = None, 0
    for _ in range(args.repeat + 1):  # the first run warms up
        clock = Clock()
        engine = TransformersEngine(
            model, tokenizer, dtype=args.dtype, merge=not args.unmerged, lean=not args.transformers,
            prefill_tokens=args.prefill_tokens,
        )  # fmt: skip
        instrument(engine, script, clock)
        with clock("total"):
            trajectories = rollout(
                engine, Passages(), items, config, Sampling(top_k_logprobs=args.top_k), 0, samples
            )
        total_tokens = sum(len(t.tokens) for t in trajectories)
        if best is None or clock.cpu["total"] < best.cpu["total"]:
            best = clock
    generated = sum(int(t.generated.sum()) for t in trajectories)
    assert all(t.valid for t in trajectories)
    cpu, wall = best.cpu, best.wall
    print(
        f"{questions}x{samples}: {cpu['total']:.2f} s cpu ({wall['total']:.2f} s wall); "
        f"{total_tokens} tokens, {generated} generated, "
        f"{total_tokens / cpu['total']:.0f} tokens/s\n"
        f"  prefill {cpu['prefill']:.2f}  decode {cpu['decode']:.2f}  sample {cpu['sample']:.2f}  "
        f"cache and bookkeeping "
        f"{cpu['engine'] - cpu['prefill'] - cpu['decode'] - cpu['sample']:.2f}  "
        f"environment {cpu['total'] - cpu['engine']:.2f}\n"
        f"  processed / trajectory tokens {engine.tokens_processed / total_tokens:.3f}, "
        f"padding {engine.tokens_padded / engine.tokens_processed:.3f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--direct", type=float, default=0.0)
    parser.add_argument("--kv-heads", type=int, default=3, choices=[1, 3])
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--unmerged", action="store_true")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--prefill-tokens", type=int, default=2048)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {args}")
    for questions in args.questions:
        measure(questions, args)


if __name__ == "__main__":
    main()
