"""Other constructions of the evidence-reliance label (S1 Tables A6 and A16).

==================  ====================================  ==================================
construction        answer with evidence                  answer without evidence
==================  ====================================  ==================================
deletion (Eq. 1)    the rollout's own                     greedy, observations removed
strict (A6)         the rollout's own                     greedy, reasoning removed as well
paired_greedy       greedy behind the realised context    greedy, observations removed
paired_sampling     sampled behind the realised context   sampled with the same random
(A16: CRN)                                                numbers, observations removed
==================  ====================================  ==================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..agent.trajectory import Trajectory
from ..engines.base import Sampling
from ..errors import WorkbenchError
from .decode import Answerer
from .deletion import answer_context, changed, deleted_context, strict_context

DELETION, STRICT, PAIRED_GREEDY, PAIRED_SAMPLING = (
    "deletion", "strict", "paired_greedy", "paired_sampling",
)  # fmt: skip
CONSTRUCTIONS = (DELETION, STRICT, PAIRED_GREEDY, PAIRED_SAMPLING)


@dataclass(frozen=True, slots=True)
class RelianceLabels:
    """``changed`` bool [N]: the normalised answers with and without evidence differ."""

    construction: str
    with_evidence: tuple[str, ...]
    without_evidence: tuple[str, ...]
    changed: np.ndarray


def reliance_labels(
    answerer: Answerer,
    trajectories: Sequence[Trajectory],
    construction: str = DELETION,
    sampling: Sampling | None = None,
    seed: int = 0,
) -> RelianceLabels:
    """s_chg of valid trajectories by one of ``CONSTRUCTIONS``.

    Parameters
    ----------
    sampling, seed : of ``paired_sampling``; the temperature that the rollouts were drawn at.

    Raises
    ------
    WorkbenchError
        an unknown construction, a trajectory without an answer, or ``paired_sampling`` without
        a temperature above 0.
    """
    if construction not in CONSTRUCTIONS:
        raise WorkbenchError(
            f"no construction {construction!r}", fix=f"one of {', '.join(CONSTRUCTIONS)}"
        )
    strict = construction == STRICT
    frame = answerer.codec.control if strict else ()
    bare = [strict_context(t, frame) if strict else deleted_context(t) for t in trajectories]
    if construction in (DELETION, STRICT):
        own, without = [t.answer or "" for t in trajectories], answerer.answers(bare)
    else:
        how: dict = {}
        if construction == PAIRED_SAMPLING:
            if sampling is None or sampling.temperature == 0:
                raise WorkbenchError(
                    "paired sampling at temperature 0",
                    where="sampling",
                    fix="the sampling of the rollouts, or paired_greedy",
                )
            how = {"sampling": sampling, "seed": seed}
        own = answerer.answers([answer_context(t) for t in trajectories], **how)
        without = answerer.answers(bare, **how)
    return RelianceLabels(construction, tuple(own), tuple(without), changed(own, without))
