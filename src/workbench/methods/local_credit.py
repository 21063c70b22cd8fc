"""Action-aligned credit (S3 §3, App. A.3): who is eligible, ℓ, and what the controls do to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..agent.trajectory import Segment, Trajectory
from ..seeding import generator
from .advantages import group_rows, standardise

# Why the local term of a trajectory is disabled, in the order in which they are looked for:
# cut off by a budget; a query span that is no run of executed query tokens inside its call;
# record, event and span arrays that contradict each other; an executed query or an observation
# without its execution record.
REASONS = ("truncated", "query_span", "arrays", "no_record")
FLAT_RANGE = 1e-6  # outcomes of a group that differ by no more are tied


def disabled_reason(trajectory: Trajectory, events: np.ndarray) -> str:
    """One of ``REASONS``, or "" when each of ``events`` belongs to known query tokens."""
    if trajectory.truncated:
        return "truncated"
    searches = trajectory.searches
    executed = trajectory.segments == Segment.QUERY
    named = np.zeros_like(executed)
    for search in searches:
        (start, end), (call, call_end) = search.query_span, search.payload_span
        inside = 0 <= call <= start < end <= call_end <= len(executed)
        if not inside or not executed[start:end].all():
            return "query_span"
        named[start:end] = True
    places = [p for s in searches for p in (*s.payload_span, s.observation_span[0])]
    counts = [{len(s.chunk_ids), len(s.titles), len(s.texts), len(s.scores)} for s in searches]
    if (
        len(events) != len(searches)
        or not np.isfinite(events).all()
        or places != sorted(places)
        or len({s.query_span for s in searches}) < len(searches)
        or any(len(count) > 1 for count in counts)
    ):
        return "arrays"
    if (executed & ~named).any() or not all(_observed(trajectory, s) for s in searches):
        return "no_record"
    return ""


def residuals(
    events: Sequence[np.ndarray | None], groups: Sequence[str], delta: float
) -> list[np.ndarray]:
    """ℓ = z(z(e)) of every search: float64 [searches] per rollout, empty where not eligible.

    Parameters
    ----------
    events : events of each rollout; None for one that is not eligible.
    groups : group key of each rollout.
    delta : added to the sample standard deviation in both passes.

    Step t compares the t-th executed searches of a group's eligible rollouts.  Fewer than two
    of them, or equal events, give exactly 0.
    """
    credit = [np.zeros(0 if e is None else len(e)) for e in events]
    for rows in group_rows(groups):
        for t in range(max(len(credit[row]) for row in rows)):
            eligible = [row for row in rows if len(credit[row]) > t]
            step = np.array([events[row][t] for row in eligible])
            for row, value in zip(eligible, standardise(standardise(step, delta), delta)):
                credit[row][t] = value
    return credit


def permuted(
    masses: Sequence[np.ndarray], trajectories: Sequence[Trajectory], seed: int
) -> list[np.ndarray]:
    """Masses moved among the active (non-zero) ones of the same question and step.

    Fixed points are allowed.  The draw is named by ``seed``, the seed of the rollouts (which
    differs from training step to training step), the group and the search step, so a resumed
    run and a saved batch give the same permutation.
    """
    moved = [mass.copy() for mass in masses]
    groups = [trajectory.group for trajectory in trajectories]
    for rows in group_rows(groups):
        name = (seed, trajectories[rows[0]].seed, groups[rows[0]])
        for t in range(max(len(masses[row]) for row in rows)):
            active = [row for row in rows if len(masses[row]) > t and masses[row][t] != 0]
            order = generator("permuted-credit", *name, t).permutation(len(active))
            for row, source in zip(active, order):
                moved[row][t] = masses[active[source]][t]
    return moved


def tied_outcomes(
    outcome: np.ndarray, groups: Sequence[str], flat_range: float = FLAT_RANGE
) -> np.ndarray:
    """bool [N]: whether the outcomes of the rollout's whole group differ by ``flat_range`` at most.

    The group is complete: rollouts without local credit count too.
    """
    tied = np.zeros(len(groups), dtype=bool)
    for rows in group_rows(groups):
        tied[rows] = np.ptp(outcome[rows]) <= flat_range
    return tied


def on_queries(masses: np.ndarray, trajectory: Trajectory) -> np.ndarray:
    """Each search's mass spread evenly over its executed query tokens: float64 [T]."""
    credit = np.zeros(len(trajectory.tokens))
    for search, mass in zip(trajectory.searches, masses):
        start, end = search.query_span
        credit[start:end] += mass / (end - start)
    return credit


def _observed(trajectory: Trajectory, search) -> bool:
    start, end = search.observation_span
    return start < end and bool((trajectory.segments[start:end] == Segment.OBSERVATION).all())
