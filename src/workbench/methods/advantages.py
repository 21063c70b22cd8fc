"""Group-relative advantages (S1 Eq. 8) and their place on the tokens; float64 arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..agent.trajectory import Trajectory
from ..errors import WorkbenchError


def group_rows(groups: Sequence[str]) -> list[np.ndarray]:
    """Rows int [n] of each group, groups in order of appearance."""
    rows: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    return [np.asarray(r) for r in rows.values()]


def standardise(values: np.ndarray, delta: float) -> np.ndarray:
    """``(values - mean) / (sample sd + delta)``; exactly 0 when all are equal or there is one.

    The exact 0 matters: without it the rounding of a mean becomes credit.
    """
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2 or values.max() == values.min():
        return np.zeros(len(values))
    return (values - values.mean()) / (values.std(ddof=1) + delta)


def group_advantages(rewards: np.ndarray, groups: Sequence[str], delta: float) -> np.ndarray:
    """Advantage float64 [N] of each rollout among the rollouts of its group.

    Parameters
    ----------
    rewards : float [N].
    groups : group key of each rollout; groups may differ in size and lie in any order.
    delta : δ, added to the sample standard deviation (G - 1).

    Raises
    ------
    WorkbenchError : a reward is not finite, or the lengths differ.
    """
    rewards = np.asarray(rewards, dtype=np.float64)
    if rewards.shape != (len(groups),):
        raise WorkbenchError(f"{rewards.shape} rewards for {len(groups)} rollouts")
    if not np.isfinite(rewards).all():
        row = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise WorkbenchError(f"reward {rewards[row]} is not finite", where=f"rollout {row}")
    advantages = np.zeros(len(rewards))
    for rows in group_rows(groups):
        advantages[rows] = standardise(rewards[rows], delta)
    return advantages


def on_generated(values: np.ndarray, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
    """One value per rollout laid on its policy-generated tokens: float32 [T] each, 0 elsewhere."""
    if len(values) != len(trajectories):
        raise WorkbenchError(f"{len(values)} advantages for {len(trajectories)} rollouts")
    return [
        np.where(trajectory.generated, np.float32(value), np.float32(0))
        for value, trajectory in zip(values, trajectories)
    ]
