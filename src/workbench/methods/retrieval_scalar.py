"""Retrieval progress as a bonus (S3 §3, "scalar"): R = r + α·Σ_t e_t, then GRPO.

r is answer F1, e_t the new-maximum events of one retrieval signal (``methods.signals``).  The
whole trajectory shares the advantage z(R).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from pydantic import Field

from ..agent.trajectory import Trajectory
from ..questions.graph import Item
from .added_credit import added_credit_shares
from .base import Context, Method, Scores
from .group_relative import GroupRelative, GroupRelativeParams
from .outcome_f1 import reward as outcome_f1
from .signals import TRAINING_DIGITS, Signal, SignalName, build_signal, retrieval_events


class Params(GroupRelativeParams):
    """``alpha`` is α; ``digits`` the decimals of a potential (None: exact)."""

    signal: SignalName
    alpha: float = Field(default=0.25, ge=0)
    digits: int | None = Field(default=TRAINING_DIGITS, ge=1)


def reward(
    params: Params, signal: Signal, items: Sequence[Item], trajectories: Sequence[Trajectory]
) -> Scores:
    """F1 plus the bonus; parts "outcome" (F1) and "progress" (Σ_t e_t, in [0, 1])."""
    scores = outcome_f1(items, trajectories)
    events = retrieval_events(signal, items, trajectories, params.digits)
    progress = np.array([e.sum() for e in events])
    return replace(
        scores,
        reward=scores.reward + params.alpha * progress,
        parts=scores.parts | {"progress": progress},
    )


def build(params: Params, context: Context) -> Method:
    """The method with these params; coverage signals need ``context.chunks``."""
    signal = build_signal(params.signal, context.chunks)
    return GroupRelative(
        "retrieval_scalar", params, partial(reward, params, signal), added_credit_shares
    )
