"""Seconds of a GRPO step by part, over the committed base policy and the embedded corpus.

    python benchmarks/grpo_step.py [--policy data/policy] [--questions 8 32] [--penalties]
        [--dtype auto|float32|bfloat16] [--no-share-prefixes] [--chunk-tokens 1024]
        [--transformers [--attention eager|sdpa]] [--repeat 5]

A step is what the trainer does: roll out questions x 5 with search, score by Search-R1's
reward, update LoRA adapters, with the settings of the tiny profile where nothing else is asked
for. ``--transformers`` runs the transformers model instead of the lean passes. The learning
rate is so small that the policy stays the same and every repeat is a sample of the same work.
``--penalties`` adds S1's entropy and KL terms: the KL needs a pass of the reference policy, and
without both terms the rollouts that got no credit need no pass at all.

Seconds are CPU seconds of this process, because a busy machine stretches the wall; wall seconds
stand beside them.  Medians over the repeats; the first step warms up.  Writes
benchmarks/results/grpo_step.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from workbench.agent.rollout import rollout
from workbench.corpus.embedded import load_pages
from workbench.corpus.source import read_chunks, read_pages
from workbench.corpus.store import Corpus, corpus_hash
from workbench.grpo import GRPOConfig, ObjectiveConfig
from workbench.grpo.trainer import ARITHMETIC, StepReport, Trainer
from workbench.methods import build_method, load_condition
from workbench.params import load_profile
from workbench.policy.store import COMMITTED, load_policy
from workbench.questions.build import build_items
from workbench.questions.names import page_names
from workbench.retrieval import build_index, load_searcher

RESULTS = Path(__file__).parent / "results" / "grpo_step.json"
PARTS = ("rollout", "score", "update")


def setting(policy: Path):
    """The tiny profile, its searcher, its training questions, and a policy."""
    profile = load_profile("tiny")
    chunks = read_chunks(profile.corpus)
    corpus = Corpus(chunks, corpus_hash(chunks))
    with tempfile.TemporaryDirectory() as folder:
        build_index(corpus, profile.retrieval, Path(folder) / "index")
        searcher = load_searcher(Path(folder) / "index", corpus, profile.retrieval)
    pages = read_pages(profile.corpus)
    made = build_items(pages, profile.questions, page_names(load_pages()))
    items = [item for item in made.items if item.split == "train"]
    model, tokenizer = load_policy(policy)
    return profile, searcher, items, model, tokenizer


class Clock:
    """CPU and wall seconds of each call of the functions it wraps, by part."""

    def __init__(self) -> None:
        self.cpu: dict[str, list[float]] = defaultdict(list)
        self.wall: dict[str, list[float]] = defaultdict(list)

    def wrap(self, part: str, inner):
        def timed(*args, **kwargs):
            cpu, wall = time.process_time(), time.perf_counter()
            result = inner(*args, **kwargs)
            self.cpu[part].append(time.process_time() - cpu)
            self.wall[part].append(time.perf_counter() - wall)
            return result

        return timed


def measure(world, questions: int, args) -> dict:
    profile, searcher, items, tokenizer = world
    objective = ObjectiveConfig() if args.penalties else profile.grpo.objective
    changes = {
        "steps": args.repeat + 1,
        "questions_per_step": questions,
        "objective": objective,
        "optimiser": profile.grpo.optimiser.model_copy(update={"lr": 1e-12}),
        "dtype": args.dtype,
        "lean": not args.transformers,
        "attention": args.attention,
        "chunk_tokens": args.chunk_tokens,
        "share_prefixes": args.share_prefixes,
        "checkpoint_every": args.repeat + 1,
    }
    config = GRPOConfig(**(dict(profile.grpo) | changes))
    reports: list[StepReport] = []
    clock = Clock()
    model, _ = load_policy(args.policy)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            tokenizer=tokenizer,
            searcher=searcher,
            items=items,
            method=build_method(load_condition("search_r1")),
            agent=profile.agent,
            config=config,
            folder=folder,
            seed=0,
            on_step=[reports.append],
            rollout=clock.wrap("rollout", rollout),
        )
        trainer.method = Timed(trainer.method, clock)
        trainer.updater.update = clock.wrap("update", trainer.updater.update)
        trainer.run()
        arithmetic = json.loads((Path(folder) / ARITHMETIC).read_text())
    reports = reports[1:]
    tokens = median(r.metrics["tokens"] for r in reports)
    result = {
        "rollouts": f"{questions}x{config.group_size}",
        "arithmetic": arithmetic,
        "tokens": tokens,
        "generated_tokens": median(r.metrics["generated_tokens"] for r in reports),
        "update_share": median(
            r.metrics["update_tokens"] / r.metrics["generated_tokens"] for r in reports
        ),
        "prefill_ratio": median(r.metrics["prefill_ratio"] for r in reports),
        "searches": median(r.metrics["searches"] for r in reports),
        "cpu_seconds": {part: median(clock.cpu[part][1:]) for part in PARTS},
        "wall_seconds": {part: median(clock.wall[part][1:]) for part in PARTS},
    }
    total = sum(result["cpu_seconds"].values())
    result |= {"cpu_seconds_step": total, "tokens_per_cpu_second": tokens / total}
    return result


class Timed:
    """A method whose scoring and credit are timed together as the part "score"."""

    def __init__(self, method, clock: Clock):
        self.method, self.name, self.params = method, method.name, method.params
        self.plan, self.after_update, self.shares = method.plan, method.after_update, method.shares
        self._clock = clock

    def score(self, items, trajectories):
        return self._clock.wrap("score", self._both)(items, trajectories)

    def _both(self, items, trajectories):
        scores = self.method.score(items, trajectories)
        self._advantages = self.method.advantages(items, trajectories, scores)
        return scores

    def advantages(self, items, trajectories, scores):
        return self._advantages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--policy", type=Path, default=COMMITTED)
    parser.add_argument("--questions", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--penalties", action="store_true")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--attention", choices=["eager", "sdpa"])
    parser.add_argument("--chunk-tokens", type=int)
    parser.add_argument("--share-prefixes", action=argparse.BooleanOptionalAction)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    profile, searcher, items, _, tokenizer = setting(args.policy)
    for name in ("dtype", "attention", "chunk_tokens", "share_prefixes"):
        if getattr(args, name) is None:
            setattr(args, name, getattr(profile.grpo, name))
    results = []
    for questions in args.questions:
        result = measure((profile, searcher, items, tokenizer), questions, args)
        cpu, wall = result["cpu_seconds"], result["wall_seconds"]
        print(
            f"{result['rollouts']}: {result['cpu_seconds_step']:.2f} s cpu "
            f"({sum(wall.values()):.2f} s wall), {result['tokens']:.0f} tokens, "
            f"{result['tokens_per_cpu_second']:.0f} tokens/s\n  "
            + "  ".join(f"{part} {cpu[part]:.3f} ({wall[part]:.3f})" for part in PARTS)
            + f"\n  processed / trajectory tokens {result['prefill_ratio']:.3f}, "
            f"searches {result['searches']:.2f}, "
            f"{result['update_share']:.0%} of generated tokens in the update",
            flush=True,
        )
        results.append(result)
    record = {
        "machine": {"cpu": cpu_name(), "python": platform.python_version(), "threads": 1},
        "versions": {name: version(name) for name in ("torch", "transformers", "peft")},
        "settings": {
            "dtype": args.dtype,
            "lean": not args.transformers,
            "attention": args.attention,
            "chunk_tokens": args.chunk_tokens,
            "share_prefixes": args.share_prefixes,
            "penalties": args.penalties,
            "repeat": args.repeat,
        },
        "results": results,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(f"peak memory {record['peak_memory_mb']:.0f} MB")
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n")


def cpu_name() -> str:
    """The processor as the kernel names it, or the platform's word for it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
