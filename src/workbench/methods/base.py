"""What a method is: who is rolled out, what a trajectory earns, which token gets credit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ..agent.trajectory import Trajectory
from ..config import Settings
from ..corpus.records import Chunk
from ..questions.graph import Item

if TYPE_CHECKING:
    from ..readouts.evaluator import Evaluator
    from ..readouts.refit import Refits


@dataclass(frozen=True, slots=True)
class Context:
    """What a method may use besides items and trajectories; None is not at hand.

    ``chunks`` are those of the corpus that is searched, by id (``Corpus.by_id``);
    ``evaluator`` is that of the base policy, or its file, and ``refits`` runs later calibration
    rounds (``readouts``).
    """

    chunks: Mapping[str, Chunk] | None = None
    evaluator: Evaluator | Path | str | None = None
    refits: Refits | None = None


NOTHING = Context()


@dataclass(slots=True)
class Scores:
    """Rewards of a batch: ``reward`` float64 [N] and its named ``parts``, each float64 [N].

    ``parts`` always holds "outcome" (what the reward is before shaping), so that outcome
    variance and reward variance are logged apart.
    """

    reward: np.ndarray
    parts: dict[str, np.ndarray] = field(default_factory=dict)


class Method(Protocol):
    """One reward/credit method; composition, not inheritance.

    ``params`` are the settings it was built with: part of the identity of a training run.
    """

    name: str
    params: Settings

    def score(self, items: Sequence[Item], trajectories: Sequence[Trajectory]) -> Scores:
        """Per-trajectory rewards; ``items[i]`` is the question of ``trajectories[i]``."""

    def advantages(
        self, items: Sequence[Item], trajectories: Sequence[Trajectory], scores: Scores
    ) -> list[np.ndarray]:
        """float32 [T] per trajectory, aligned with its tokens; 0 off the generated mask."""

    def shares(
        self,
        items: Sequence[Item],
        trajectories: Sequence[Trajectory],
        scores: Scores,
        advantages: Sequence[np.ndarray],
    ) -> dict[str, tuple[float, float]]:
        """What the method logs of its own: name -> (part, whole), both summed over workers."""

    def plan(self, items: Sequence[Item], group_size: int) -> list[int]:
        """Index into ``items`` for every rollout of the step; default: each G times in a row."""

    def after_update(self, step: int) -> dict[str, float]:
        """Work after an update (recalibrate, distil); returns metrics to log."""


@runtime_checkable
class Attached(Protocol):
    """The hook of a method that reads the policy itself, not only its rollouts."""

    def attach(self, model: object) -> None:
        """Called once before training, with the model that is trained (a PeftModel with LoRA)."""

    def release(self) -> None:
        """Called once after the last step: what runs beside the training ends."""


@runtime_checkable
class Stateful(Protocol):
    """The hook of a method that carries something from step to step (an evaluator, statistics).

    The state goes into every checkpoint, so that a killed run resumes to the same bits.  It is
    a dict by name of NumPy arrays, torch tensors and JSON-able values, and the same on all
    workers.  Training starts from the state that the method was built with: build one method
    for each training run.  A method without these two functions has no state.
    """

    def state(self) -> dict[str, object]:
        """All that the next step needs beside the policy and the named random draws."""

    def restore(self, state: dict[str, object]) -> None:
        """Go on from what ``state`` returned; arrays and tensors are equal in every bit."""
