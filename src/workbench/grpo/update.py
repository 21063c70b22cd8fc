"""The update: gradients of the objective over a rollout batch, and AdamW on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..agent.trajectory import Trajectory
from ..errors import WorkbenchError
from ..seeding import seed_of
from .config import GRPOConfig
from .forward import Chunk, ModelPass, Pass, backward, gather, pack, score, spread
from .lora import Policy
from .merged import MergedForward, MergedPass
from .metrics import TokenRecord
from .objective import low_variance_kl, surrogate
from .reduction import micro_batch_weights
from .trees import Rollout
from .workers import Workers

Arrays = list[np.ndarray]


@dataclass(slots=True)
class Batch:
    """One worker's rollouts of a step, selected tokens only.

    ``advantages`` and ``sampled`` (the engine's log-probs) are float32 [n_j] per rollout;
    ``mini_batch`` int [N] numbers the optimiser update each rollout belongs to.
    """

    rollouts: list[Rollout]
    advantages: Arrays
    sampled: Arrays
    mini_batch: np.ndarray


def make_batch(
    trajectories: Sequence[Trajectory], advantages: Sequence[np.ndarray], mini_batch: Sequence[int]
) -> Batch:
    """Select the policy-generated tokens.

    Raises
    ------
    WorkbenchError
        an advantage array does not fit its tokens, is not finite, or is non-zero off the
        generated mask; or a generated token has no recorded log-prob.
    """
    batch = Batch([], [], [], np.asarray(mini_batch, dtype=np.int64))
    for trajectory, values in zip(trajectories, advantages, strict=True):
        where = f"item {trajectory.item_id}, sample {trajectory.sample}"
        selected = trajectory.generated
        if values.shape != selected.shape:
            raise WorkbenchError(
                f"advantages {values.shape} for {selected.shape} tokens", where=where
            )
        if not np.isfinite(values).all() or values[~selected].any():
            raise WorkbenchError(
                "advantages must be finite, and 0 off the generated tokens", where=where
            )
        if np.isnan(trajectory.logprobs[selected]).any():
            raise WorkbenchError("a generated token has no log-prob", where=where)
        positions = np.flatnonzero(selected)
        batch.rollouts.append(Rollout(trajectory.tokens, positions, trajectory.group))
        batch.advantages.append(values[selected].astype(np.float32))
        batch.sampled.append(trajectory.logprobs[selected].astype(np.float32))
    return batch


class Updater:
    """Owns the optimiser. ``updates`` counts optimiser updates since the run began."""

    def __init__(self, policy: Policy, config: GRPOConfig, workers: Workers, seed: int):
        self.policy, self.config, self.workers, self.seed = policy, config, workers, seed
        self.updates = 0
        optimiser = config.optimiser
        self.optimiser = torch.optim.AdamW(
            policy.parameters.values(),
            lr=optimiser.lr,
            betas=optimiser.betas,
            eps=optimiser.eps,
            weight_decay=optimiser.weight_decay,
        )
        self._device = next(iter(policy.parameters.values())).device
        self._head = (config.temperature, config.head_rows)
        self._merged = None
        if policy.lean:
            self._merged = MergedForward(policy.model, policy.compute.torch)

    def update(self, batch: Batch, step: int) -> list[TokenRecord]:
        """All updates of one rollout batch; what each saw of its tokens, before stepping."""
        with self.policy.updating():
            return self._update(batch, step)

    def _update(self, batch: Batch, step: int) -> list[TokenRecord]:
        config = self.config
        everything = range(len(batch.rollouts))
        ref = old = None
        if config.objective.kl_coefficient:
            with self._reference() as reference:
                ref = self._score(reference, batch.rollouts, everything)
        if config.old_logprobs == "rollout":
            old = batch.sampled
        elif config.updates_per_step > 1:
            old = self._score(self._current(), batch.rollouts, everything)
        records = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of("dropout", self.seed, step, self.workers.rank))
            self.policy.model.train()
            for _ in range(config.epochs):
                for number in range(config.updates_per_step // config.epochs):
                    rows = np.flatnonzero(batch.mini_batch == number).tolist()
                    records.append(self._one_update(batch, rows, ref, old))
            self.policy.model.eval()
        return records

    def _current(self) -> Pass:
        """The policy as it is now."""
        if self._merged is None:
            return ModelPass(self.policy.causal_lm, self.policy.arithmetic)
        self._merged.refresh()
        return MergedPass(self._merged)

    @contextmanager
    def _reference(self) -> Iterator[Pass]:
        if self._merged is not None:
            yield MergedPass(self._merged, reference=True)
        else:
            with self.policy.reference() as model:
                yield ModelPass(model, self.policy.arithmetic)

    def _pack(self, rollouts: list[Rollout], rows: Sequence[int]) -> list[Chunk]:
        config = self.config
        return pack(rollouts, rows, config.chunk_tokens, config.share_prefixes, self._device)

    def _score(self, model: Pass, rollouts: list[Rollout], rows: Sequence[int]) -> Arrays:
        scored: Arrays = [np.zeros(0, np.float32)] * len(rollouts)
        for chunk in self._pack(rollouts, rows):
            logprobs, _ = score(model, chunk, *self._head)
            gather(chunk, logprobs, rollouts, scored)
        return scored

    def _one_update(
        self, batch: Batch, rows: list[int], ref: Arrays | None, old: Arrays | None
    ) -> TokenRecord:
        config, objective = self.config, self.config.objective
        counts = [len(batch.rollouts[row].positions) for row in rows]
        local, micro_batches = micro_batch_weights(counts, config.micro_batch_rollouts)
        micro_batches = self.workers.total(micro_batches)
        record = TokenRecord(self.updates)
        if micro_batches:
            weights: Arrays = [np.zeros(0, np.float32)] * len(batch.rollouts)
            for row, count, weight in zip(rows, counts, local / micro_batches):
                weights[row] = np.full(count, weight, dtype=np.float32)
            if not (objective.entropy_coefficient or objective.kl_coefficient):
                # Without credit and without a penalty a rollout's gradient is exactly 0.
                rows = [row for row in rows if batch.advantages[row].any()]
            model = self._current()
            for chunk in self._pack(batch.rollouts, rows):
                self._differentiate(model, chunk, batch, weights, ref, old, record)
            if self._merged is not None:
                self._merged.push_gradients()
            self._step(record)
        self.updates += 1
        return record

    def _differentiate(
        self, model: Pass, chunk: Chunk, batch: Batch, weights, ref, old, record: TokenRecord
    ) -> None:
        objective = self.config.objective
        weight, advantage = spread(chunk, weights), spread(chunk, batch.advantages)
        ref_logprob = None if ref is None else spread(chunk, ref)
        old_logprob = None if old is None else spread(chunk, old)

        def loss(logprob: Tensor, entropy: Tensor, part: Tensor) -> Tensor:
            before = logprob.detach() if old_logprob is None else old_logprob[part]
            value = surrogate(
                logprob, before, advantage[part], objective.epsilon, objective.dual_clip
            )
            if objective.entropy_coefficient:
                value = value + objective.entropy_coefficient * entropy
            if ref_logprob is not None:
                kl = low_variance_kl(logprob, ref_logprob[part], objective.kl_clip)
                value = value - objective.kl_coefficient * kl
            return -(weight[part] * value).sum()

        logprob, entropy = backward(model, chunk, *self._head, loss)
        record.add(
            logprobs=logprob,
            entropies=entropy,
            old=logprob if old_logprob is None else old_logprob,
            ref=ref_logprob,
            advantages=advantage,
            weights=weight,
            sampled=spread(chunk, batch.sampled),
        )

    def _step(self, record: TokenRecord) -> None:
        parameters = list(self.policy.parameters.values())
        for parameter in parameters:
            if parameter.grad is None:  # AdamW would otherwise skip its decay and moments
                parameter.grad = torch.zeros_like(parameter)
        self.workers.sum_gradients(parameters)
        bound = self.config.optimiser.max_grad_norm
        norm = torch.nn.utils.clip_grad_norm_(parameters, bound)
        record.grad_norm = float(norm)
        if not np.isfinite(record.grad_norm):
            raise WorkbenchError(
                f"the gradient norm is {record.grad_norm}",
                where=f"update {self.updates}",
                fix="lower the learning rate, or use float32",
            )
        record.lr = self.config.learning_rate(self.updates)
        for group in self.optimiser.param_groups:
            group["lr"] = record.lr
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
