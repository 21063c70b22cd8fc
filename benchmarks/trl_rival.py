"""A GRPO step beside TRL's GRPOTrainer: same model, prompts, group size and token budget.

    python benchmarks/trl_rival.py [--policy data/policy] [--questions 32] [--rounds 3]

Each side runs in a process of its own, one at a time, in turns; medians over the rounds.

What is equal: the policy in float32 on one core, LoRA of rank 8 on all linear layers, AdamW, the
prompts (a question, its query and the passages that BM25 finds, as a two-round agent would have
them before its last turn, cut to ``--prompt-tokens`` tokens), five completions per prompt of
exactly ``--completion-tokens`` tokens each (neither side may stop early, so both generate and
train on the same number of tokens), temperature 1, one update per batch of completions, no
entropy term, no KL unless ``--kl``, a reward that is cheap and never ties (so that every rollout
carries credit: skipping creditless rollouts, which the workbench does, would not be like for
like).  Both use the token mean over the batch (``loss_type="bnpo"`` there).

Why single-turn: TRL's multi-turn paths need either a chat template with tools, which this policy
does not have, or a rollout function of the user's own, which would measure that function.  One
long generation is TRL's strong case; with several turns it processes earlier turns again.

Each side runs at its best setting: the workbench sends the prompt that five completions share
through the model once, in generation and in the update; for TRL the faster of two update batch
sizes counts (``--trl-batches``), gradient checkpointing is off, and logging goes nowhere.
Seconds are CPU seconds of the process, wall seconds beside them.  Writes
benchmarks/results/trl_rival.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from grpo_step import Clock, cpu_name, setting

RESULTS = Path(__file__).parent / "results" / "trl_rival.json"
GROUP, RANK, ALPHA, LR, KL = 5, 8, 16.0, 1e-12, 0.001


def reward_of(ids) -> float:
    """Some number that two different completions hardly share."""
    return float(np.mean(np.asarray(ids) % 97) / 97)


def make_prompts(args):
    """The policy and, per question, prompt ids and the text that encodes to them."""
    profile, searcher, items, model, tokenizer = setting(args.policy)
    items = items[: args.questions * (args.steps + 1)]
    prompts = []
    for item, hits in zip(items, searcher.search([i.question for i in items])):
        passages = " ".join(f"({r}) {h.chunk.title}: {h.chunk.text}" for r, h in enumerate(hits, 1))
        text = (
            f"{profile.agent.prompt.format(question=item.question)} </think> "
            f"<search> {item.question} </search> <information> {passages} </information> <think>"
        )
        ids = tokenizer(text, add_special_tokens=False).input_ids[: args.prompt_tokens]
        # Decoded and encoded again, because TRL takes text; the ids of both sides are these.
        text = tokenizer.decode(ids)
        prompts.append((tokenizer(text, add_special_tokens=False).input_ids, text))
    return profile, items, prompts, model, tokenizer


def run_ours(args) -> dict:
    """The workbench's trainer with single-turn rollouts."""
    from functools import partial

    from workbench.agent.trajectory import Segment, Trajectory
    from workbench.engines.transformers_engine import TransformersEngine
    from workbench.grpo import GRPOConfig, LoraConfig, ObjectiveConfig, OptimiserConfig
    from workbench.grpo.trainer import Trainer
    from workbench.methods.base import Scores
    from workbench.methods.group_relative import GroupRelative, GroupRelativeParams

    profile, items, prompts, model, tokenizer = make_prompts(args)
    prompt_of = {item.item_id: ids for item, (ids, _) in zip(items, prompts)}

    def rollout(engine, searcher, questions, agent, sampling, seed, samples_per_item):
        rows = [q for q in questions for _ in range(samples_per_item)]
        session = engine.open([prompt_of[q.item_id] for q in rows], sampling, seed)
        numbers = list(range(len(rows)))
        generated = session.generate(numbers, [args.completion_tokens] * len(rows), ())
        session.drop(numbers)
        found = []
        for number, (question, new) in enumerate(zip(rows, generated)):
            prompt = prompt_of[question.item_id]
            segments = np.full(len(prompt) + len(new.tokens), Segment.REASONING, np.uint8)
            segments[: len(prompt)] = Segment.PROMPT
            blank = np.full(len(prompt), np.nan, np.float32)
            n = len(segments)
            found.append(
                Trajectory(
                    question.item_id, question.item_id, number % samples_per_item, seed,
                    np.concatenate([np.asarray(prompt, np.int32), new.tokens]), segments,
                    np.concatenate([blank, new.logprobs]), np.zeros((n, 0), np.int32),
                    np.zeros((n, 0), np.float32), [], None, None, -1, True, "", False, 1, 0,
                )
            )  # fmt: skip
        return found

    def reward(questions, trajectories):
        values = np.array([reward_of(t.tokens[t.generated]) for t in trajectories])
        return Scores(values, {"outcome": values})

    config = GRPOConfig(
        steps=args.steps + 1,
        questions_per_step=args.questions,
        group_size=GROUP,
        mini_batch_questions=None,
        micro_batch_rollouts=None,
        objective=ObjectiveConfig(entropy_coefficient=0.0, kl_coefficient=KL if args.kl else 0.0),
        lora=LoraConfig(rank=RANK, alpha=ALPHA),
        optimiser=OptimiserConfig(lr=LR, warmup_ratio=0.0),
        chunk_tokens=1024,
        share_prefixes=True,
        checkpoint_every=args.steps + 1,
    )
    clock, tokens = Clock(), []
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            tokenizer=tokenizer,
            searcher=None,
            items=items,
            method=GroupRelative("any", GroupRelativeParams(), reward),
            agent=profile.agent,
            config=config,
            folder=folder,
            seed=0,
            on_step=[lambda report: tokens.append(report.metrics["tokens"])],
            engine=partial(TransformersEngine, eos=[], dtype="float32"),
            rollout=clock.wrap("generation", rollout),
        )
        trainer.updater.update = clock.wrap("update", trainer.updater.update)
        trainer._train_step = clock.wrap("step", trainer._train_step)
        trainer.run()
    return summary(clock, tokens[1:])


