"""What a step logs of credit that is added to the outcome's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..agent.trajectory import Trajectory
from .advantages import group_advantages, group_rows, on_generated
from .base import Scores
from .local_credit import tied_outcomes
from .reversals import count_reversals

Shares = dict[str, tuple[float, float]]


def added_credit_shares(
    trajectories: Sequence[Trajectory],
    scores: Scores,
    advantages: Sequence[np.ndarray],
    delta: float,
) -> Shares:
    """Parts and wholes to log, comparing ``advantages`` with those of the outcome alone.

    ``tied_outcome_groups`` of groups have no outcome variance.  ``tied_credit`` of the credit
    mass lies in them, where mass is Σ_k |A_k - A_k^out| over a rollout's tokens.
    ``rank_reversals`` of pairs with unequal outcome and ``sign_reversals`` of rollouts with a
    non-zero outcome advantage are those of ``count_reversals``, a rollout's advantage being the
    mean over its generated tokens.
    """
    groups = [trajectory.group for trajectory in trajectories]
    outcome = scores.parts["outcome"]
    tied = tied_outcomes(outcome, groups)
    base = on_generated(group_advantages(outcome, groups, delta), trajectories)
    mass = np.array(
        [np.abs(a.astype(np.float64) - b).sum() for a, b in zip(advantages, base, strict=True)]
    )
    means = [
        float(values[trajectory.generated].mean()) if trajectory.generated.any() else 0.0
        for values, trajectory in zip(advantages, trajectories)
    ]
    found = count_reversals(outcome, np.array(means), groups, delta)
    rows = group_rows(groups)
    return {
        "tied_outcome_groups": (float(sum(tied[r[0]] for r in rows)), float(len(rows))),
        "tied_credit": (float(mass[tied].sum()), float(mass.sum())),
        "rank_reversals": (float(found.rank), float(found.pairs)),
        "sign_reversals": (float(found.sign), float(found.nonzero)),
    }
