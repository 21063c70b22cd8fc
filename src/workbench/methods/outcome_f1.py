"""Outcome only (OO, S3 §4): r = F1(answer, gold answers); 0 without a valid answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..agent.trajectory import Trajectory
from ..evaluation.answers import f1_score
from ..questions.graph import Item
from .base import Context, Method, Scores
from .group_relative import GroupRelative, GroupRelativeParams


class Params(GroupRelativeParams):
    """Nothing but δ."""


def reward(items: Sequence[Item], trajectories: Sequence[Trajectory]) -> Scores:
    """Answer F1 of each rollout; the outcome is the reward."""
    f1 = np.asarray(
        [
            f1_score(trajectory.answer if trajectory.valid else None, item.answers)
            for item, trajectory in zip(items, trajectories, strict=True)
        ],
        dtype=np.float64,
    )
    return Scores(f1, {"outcome": f1})


def build(params: Params, context: Context) -> Method:
    """The method with these params; it needs nothing of the context."""
    return GroupRelative("outcome_f1", params, reward)
