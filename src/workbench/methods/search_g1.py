"""Search-G1 (S1 §3): Eq. 6 with scores that the policy's own hidden states give.

d and b come from the *evaluator* in force: a frozen snapshot of the policy and two heads on its
states (``readouts.evaluator``).  Training starts with the one fitted on the base policy.  Every
K updates a calibration round starts in the background on the policy as it is then
(``readouts.refit``); when both heads are fitted the new evaluator takes over as a whole, else the
old one stays.  Scoring is one no-grad forward pass over the rollouts and decodes nothing.

When a round's evaluator takes over is part of the result.  S1 installs it when it is ready,
which depends on how fast the machine is; with ``calibration.lag`` it is installed exactly that
many updates after the round started (training waits if it must), so a run is reproducible to
the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pydantic import Field

from ..agent.trajectory import Trajectory
from ..engines.replica import plain_model
from ..errors import WorkbenchError
from ..questions.graph import Item
from ..readouts.evaluator import Evaluator, load_evaluator
from ..readouts.refit import Failure, Refits
from ..readouts.snapshot import take_snapshot
from .added_credit import Shares, added_credit_shares
from .advantages import group_advantages, on_generated
from .base import Context, Method, Scores
from .group_relative import GroupRelativeParams, each_in_a_row
from .shaping import Shaping, outcomes, shaped_reward

NEEDS = ("calibration",)  # the stage that fits the evaluator which training starts with


class Params(GroupRelativeParams):
    """``interval`` and ``questions`` are multiples of the profile's K and M (S1 Table A14).

    ``interval: null`` is K = ∞, frozen readouts.  ``control_seed`` names the draws of the
    shuffled gate and the score permutation.
    """

    shaping: Shaping = Shaping()
    interval: float | None = Field(default=1.0, gt=0)
    questions: float = Field(default=1.0, gt=0)
    control_seed: int = 0


@dataclass
class SearchG1:
    """The method; ``attach`` gives it the policy whose states it reads."""

    name: str
    params: Params
    first: Evaluator | str
    refits: Refits | None
    evaluator: Evaluator | None = None
    model: object = None
    installed: int = 0
    pending: tuple[int, int] | None = None  # (round, the update it started at)
    counts: dict[str, int] = field(
        default_factory=lambda: {"started": 0, "installed": 0, "failed": 0}
    )

    def attach(self, model: object) -> None:
        """Read the states of ``model`` from now on."""
        self.model = model
        if self.evaluator is None:
            found = self.first
            if not isinstance(found, Evaluator):
                found = load_evaluator(found, model)
            if found.snapshot.kind == "base" and plain_model(model) is model:
                # Trained in full the base policy is about to move: keep it as it is now.
                found = replace(found, snapshot=take_snapshot(model, full=True))
            self.evaluator = found

    def plan(self, items: Sequence[Item], group_size: int) -> list[int]:
        return each_in_a_row(items, group_size)

    def score(self, items: Sequence[Item], trajectories: Sequence[Trajectory]) -> Scores:
        """Eq. 6; parts also hold d, b and whether a rollout searched."""
        if self.evaluator is None:
            raise WorkbenchError(
                "no policy to read", where="search_g1", fix="attach(model) before scoring"
            )
        scored = self.evaluator.score(self.model, trajectories)
        scores = shaped_reward(
            outcomes(items, trajectories), scored.d, scored.b, self.params.shaping,
            self.params.control_seed,
        )  # fmt: skip
        scores.parts |= {"d": scored.d, "b": scored.b, "searched": scored.searched.astype(float)}
        return scores

    def advantages(
        self, items: Sequence[Item], trajectories: Sequence[Trajectory], scores: Scores
    ) -> list[np.ndarray]:
        groups = [trajectory.group for trajectory in trajectories]
        return on_generated(
            group_advantages(scores.reward, groups, self.params.delta), trajectories
        )

    def shares(
        self,
        items: Sequence[Item],
        trajectories: Sequence[Trajectory],
        scores: Scores,
        advantages: Sequence[np.ndarray],
    ) -> Shares:
        """Those of ``added_credit_shares``, and mean d of searched rollouts and mean b."""
        total, searched = float(len(trajectories)), scores.parts["searched"]
        return {
            **added_credit_shares(trajectories, scores, advantages, self.params.delta),
            "reliance_score": (float((scores.parts["d"] * searched).sum()), float(searched.sum())),
            "sufficiency_score": (float(scores.parts["b"].sum()), total),
        }

    def after_update(self, step: int) -> dict[str, float]:
        """Install what is due, start a round every K updates; the evaluator's age in updates.

        While a round is under way none starts, so the realised interval is K or, where a round
        takes longer, the next multiple of it.
        """
        if self.params.interval is None:
            return {"evaluator_age": float(step - self.installed)}
        self._install_if_due(step)
        every = max(1, round(self.params.interval * self.refits.task.calibration.every))
        if step % every == 0 and self.pending is None and self.refits.worthwhile(step):
            self.counts["started"] += 1
            self.pending = (self.counts["started"], step)
            self.refits.prepare(self.pending[0], self.model)
            self.refits.start(self.pending[0])
            self._install_if_due(step)  # with a lag of 0
        return {
            "evaluator_age": float(step - self.installed),
            **{f"refits_{name}": float(count) for name, count in self.counts.items()},
        }

    def _install_if_due(self, step: int) -> None:
        if self.pending is None:
            return
        number, started = self.pending
        lag = self.refits.task.calibration.lag
        if not (self.refits.ready(number) if lag is None else step >= started + lag):
            return
        found = self.refits.collect(number, self.model)
        self.pending = None
        if isinstance(found, Failure):
            self.counts["failed"] += 1
            return
        self.evaluator, self.installed = found, step
        self.counts["installed"] += 1

    def release(self) -> None:
        """End a round that is still under way: nothing is left to install it in."""
        if self.refits is not None:
            self.refits.close()

    def state(self) -> dict[str, object]:
        """The evaluator in force and the round under way."""
        if self.evaluator is None:
            raise WorkbenchError("no evaluator yet", where="search_g1", fix="attach(model) first")
        progress = {
            "installed": self.installed,
            "pending": None if self.pending is None else list(self.pending),
            "counts": dict(self.counts),
        }
        return {**self.evaluator.state(), "progress": progress}

    def restore(self, state: dict[str, object]) -> None:
        """Go on from ``state()``; a round that was under way is run again if it did not end."""
        progress = state["progress"]
        self.evaluator = Evaluator.of({k: v for k, v in state.items() if k != "progress"})
        self.installed, self.counts = progress["installed"], dict(progress["counts"])
        self.pending = None if progress["pending"] is None else tuple(progress["pending"])
        if self.pending is not None and self.refits is not None:
            self.refits.start(self.pending[0])


def build(params: Params, context: Context) -> Method:
    """The method with these params.

    Raises
    ------
    WorkbenchError : no evaluator to start with, or refits are wanted and nothing can run them.
    """
    if context.evaluator is None:
        raise WorkbenchError(
            "no evaluator to start with",
            where="search_g1",
            fix="run the calibration stage, or give Context(evaluator=...)",
        )
    if params.interval is not None and context.refits is None:
        raise WorkbenchError(
            "nothing to run refits with",
            where="search_g1",
            fix="give Context(refits=...), or interval: null for frozen readouts",
        )
    refits = context.refits
    if refits is not None and params.questions != 1.0:
        refits = refits.with_questions(params.questions)
    return SearchG1("search_g1", params, context.evaluator, refits)
