"""Evidence deletion: would the policy still give this answer without what it retrieved?

T(C) of S1 Eq. 1 takes the context just before the answer, removes every retrieved
observation, keeps question, queries and reasoning, and decodes deterministically.  The label
is 1 when the normalised answer changes.  Stricter and paired constructions of the label are
in ``workbench.interventions.variants``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..agent.config import AgentConfig
from ..agent.trajectory import Segment, Trajectory
from ..engines.base import Engine
from ..errors import WorkbenchError
from ..evaluation.answers import normalise_answer
from .decode import Answerer


def answer_context(trajectory: Trajectory) -> list[int]:
    """C of S1 Eq. 1: all token ids before the answer, its opening tag included.

    Raises
    ------
    WorkbenchError : the trajectory has no answer.
    """
    return trajectory.tokens[: _answer_start(trajectory)].tolist()


def deleted_context(trajectory: Trajectory) -> list[int]:
    """T(C): token ids before the answer, its opening tag included, without the observations.

    Whatever the environment said goes, corrections of invalid actions included.

    Raises
    ------
    WorkbenchError : the trajectory has no answer.
    """
    before = slice(0, _answer_start(trajectory))
    kept = trajectory.segments[before] != Segment.OBSERVATION
    return trajectory.tokens[before][kept].tolist()


def strict_context(trajectory: Trajectory, frame: Collection[int] = ()) -> list[int]:
    """T(C) without the intermediate reasoning (S1 Table A6): prompt, calls, the opened answer.

    Parameters
    ----------
    frame : ids that stay although they are coded as reasoning: the tags that open and close a
        thought, without which what is left would be no turn of the protocol.

    Raises
    ------
    WorkbenchError : the trajectory has no answer.
    """
    before = slice(0, _answer_start(trajectory))
    tokens, segments = trajectory.tokens[before], trajectory.segments[before]
    thought = (segments == Segment.REASONING) & ~np.isin(tokens, list(frame))
    return tokens[(segments != Segment.OBSERVATION) & ~thought].tolist()


def answers_without_evidence(
    engine: Engine, trajectories: Sequence[Trajectory], agent: AgentConfig
) -> list[str]:
    """The greedy answer of each trajectory under deletion; equal contexts are decoded once.

    What does not close its answer tag within ``agent.max_response_tokens`` counts as it stands.
    """
    return Answerer(engine, agent).answers([deleted_context(t) for t in trajectories])


def changed_under_deletion(
    engine: Engine, trajectories: Sequence[Trajectory], agent: AgentConfig
) -> np.ndarray:
    """s_chg of S1 Eq. 1: bool [N], True where the answer changes without the evidence."""
    without = answers_without_evidence(engine, trajectories, agent)
    return changed([t.answer or "" for t in trajectories], without)


def changed(before: Sequence[str], after: Sequence[str]) -> np.ndarray:
    """bool [N], True where the normalised answers differ (ν of S1 Eq. 1)."""
    return np.array(
        [normalise_answer(a) != normalise_answer(b) for a, b in zip(before, after, strict=True)],
        dtype=bool,
    )


def _answer_start(trajectory: Trajectory) -> int:
    if trajectory.answer_span is None:
        raise WorkbenchError(
            "a trajectory without an answer has no context before it",
            where=trajectory.item_id,
            fix="delete evidence from valid trajectories only",
        )
    return trajectory.answer_span[0]
