"""The two places at which S1 reads the policy: end of the prompt, and commitment to an answer.

A *context* is the int32 [n] array of tokens up to and including the one whose state is read.
"""

from __future__ import annotations

import numpy as np

from ..agent.trajectory import Trajectory
from ..errors import WorkbenchError


def is_searched(trajectory: Trajectory) -> bool:
    """Valid with at least one executed search: where reliance d is defined (S1 Eq. 1)."""
    return trajectory.valid and bool(trajectory.searches)


def prompt_context(trajectory: Trajectory) -> np.ndarray:
    """The search-enabled prompt P; its last token carries h_p, which B reads.

    Raises
    ------
    WorkbenchError : the trajectory starts with no prompt.
    """
    if not trajectory.prompt_length:
        raise WorkbenchError("no prompt tokens", where=f"trajectory of {trajectory.item_id}")
    return trajectory.tokens[: trajectory.prompt_length]


def commit_context(trajectory: Trajectory) -> np.ndarray:
    """All tokens to the last one of the answer, which carries h_ans, which D reads.

    Raises
    ------
    WorkbenchError : the trajectory commits to no answer.
    """
    if not 0 <= trajectory.commit_index < len(trajectory.tokens):
        raise WorkbenchError(
            f"no answer-commit token (index {trajectory.commit_index} of "
            f"{len(trajectory.tokens)} tokens)",
            where=f"trajectory of {trajectory.item_id}",
            fix="read valid trajectories only",
        )
    return trajectory.tokens[: trajectory.commit_index + 1]
