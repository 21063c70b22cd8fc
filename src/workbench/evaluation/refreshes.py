"""What a new evaluator changes: necessity scores, their scale, rewards, and what training does.

S1 Table A18 (distribution of n = 1 - b at each refit), A20 (drift of the scores' scale) and A21
(reward shift at a refresh, performance jump behind it).  All evaluators of a run read the same
rollouts (S1's "fixed anchor trajectories"), so nothing differs but the evaluator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig, Interval
from ..inference.classical import t_interval, wilson
from ..inference.paired import INTERVAL_COLUMNS, interval_row, mean_intervals
from ..inference.statistic import bootstrap_statistic
from ..methods.advantages import group_advantages
from ..methods.shaping import Outcomes, Shaping, outcomes, shaped_reward
from ..readouts.metrics import auc_interval, scale_drift
from ..readouts.tables import RELIANCE, SUFFICIENCY
from .checkpoints import Checkpoint, Measured, policy_at, refits
from .policies import UNTRAINED

if TYPE_CHECKING:
    from torch import nn

    from ..agent.trajectory import Trajectory
    from ..questions.graph import Item
    from ..readouts.config import FeatureConfig
    from ..readouts.evaluator import Scored

QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
AT_REFRESH, QUIET, DIFFERENCE = "at a refresh", "no refresh", "difference"
_NONE = Interval(np.nan, np.nan, np.nan, 0)


@dataclass(frozen=True)
class Readings:
    """What the evaluators of a run say of R anchor rollouts.

    ``found`` are the rollouts' outcomes; ``scored`` holds d and b [R] by checkpoint, those
    whose evaluator was installed, in order of seed and step, the first one before them.
    """

    found: Outcomes
    scored: dict[Checkpoint, Scored]

    def chains(self) -> dict[int, list[Checkpoint]]:
        """For each seed the first evaluator and those that replaced it, one after the other."""
        first = [c for c in self.scored if c.seed == UNTRAINED]
        seeds = sorted({c.seed for c in self.scored} - {UNTRAINED})
        own = {s: sorted((c for c in self.scored if c.seed == s), key=_round) for s in seeds}
        return {seed: first + own[seed] for seed in seeds}


def read_rollouts(
    base: nn.Module,
    checkpoints: Sequence[Checkpoint],
    items: Sequence[Item],
    trajectories: Sequence[Trajectory],
    config: FeatureConfig | None = None,
) -> Readings:
    """Score anchor rollouts by every evaluator that was in force, each through its snapshot.

    Parameters
    ----------
    base : the base policy, plain; it is left as it was.
    checkpoints : of ``checkpoints.find_checkpoints``, any seeds of one run.
    items : questions of the rollouts, in any order.

    Raises
    ------
    WorkbenchError : an evaluator that cannot be read or belongs to another policy.
    """
    from ..readouts.evaluator import load_evaluator

    scored = {}
    for checkpoint in sorted(checkpoints, key=lambda c: (c.seed, c.step)):
        if checkpoint.evaluator is not None and checkpoint.installed is not None:
            with policy_at(base, checkpoint) as model:
                evaluator = load_evaluator(checkpoint.evaluator, model)
                scored[checkpoint] = evaluator.score(model, trajectories, config)
    by_id = {item.item_id: item for item in items}
    return Readings(outcomes([by_id[t.item_id] for t in trajectories], trajectories), scored)


def necessity_distribution(
    measured: Sequence[Measured],
    readings: Readings,
    bootstrap: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """n = 1 - b of each evaluator on its own policy's states, by question (Table A18).

    Labels are those of the policy that the evaluator was fitted on; ``measured`` and
    ``readings`` must hold the same questions.

    Returns
    -------
    A row per evaluator, checkpoint, metric and value, low, high, n: hard_s and hard_n (label
    counts), mean, sd, q10, median, q90, predicted_n (count of n ≥ 0.5), predicted_share (Wilson
    interval) and auc of b for the label; ``absent`` says why there is no AUC.  Intervals are
    over resampled questions; counts have none.

    Raises
    ------
    WorkbenchError : an evaluator without its measured checkpoint, or other questions.
    """
    labelled = {m.checkpoint: m.targets.closed_book.by_item() for m in measured}
    rows = []
    for checkpoint, scored in readings.scored.items():
        where = f"seed {checkpoint.seed}, step {checkpoint.step}"
        b = dict(zip(readings.found.questions, scored.b.tolist(), strict=True))
        labels = labelled.get(checkpoint)
        if labels is None or labels.keys() != b.keys():
            raise WorkbenchError(
                "no labels of the same questions for this evaluator",
                where=where,
                fix="measure its checkpoint, and read the rollouts of the measured questions",
            )
        names = sorted(b)
        head = {"seed": checkpoint.seed, "step": checkpoint.step, "number": checkpoint.number}
        z, scores = np.array([labels[q] for q in names]), np.array([b[q] for q in names])
        rows += [{**head, **row} for row in _distribution(z, scores, names, bootstrap)]
    columns = ["seed", "step", "number", "metric", "value", "low", "high", "n", "absent"]
    return pd.DataFrame(rows, columns=columns)


def evaluator_drift(
    readings: Readings, bootstrap: BootstrapConfig | None = None
) -> pd.DataFrame:
    """Mean absolute change of the mean score between successive evaluators (Table A20).

    Columns readout, value (mean over seeds of ``readouts.metrics.scale_drift``), low, high over
    resampled questions, n, seeds, refits, absent.  D is read on valid searched rollouts, B once
    per question.
    """
    chains = [chain for chain in readings.chains().values() if len(chain) > 1]
    names, numbers = np.unique(np.asarray(readings.found.questions, object), return_inverse=True)
    rows = []
    for readout, score in ((RELIANCE, "d"), (SUFFICIENCY, "b")):
        searched = next(iter(readings.scored.values())).searched if readings.scored else []
        kept = np.asarray(searched, bool) if score == "d" else np.ones(len(numbers), bool)
        if not chains or not kept.any():
            why = "no evaluator was replaced" if not chains else "no valid searched rollout"
            rows.append({"readout": readout, **_plain(_NONE), "seeds": 0, "refits": 0,
                         "absent": why})  # fmt: skip
            continue
        weight = np.bincount(numbers[kept], minlength=len(names)).astype(np.float64)
        weight = np.minimum(weight, 1.0) if score == "b" else weight
        sums = {}
        for checkpoint, scored in readings.scored.items():
            total = np.bincount(numbers[kept], getattr(scored, score)[kept], len(names))
            full = np.bincount(numbers[kept], minlength=len(names))
            sums[checkpoint] = total * weight / np.maximum(full, 1)

        def drift(counts: np.ndarray, sums=sums, weight=weight) -> np.ndarray:
            with np.errstate(invalid="ignore", divide="ignore"):
                means = {c: counts @ total / (counts @ weight) for c, total in sums.items()}
            steps = [[np.abs(means[b] - means[a]) for a, b in zip(c, c[1:])] for c in chains]
            return np.mean([np.mean(changes, axis=0) for changes in steps], axis=0)

        interval = bootstrap_statistic(drift, len(names), bootstrap)
        value = np.mean([scale_drift([sums[c][weight > 0] / weight[weight > 0] for c in chain])
                         for chain in chains]) if score == "b" else interval.value  # fmt: skip
        rows.append({"readout": readout, **_plain(interval), "value": float(value),
                     "n": int((weight > 0).sum()), "seeds": len(chains),
                     "refits": sum(len(chain) - 1 for chain in chains), "absent": ""})  # fmt: skip
    return pd.DataFrame(rows)
