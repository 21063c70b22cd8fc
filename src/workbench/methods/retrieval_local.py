"""Retrieval progress as credit of the search that made it (S3 §3, "local", and its controls).

    A_ik = A_i^out + λ Σ_t 1[k ∈ Q_it] · L_it·ℓ_it / |Q_it|,     ℓ_it = z(z(e_·t))_i

A^out is the GRPO advantage of answer F1, Q_it the executed query tokens of rollout i's t-th
search, L_it the tokens of its full call, e the new-maximum events of one retrieval signal
(``methods.signals``) and z the standardisation over the question's eligible rollouts at step t
(``methods.local_credit``).  A rollout that is not eligible keeps A^out alone.

Controls: ``permute`` moves the masses ℓ·L among the active searches of a question and step
before they are divided by the recipient's |Q|; ``outcome_groups`` keeps the local term in
groups of mixed outcome ("no_flat") or of tied outcome ("flat_only") only.

Rounding potentials first, as S3 does, gives equal gains unequal sizes in graphs whose shares
are no decimals: of three nodes the second is worth .3334, the others .3333, and the double
standardisation makes full-size credit of that difference.  ``digits: null`` is without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from ..agent.trajectory import Trajectory
from ..questions.graph import Item
from .added_credit import Shares, added_credit_shares
from .advantages import group_advantages, on_generated
from .base import Context, Method, Scores
from .group_relative import GroupRelativeParams, each_in_a_row
from .local_credit import (
    FLAT_RANGE,
    REASONS,
    disabled_reason,
    on_queries,
    permuted,
    residuals,
    tied_outcomes,
)
from .outcome_f1 import reward as outcome_f1
from .signals import TRAINING_DIGITS, Signal, SignalName, build_signal, retrieval_events


class Params(GroupRelativeParams):
    """``weight`` is λ; ``digits`` the decimals of a potential (None: exact).

    ``permutation_seed`` names the draws of ``permute``; ``flat_range`` is the largest
    difference of outcomes inside a tied group.
    """

    signal: SignalName
    weight: float = Field(default=0.5, ge=0)
    digits: int | None = Field(default=TRAINING_DIGITS, ge=1)
    permute: bool = False
    permutation_seed: int = 1729
    outcome_groups: Literal["all", "no_flat", "flat_only"] = "all"
    flat_range: float = Field(default=FLAT_RANGE, ge=0)


@dataclass(frozen=True)
class RetrievalLocal:
    """The method; its reward is the outcome."""

    name: str
    params: Params
    signal: Signal

    def plan(self, items: Sequence[Item], group_size: int) -> list[int]:
        return each_in_a_row(items, group_size)

    def score(self, items: Sequence[Item], trajectories: Sequence[Trajectory]) -> Scores:
        scores = outcome_f1(items, trajectories)
        scores.parts["progress"] = np.array([e.sum() for e in self._events(items, trajectories)])
        return scores

    def masses(
        self, items: Sequence[Item], trajectories: Sequence[Trajectory], outcome: np.ndarray
    ) -> list[np.ndarray]:
        """λ·ℓ·L of each search, after the controls: float64 [searches], empty if not eligible."""
        params, groups = self.params, [t.group for t in trajectories]
        events = [
            None if disabled_reason(trajectory, e) else e
            for trajectory, e in zip(trajectories, self._events(items, trajectories))
        ]
        masses = [
            credit * [end - start for start, end in _payloads(trajectory, len(credit))]
            for trajectory, credit in zip(trajectories, residuals(events, groups, params.delta))
        ]
        if params.permute:
            masses = permuted(masses, trajectories, params.permutation_seed)
        tied = tied_outcomes(outcome, groups, params.flat_range)
        keep = {"all": tied | ~tied, "no_flat": ~tied, "flat_only": tied}[params.outcome_groups]
        return [params.weight * mass * kept for mass, kept in zip(masses, keep)]

    def advantages(
        self, items: Sequence[Item], trajectories: Sequence[Trajectory], scores: Scores
    ) -> list[np.ndarray]:
        outcome = scores.parts["outcome"]
        groups = [trajectory.group for trajectory in trajectories]
        shared = on_generated(group_advantages(outcome, groups, self.params.delta), trajectories)
        return [
            (base + on_queries(mass, trajectory)).astype(np.float32)
            for base, mass, trajectory in zip(
                shared, self.masses(items, trajectories, outcome), trajectories
            )
        ]

    def shares(
        self,
        items: Sequence[Item],
        trajectories: Sequence[Trajectory],
        scores: Scores,
        advantages: Sequence[np.ndarray],
    ) -> Shares:
        """Those of ``added_credit_shares``, and of rollouts whose local term is disabled.

        ``local_disabled`` and, by reason, ``local_disabled_<reason>`` are shares of rollouts;
        ``credited_searches`` of executed searches have a local term; ``query_sign_reversals``
        of searches with a non-zero outcome advantage have the opposite sign on their query.
        """
        events = self._events(items, trajectories)
        reasons = [disabled_reason(t, e) for t, e in zip(trajectories, events)]
        outcome, total = scores.parts["outcome"], float(len(trajectories))
        groups = [trajectory.group for trajectory in trajectories]
        base = group_advantages(outcome, groups, self.params.delta)
        searches = [
            (mass, shared, float(values[search.query_span[0]]))
            for masses, shared, values, trajectory in zip(
                self.masses(items, trajectories, outcome), base, advantages, trajectories
            )
            for mass, search in zip(masses, trajectory.searches)
        ]
        pushed = [(shared, value) for _, shared, value in searches if shared]
        executed = sum(len(trajectory.searches) for trajectory in trajectories)
        return {
            **added_credit_shares(trajectories, scores, advantages, self.params.delta),
            "local_disabled": (float(sum(map(bool, reasons))), total),
            **{f"local_disabled_{r}": (float(reasons.count(r)), total) for r in REASONS},
            "credited_searches": (float(sum(m != 0 for m, _, _ in searches)), float(executed)),
            "query_sign_reversals": (
                float(sum(shared * value < 0 for shared, value in pushed)),
                float(len(pushed)),
            ),
        }

    def after_update(self, step: int) -> dict[str, float]:
        return {}

    def _events(
        self, items: Sequence[Item], trajectories: Sequence[Trajectory]
    ) -> list[np.ndarray]:
        return retrieval_events(self.signal, items, trajectories, self.params.digits)


def build(params: Params, context: Context) -> Method:
    """The method with these params; coverage signals need ``context.chunks``."""
    return RetrievalLocal("retrieval_local", params, build_signal(params.signal, context.chunks))


def _payloads(trajectory: Trajectory, count: int) -> list[tuple[int, int]]:
    """Token range of each full call; none where the local term is disabled."""
    return [search.payload_span for search in trajectory.searches[:count]]
