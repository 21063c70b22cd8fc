"""Search-R1 as S1 compares with it (§7.2): r = e + b·e·1[N = 0].

e is 1 for a valid answer that matches exactly, N the number of executed searches, b the
direct bonus.  What S1 changed against the original Search-R1: the direct bonus, "matched" to
the largest one of Search-G1; the original rewards exact match alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from pydantic import Field

from ..agent.trajectory import Trajectory
from ..evaluation.answers import exact_match
from ..questions.graph import Item
from .base import Context, Method, Scores
from .group_relative import GroupRelative, GroupRelativeParams


class Params(GroupRelativeParams):
    """``direct_bonus`` is b; 0 gives plain exact match."""

    direct_bonus: float = Field(default=0.5, ge=0)


def reward(
    direct_bonus: float, items: Sequence[Item], trajectories: Sequence[Trajectory]
) -> Scores:
    """Exact match plus the bonus; parts "outcome" (e) and "direct_bonus" (b·e·1[N = 0])."""
    correct, direct = np.zeros(len(trajectories)), np.zeros(len(trajectories))
    for i, (item, trajectory) in enumerate(zip(items, trajectories, strict=True)):
        correct[i] = exact_match(trajectory.answer if trajectory.valid else None, item.answers)
        direct[i] = not trajectory.searches
    bonus = direct_bonus * correct * direct
    return Scores(correct + bonus, {"outcome": correct, "direct_bonus": bonus})


def build(params: Params, context: Context) -> Method:
    """The method with these params; it needs nothing of the context."""
    return GroupRelative("search_r1", params, partial(reward, params.direct_bonus))
