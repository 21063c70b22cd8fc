"""The plain mechanism: a reward per rollout, its group-relative advantage on every token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from ..agent.trajectory import Trajectory
from ..config import Settings
from ..questions.graph import Item
from .advantages import group_advantages, on_generated
from .base import Scores

Reward = Callable[[Sequence[Item], Sequence[Trajectory]], Scores]
Log = Callable[
    [Sequence[Trajectory], Scores, Sequence[np.ndarray], float], dict[str, tuple[float, float]]
]


def nothing(
    trajectories: Sequence[Trajectory],
    scores: Scores,
    advantages: Sequence[np.ndarray],
    delta: float,
) -> dict[str, tuple[float, float]]:
    """Nothing to log beyond what every method logs."""
    return {}


class GroupRelativeParams(Settings):
    """``delta`` is δ of S1 Eq. 8 (ε in S3)."""

    delta: float = Field(default=1e-6, gt=0)


def each_in_a_row(items: Sequence[Item], group_size: int) -> list[int]:
    """The default plan: every item ``group_size`` times in a row."""
    return [i for i in range(len(items)) for _ in range(group_size)]


@dataclass(frozen=True)
class GroupRelative:
    """A method that is nothing but a reward: A = (r - mean) / (sd + δ) within the group.

    ``log`` gives the shares to log from (trajectories, scores, advantages, δ).
    """

    name: str
    params: GroupRelativeParams
    reward: Reward
    log: Log = nothing

    def plan(self, items: Sequence[Item], group_size: int) -> list[int]:
        return each_in_a_row(items, group_size)

    def score(self, items: Sequence[Item], trajectories: Sequence[Trajectory]) -> Scores:
        return self.reward(items, trajectories)

    def advantages(
        self, items: Sequence[Item], trajectories: Sequence[Trajectory], scores: Scores
    ) -> list[np.ndarray]:
        groups = [trajectory.group for trajectory in trajectories]
        return on_generated(
            group_advantages(scores.reward, groups, self.params.delta), trajectories
        )

    def shares(
        self,
        items: Sequence[Item],
        trajectories: Sequence[Trajectory],
        scores: Scores,
        advantages: Sequence[np.ndarray],
    ) -> dict[str, tuple[float, float]]:
        return self.log(trajectories, scores, advantages, self.params.delta)

    def after_update(self, step: int) -> dict[str, float]:
        return {}
