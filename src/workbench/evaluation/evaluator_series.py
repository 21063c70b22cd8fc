"""The evaluators of a run side by side: all of them read the same rollouts.

S1 Table A18 (distribution of n = 1 - b at each refit) and Table A20 (drift of the scores' scale).
What their differences do to rewards and to training is in ``refreshes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig, Interval, bootstrap_mean
from ..inference.classical import wilson
from ..inference.statistic import bootstrap_statistic
from ..methods.shaping import Outcomes, outcomes
from ..readouts.metrics import auc_interval, scale_drift
from ..readouts.tables import RELIANCE, SUFFICIENCY
from .checkpoints import Checkpoint, Measured, policy_at
from .policies import UNTRAINED

if TYPE_CHECKING:
    from torch import nn

    from ..agent.trajectory import Trajectory
    from ..questions.graph import Item
    from ..readouts.config import FeatureConfig
    from ..readouts.evaluator import Scored

QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
_ENDS = ("value", "low", "high", "n")
_NOTHING = Interval(np.nan, np.nan, np.nan, 0)


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
        own = {
            s: sorted((c for c in self.scored if c.seed == s), key=lambda c: c.step) for s in seeds
        }
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


def evaluator_drift(readings: Readings, bootstrap: BootstrapConfig | None = None) -> pd.DataFrame:
    """Mean absolute change of the mean score between successive evaluators (Table A20).

    Columns readout, value (mean over seeds of ``readouts.metrics.scale_drift``), low, high over
    resampled questions, n (questions), seeds, refits, absent (why there is no value).  D is read
    on valid searched rollouts, B once per question.
    """
    chains = [chain for chain in readings.chains().values() if len(chain) > 1]
    names, first, numbers = np.unique(
        np.asarray(readings.found.questions, dtype=object), return_index=True, return_inverse=True
    )
    searched = [np.flatnonzero(scored.searched) for scored in readings.scored.values()]
    kept = {RELIANCE: searched[0] if searched else first[:0], SUFFICIENCY: first}
    rows = []
    for readout, score in ((RELIANCE, "d"), (SUFFICIENCY, "b")):
        at = kept[readout]
        row = {"readout": readout, **_ends(_NOTHING), "seeds": len(chains)}
        row |= {"refits": sum(len(chain) - 1 for chain in chains), "absent": ""}
        if not chains or not len(at):
            row["absent"] = "no evaluator was replaced" if not chains else "no searched rollout"
            rows.append(row)
            continue
        values = {c: getattr(scored, score)[at] for c, scored in readings.scored.items()}
        drift = _DriftOfCounts(values, chains, numbers[at], len(names))
        interval = bootstrap_statistic(drift, len(names), bootstrap)
        value = float(np.mean([scale_drift([values[c] for c in chain]) for chain in chains]))
        questions = len(set(numbers[at].tolist()))
        rows.append(row | {**_ends(interval), "value": value, "n": questions})
    return pd.DataFrame(rows)


class _DriftOfCounts:
    """Counts [draws, Q] of drawn questions -> drift [draws], mean over the chains."""

    def __init__(self, values, chains, numbers, count):
        self.chains = chains
        self.rows = np.bincount(numbers, minlength=count).astype(np.float64)
        self.sums = {c: np.bincount(numbers, v, count) for c, v in values.items()}

    def __call__(self, counts: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            means = {c: (counts @ sums) / (counts @ self.rows) for c, sums in self.sums.items()}
        changes = [
            np.mean([np.abs(means[b] - means[a]) for a, b in pairwise(chain)], axis=0)
            for chain in self.chains
        ]
        return np.mean(changes, axis=0)


def _distribution(
    labels: np.ndarray, b: np.ndarray, names: list[str], bootstrap: BootstrapConfig | None
) -> list[dict[str, object]]:
    n, count = 1.0 - b, len(b)
    predicted = int((n >= 0.5).sum())
    found = {
        "hard_s": Interval(float(labels.sum()), np.nan, np.nan, count),
        "hard_n": Interval(float((~labels).sum()), np.nan, np.nan, count),
        "mean": bootstrap_mean(n, bootstrap),
        "sd": bootstrap_statistic(lambda counts: _sd(n, counts), count, bootstrap),
    }
    for name, share in QUANTILES.items():
        found[name] = bootstrap_statistic(
            lambda counts, share=share: _quantile(n, counts, share), count, bootstrap
        )
    found["predicted_n"] = Interval(float(predicted), np.nan, np.nan, count)
    found["predicted_share"] = wilson(predicted, count)
    one_class = labels.all() or not labels.any()
    found["auc"] = _NOTHING if one_class else auc_interval(labels, b, names, bootstrap)
    why = f"all {count} labels are {int(labels[0])}" if one_class else ""
    return [
        {"metric": metric, **_ends(value), "absent": why if metric == "auc" else ""}
        for metric, value in found.items()
    ]


def _sd(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Standard deviation (n in the denominator) of each resample."""
    total = counts.sum(axis=1)
    mean = counts @ values / total
    return np.sqrt(np.maximum(counts @ values**2 / total - mean**2, 0.0))


def _quantile(values: np.ndarray, counts: np.ndarray, share: float) -> np.ndarray:
    """Linearly interpolated quantile of each resample, as numpy's of the repeated values."""
    order = np.argsort(values, kind="stable")
    upto = counts[:, order].cumsum(axis=1)
    place = share * (upto[:, -1] - 1)
    low, high = (
        values[order][(upto <= at[:, None]).sum(axis=1)] for at in (np.floor(place), np.ceil(place))
    )
    return low + (high - low) * (place - np.floor(place))


def _ends(interval: Interval) -> dict[str, float]:
    return {name: getattr(interval, name) for name in _ENDS}
