"""The loop: draw questions, roll out, score, credit, update; log; checkpoint; resume."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..agent.trajectory import Trajectory
from ..config import Settings
from ..engines.base import Engine, Sampling
from ..evaluation.answers import exact_match, f1_score
from ..methods.base import Attached, Method, Scores
from ..questions.graph import Item
from ..runs import stable_hash
from ..seeding import seed_of
from .checkpoint import (
    State,
    check_identity,
    find_checkpoint,
    load_checkpoint,
    load_method_state,
    save_checkpoint,
    weights_hash,
)
from .config import GRPOConfig
from .lora import Policy
from .method_state import state_hash, state_of
from .metrics import rollout_metrics, rollout_rows, share_metrics, token_metrics
from .runlog import RunLog
from .stream import QuestionStream
from .update import Updater, make_batch
from .workers import Workers

FINAL = "final"
ARITHMETIC = "arithmetic.json"


@dataclass(slots=True)
class StepReport:
    """What a step callback gets: ``step`` steps are done; this worker's rollouts of the step.

    ``metrics`` holds the logged metrics and seconds of the step over all workers.
    """

    step: int
    steps: int
    metrics: dict[str, float]
    trajectories: list[Trajectory]
    scores: Scores
    advantages: list[np.ndarray]


class Trainer:
    """Trains ``model`` by GRPO in ``folder`` and continues there after a kill.

    Parameters
    ----------
    model, tokenizer : the base policy, float32; ``model`` is changed in place.
    searcher : retrieval for the rollouts.
    items : training questions, the same list on every worker.
    method : who is rolled out, rewards and credit; a method with state (``methods.base``) is
        built anew for every training run.
    agent : the agent's settings, handed to ``rollout``.
    config, seed : the run's numbers and the name of its random draws.
    folder : ``metrics.jsonl``, ``timings.jsonl``, ``arithmetic.json`` (in which dtypes it runs
        and why), ``checkpoints/`` and, when complete, ``final/`` (the LoRA adapter, or the
        model when it is trained in full).
    eval_items : questions rolled out once each before the first step and every
        ``config.eval_every`` steps.
    on_step : callables that get each ``StepReport`` (on the first worker).
    engine : builds the engine from (model, tokenizer), where the model is a PeftModel under
        "lora"; default the transformers engine in the update's arithmetic.  Its
        ``refresh()`` is called whenever the weights have changed.
    rollout : the rollout function; default ``workbench.agent``'s.

    Raises
    ------
    WorkbenchError
        too few questions, a folder started with other params, or only damaged checkpoints.
    """

    def __init__(
        self,
        *,
        model,
        tokenizer,
        searcher,
        items: Sequence[Item],
        method: Method,
        agent: Settings,
        config: GRPOConfig,
        folder: str | Path,
        seed: int,
        eval_items: Sequence[Item] = (),
        on_step: Sequence[Callable[[StepReport], None]] = (),
        engine: Callable[..., Engine] | None = None,
        rollout: Callable[..., list[Trajectory]] | None = None,
    ):
        if engine is None:
            from ..engines.transformers_engine import TransformersEngine

            engine = partial(TransformersEngine, dtype=config.dtype, lean=config.lean)
        if rollout is None:
            from ..agent.rollout import rollout
        self.config, self.seed, self.method, self.agent = config, seed, method, agent
        self.searcher, self.items, self.eval_items = searcher, list(items), list(eval_items)
        self.folder, self.on_step, self._rollout = Path(folder), tuple(on_step), rollout
        self.stream = QuestionStream(len(self.items), config.questions_per_step, seed)
        self._by_id = {item.item_id: item for item in (*self.items, *self.eval_items)}
        base = dict(model.named_parameters())
        self.workers = Workers(next(iter(base.values())).device)
        self._identity = {
            "seed": seed,
            "method": {"name": method.name, "params": method.params.model_dump(mode="json")},
            "grpo": config.model_dump(mode="json"),
            "agent": agent.model_dump(mode="json"),
            "policy": weights_hash(base),
            "questions": stable_hash([i.item_id for i in self.items]),
            "eval_questions": stable_hash([i.item_id for i in self.eval_items]),
            "workers": self.workers.size,
        }
        self.policy = Policy(model, config, seed)
        if isinstance(method, Attached):
            method.attach(self.policy.model)
        if (state := state_of(method)) is not None:
            self._identity["method"]["state"] = state_hash(state)
        self.engine = engine(self.policy.model, tokenizer)
        self.updater = Updater(self.policy, config, self.workers, seed)
        self.step = 0
        self._log = RunLog(self.folder)
        self._resume()

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    def run(self) -> Path:
        """Train to the last step; the ``final`` folder."""
        config = self.config
        if self.step == 0 and self._eval_due(0):
            metrics, seconds = self._evaluate()
            self._write(metrics, {"seconds_eval": seconds})
        try:
            while self.step < config.steps:
                self._train_step()
        finally:
            if isinstance(self.method, Attached):
                self.method.release()
        final = self.folder / FINAL
        if self.workers.first:
            self.policy.save(final)
        self.workers.wait()
        return final

    def _train_step(self) -> None:
        clock, step = time.perf_counter, self.step
        started = clock()
        processed = self.engine.tokens_processed
        questions, mini_batches = self._share(step)
        trajectories = self._roll_out(questions, step)
        mini_batch_of = {q.item_id: b for q, b in zip(questions, mini_batches)}
        asked = [self._by_id[t.item_id] for t in trajectories]
        processed = self.engine.tokens_processed - processed
        rolled_out = clock()
        scores = self.method.score(asked, trajectories)
        advantages = self.method.advantages(asked, trajectories, scores)
        scored = clock()
        batch = make_batch(
            trajectories, advantages, [mini_batch_of[t.item_id] for t in trajectories]
        )
        records = self.updater.update(batch, step)
        self.engine.refresh()
        updated = clock()
        self.step += 1
        after = self.method.after_update(self.step)
        sums = [r.sums(self.config.objective, r is records[0]) for r in records]
        rows = self.workers.gather(rollout_rows(trajectories, scores, advantages))
        metrics = rollout_metrics(rows)
        shares = self.method.shares(asked, trajectories, scores, advantages)
        metrics |= share_metrics(self.workers.gather([shares]))
        metrics |= token_metrics(self.workers.gather(sums), len(records))
        metrics["grad_norm"] = float(np.mean([r.grad_norm for r in records]))
        metrics["lr"] = records[-1].lr
        metrics["prefill_ratio"] = self.workers.total(processed) / max(1.0, metrics["tokens"])
        metrics |= after
        timings = {
            "seconds_rollout": rolled_out - started,
            "seconds_score": scored - rolled_out,
            "seconds_update": updated - scored,
            "seconds_after": clock() - updated,
        }
        if self._eval_due(self.step):
            evaluated, timings["seconds_eval"] = self._evaluate()
            metrics |= evaluated
        timings["seconds"] = clock() - started
        self._write(metrics, timings)
        self._checkpoint()
        if self.workers.first:
            report = StepReport(
                self.step, self.config.steps, metrics | timings, trajectories, scores, advantages
            )
            for callback in self.on_step:
                callback(report)

    def _share(self, step: int) -> tuple[list[Item], list[int]]:
        """This worker's questions of a step and the mini-batch of each."""
        rows, size = self.stream.rows(step), self.config.mini_batch
        questions, numbers = [], []
        for number, start in enumerate(range(0, len(rows), size)):
            mine = self.workers.share(rows[start : start + size])
            questions += [self.items[row] for row in mine]
            numbers += [number] * len(mine)
        return questions, numbers

    def _roll_out(self, questions: list[Item], step: int) -> list[Trajectory]:
        """The rollouts that the method plans, questions of equal group size together."""
        if not questions:
            return []
        plan = self.method.plan(questions, self.config.group_size)
        counts = np.bincount(plan, minlength=len(questions))
        sampling = Sampling(temperature=self.config.temperature, top_p=self.config.top_p)
        trajectories = []
        for count in sorted(set(counts.tolist()) - {0}):
            trajectories += self._rollout(
                self.engine,
                self.searcher,
                [q for q, c in zip(questions, counts) if c == count],
                self.agent,
                sampling,
                seed_of("rollout", self.seed, step, self.workers.rank),
                samples_per_item=count,
            )
        return trajectories

    def _eval_due(self, step: int) -> bool:
        every = self.config.eval_every
        due = every is not None and (step % every == 0 or step == self.config.steps)
        return due and bool(self.eval_items)

    def _evaluate(self) -> tuple[dict[str, float], float]:
        """``eval_*`` metrics of one rollout per evaluation question, and seconds."""
        started = time.perf_counter()
        trajectories = self._rollout(
            self.engine,
            self.searcher,
            self.workers.share(self.eval_items),
            self.agent,
            Sampling(temperature=self.config.eval_temperature),
            seed_of("eval", self.seed, self.workers.rank),
            samples_per_item=1,
        )
        asked = [self._by_id[t.item_id] for t in trajectories]
        scores = self.method.score(asked, trajectories)
        rows = rollout_rows(trajectories, scores, [np.zeros(1)] * len(trajectories))
        for row, item, trajectory in zip(rows, asked, trajectories):
            answer = trajectory.answer if trajectory.valid else None
            row["em"] = exact_match(answer, item.answers)
            row["f1"] = f1_score(answer, item.answers)
        rows = self.workers.gather(rows)
        names = {"reward": "reward_mean", "searches": "searches", "em": "em", "f1": "f1"}
        names |= {"direct": "direct", "valid": "valid"}
        metrics = {
            f"eval_{metric}": float(np.mean([row[name] for row in rows]))
            for name, metric in names.items()
        }
        return metrics, time.perf_counter() - started

    def _write(self, metrics: dict[str, float], timings: dict[str, float]) -> None:
        if self.workers.first:
            self._log.append(self.step, metrics, timings)

    def _checkpoint(self) -> None:
        due = self.step % self.config.checkpoint_every == 0 or self.step == self.config.steps
        if due and self.workers.first:
            state = State(self.step, self.updater.updates, self._log.sizes(), self._identity)
            save_checkpoint(
                self.checkpoints,
                state,
                self.policy.parameters,
                self.updater.optimiser,
                self.config.keep_checkpoints,
                state_of(self.method),
            )

    def _resume(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        found = find_checkpoint(self.checkpoints)
        self.workers.wait()
        logged: dict[str, int] = {}
        if found is not None:
            path, state = found
            check_identity(state, self._identity, path)
            load_checkpoint(path, self.policy.parameters, self.updater.optimiser)
            if (carried := load_method_state(path, state)) is not None:
                self.method.restore(carried)
            self.engine.refresh()
            self.step, self.updater.updates, logged = state.step, state.updates, state.logged
        if self.workers.first:
            self._log.cut(logged)
            self._record_arithmetic()

    def _record_arithmetic(self) -> None:
        record = {"update": self.policy.compute.record() | {"lean": self.policy.lean}}
        if (compute := getattr(self.engine, "compute", None)) is not None:
            lean = getattr(self.engine, "lean", None) is not None
            record["rollout"] = compute.record() | {"lean": lean}
        (self.folder / ARITHMETIC).write_text(json.dumps(record, indent=1) + "\n")