def run_trl(args) -> dict:
    """TRL's trainer with transformers generation."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    _, _, prompts, model, tokenizer = make_prompts(args)
    total = args.questions * GROUP
    clock, tokens = Clock(), []

    def reward(completion_ids, **_):
        assert {len(ids) for ids in completion_ids} == {args.completion_tokens}
        return [reward_of(ids) for ids in completion_ids]

    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=args.trl_batch,
                gradient_accumulation_steps=total // args.trl_batch,
                num_generations=GROUP,
                max_completion_length=args.completion_tokens,
                generation_kwargs={"min_new_tokens": args.completion_tokens},
                max_steps=args.steps + 1,
                learning_rate=LR,
                lr_scheduler_type="constant",
                loss_type="bnpo",
                beta=KL if args.kl else 0.0,
                temperature=1.0,
                gradient_checkpointing=False,
                use_cpu=True,
                bf16=False,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                logging_strategy="no",
                shuffle_dataset=False,
            ),
            train_dataset=Dataset.from_dict({"prompt": [text for _, text in prompts]}),
            processing_class=tokenizer,
            peft_config=LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear"),
        )
        generate = trainer._generate_single_turn

        def counted(prompt_ids, *rest, **named):
            completions, logprobs = generate(prompt_ids, *rest, **named)
            tokens.append(sum(map(len, prompt_ids)) + sum(map(len, completions)))
            return completions, logprobs

        trainer._generate_single_turn = clock.wrap("generation", counted)

        class Steps(TrainerCallback):
            def on_step_begin(self, *_, **__):
                self.cpu, self.wall = time.process_time(), time.perf_counter()

            def on_step_end(self, *_, **__):
                clock.cpu["step"].append(time.process_time() - self.cpu)
                clock.wall["step"].append(time.perf_counter() - self.wall)

        trainer.add_callback(Steps())
        trainer.train()
    for seconds in (clock.cpu, clock.wall):
        seconds["update"] = [s - g for s, g in zip(seconds["step"], seconds["generation"])]
    return summary(clock, tokens[1:])


def summary(clock: Clock, tokens: list[float]) -> dict:
    """Medians over the steps after the first."""
    parts = ("generation", "update", "step")
    return {
        "tokens": median(tokens),
        "cpu_seconds": {part: median(clock.cpu[part][1:]) for part in parts},
        "wall_seconds": {part: median(clock.wall[part][1:]) for part in parts},
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_a_process(side: str, args) -> dict:
    """One run of one side in a fresh process."""
    command = [sys.executable, "-W", "ignore", __file__, "--side", side, "--policy", args.policy]
    for name in ("questions", "steps", "prompt_tokens", "completion_tokens", "trl_batch"):
        command += [f"--{name.replace('_', '-')}", getattr(args, name)]
    command += ["--kl"] if args.kl else []
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--policy", type=Path, default=None)
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--steps", type=int, default=2, help="measured steps after a first one")
    parser.add_argument("--prompt-tokens", type=int, default=100)
    parser.add_argument("--completion-tokens", type=int, default=50)
    parser.add_argument("--kl", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trl-batches", type=int, nargs="+", default=[40, 160])
    parser.add_argument("--trl-batch", type=int, default=40, help=argparse.SUPPRESS)
    parser.add_argument("--side", choices=["ours", "trl"], help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.policy is None:
        from workbench.policy.store import COMMITTED

        args.policy = COMMITTED
    torch.set_num_threads(1)
    if args.side:
        print(json.dumps(run_ours(args) if args.side == "ours" else run_trl(args)))
        return
    runs: dict[str, list[dict]] = {}
    batches = [batch for batch in args.trl_batches if args.questions * GROUP % batch == 0]
    for number in range(args.rounds):
        runs.setdefault("workbench", []).append(in_a_process("ours", args))
        for batch in batches:
            args.trl_batch = batch
            name = f"trl, update batches of {batch}"
            runs.setdefault(name, []).append(in_a_process("trl", args))
        print(f"round {number + 1} of {args.rounds} done", flush=True)
    table = {name: over_rounds(results) for name, results in runs.items()}
    ours = table["workbench"]
    rival = min((t for n, t in table.items() if n != "workbench"), key=lambda t: t["cpu"]["step"])
    for name, row in table.items():
        cpu = row["cpu"]
        print(
            f"{name:30} {cpu['step']:6.2f} s cpu a step ({row['wall']['step']:.2f} s wall): "
            f"generation {cpu['generation']:.2f}, update and rest {cpu['update']:.2f}; "
            f"{row['tokens']:.0f} tokens, {row['tokens'] / cpu['step']:.0f} tokens/s, "
            f"peak {row['peak_memory_mb']:.0f} MB"
        )
    ratio = {part: rival["cpu"][part] / ours["cpu"][part] for part in ours["cpu"]}
    print("faster than TRL by " + ", ".join(f"{part} {r:.2f}x" for part, r in ratio.items()))
    record = {
        "machine": {"cpu": cpu_name(), "python": platform.python_version(), "threads": 1},
        "versions": {n: version(n) for n in ("torch", "transformers", "peft", "trl")},
        "settings": {
            "rollouts": f"{args.questions}x{GROUP}",
            "prompt_tokens": args.prompt_tokens,
            "completion_tokens": args.completion_tokens,
            "kl": args.kl,
            "rounds": args.rounds,
            "steps": args.steps,
        },
        "results": table,
        "ratio": ratio,
    }
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n")


def over_rounds(results: list[dict]) -> dict:
    """Medians of the rounds."""

    def middle(seconds: str) -> dict[str, float]:
        return {p: median(r[seconds][p] for r in results) for p in results[0][seconds]}

    return {
        "tokens": median(r["tokens"] for r in results),
        "cpu": middle("cpu_seconds"),
        "wall": middle("wall_seconds"),
        "peak_memory_mb": median(r["peak_memory_mb"] for r in results),
    }


if __name__ == "__main__":
    main()
