"""Evidence deletion: would the policy still give this answer without what it retrieved?

T(C) of S1 Eq. 1 takes the context just before the answer, removes every retrieved
observation, keeps question, queries and reasoning, and decodes deterministically.  The label
is 1 when the normalised answer changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..agent.config import AgentConfig
from ..agent.trajectory import Segment, Trajectory
from ..engines.base import Engine, Sampling
from ..errors import WorkbenchError
from ..evaluation.answers import normalise_answer


def deleted_context(trajectory: Trajectory) -> list[int]:
    """Token ids before the answer, its opening tag included, without the observations."""
    if trajectory.answer_span is None:
        raise WorkbenchError(
            "a trajectory without an answer has no context before it",
            where=trajectory.item_id,
            fix="delete evidence from valid trajectories only",
        )
    before = slice(0, trajectory.answer_span[0])
    kept = trajectory.segments[before] != Segment.OBSERVATION
    return trajectory.tokens[before][kept].tolist()


def answers_without_evidence(
    engine: Engine, trajectories: Sequence[Trajectory], agent: AgentConfig
) -> list[str]:
    """The greedy answer of each trajectory under deletion; equal contexts are decoded once.

    What does not close its answer tag within ``agent.max_response_tokens`` counts as it stands.
    """
    contexts = [tuple(deleted_context(t)) for t in trajectories]
    distinct = list(dict.fromkeys(contexts))
    stop = f"</{agent.answer_tag}>"
    decoded: dict[tuple[int, ...], str] = {}
    for start in range(0, len(distinct), engine.max_rows):
        rows = distinct[start : start + engine.max_rows]
        session = engine.open(rows, Sampling(temperature=0.0), seed=0)
        limits = [agent.max_response_tokens] * len(rows)
        for row, generation in zip(
            rows, session.generate(range(len(rows)), limits, (stop,)), strict=True
        ):
            ended = generation.finish == "eos"  # the EOS token is no part of an answer
            tokens = generation.tokens[:-1] if ended else generation.tokens
            text = engine.tokenizer.decode(tokens.tolist(), skip_special_tokens=False)
            decoded[row] = text.split(stop)[0].strip()
    return [decoded[c] for c in contexts]


def changed_under_deletion(
    engine: Engine, trajectories: Sequence[Trajectory], agent: AgentConfig
) -> np.ndarray:
    """s_chg of S1 Eq. 1: bool [N], True where the answer changes without the evidence."""
    without = answers_without_evidence(engine, trajectories, agent)
    return np.array(
        [
            normalise_answer(t.answer or "") != normalise_answer(answer)
            for t, answer in zip(trajectories, without, strict=True)
        ],
        dtype=bool,
    )
