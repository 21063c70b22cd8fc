"""The two contexts of App. I.2 from our own trajectories, in the ids that were sampled."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from ..agent.config import AgentConfig
from ..agent.protocols import build_protocol
from ..agent.trajectory import Segment, Trajectory
from ..engines.base import Engine
from ..errors import WorkbenchError
from ..reports.record import Rollout
from .removal import NO_DOCUMENTS, NOTHING, TOO_LONG, Pair


def placeholder_ids(
    tokenizer: object, agent: AgentConfig, text: str = "[document removed]"
) -> list[int]:
    """Ids of an observation that says ``text``, in the frame of the agent's protocol."""
    protocol = build_protocol(agent.model_copy(update={"no_results": text}), tokenizer)
    return protocol.observation([], [], sys.maxsize).ids


def trajectory_pairs(
    trajectories: Sequence[Trajectory],
    rollouts: Sequence[Rollout],
    placeholder: Sequence[int],
    engine: Engine,
    segments: Sequence[Segment] = (Segment.ANSWER,),
) -> list[Pair]:
    """Contexts of our own trajectories: ``placeholder`` stands for each tool call's observation.

    Observations that no tool call returned (a correction, the forced message) stay.

    Parameters
    ----------
    rollouts : the records of ``trajectories``, in the same order.
    placeholder : ids of a whole observation, its frame included.
    segments : kinds of generated tokens that are scored, where they stand behind the first
        document; those before it cannot change.

    Raises
    ------
    WorkbenchError : the records are not those of the trajectories.
    """
    if [t.item_id for t in trajectories] != [r.question_id for r in rollouts]:
        raise WorkbenchError(
            f"{len(rollouts)} records are not those of {len(trajectories)} trajectories",
            where="trajectory_pairs",
            fix="give the records of the trajectories in their order",
        )
    new = np.asarray(placeholder, dtype=np.int64)
    return [
        _replaced(t, r, new, engine, segments) for t, r in zip(trajectories, rollouts, strict=True)
    ]


def _replaced(
    trajectory: Trajectory,
    rollout: Rollout,
    new: np.ndarray,
    engine: Engine,
    segments: Sequence[Segment],
) -> Pair:
    wanted = np.isin(trajectory.segments, list(segments))
    spans = sorted(s.observation_span for s in trajectory.searches)
    spans = [(a, b) for a, b in spans if a < b]
    if not spans:
        return Pair(rollout, NO_DOCUMENTS)
    wanted[: spans[0][1]] = False
    ids, marks, at = [], [], 0
    for start, end in [*spans, (len(wanted), len(wanted))]:
        ids += [trajectory.tokens[at:start], new if start < end else new[:0]]
        marks += [wanted[at:start], np.zeros(len(ids[-1]), dtype=bool)]
        at = end
    removed = np.concatenate(ids)
    if not wanted.any():
        return Pair(rollout, NOTHING)
    if max(len(removed), len(wanted)) > engine.max_length:
        return Pair(rollout, TOO_LONG)
    return Pair(
        rollout,
        "",
        tuple(map(int, trajectory.tokens)),
        tuple(map(int, removed)),
        wanted,
        np.concatenate(marks),
    )
