"""Do readouts keep reading a policy that moves (S1 Figure 5), and how far did it move?

Three ways of reading checkpoint k, each tested on questions that its heads have not seen:

==================  ==================  =====================  =====================
reading             heads fitted at     states of the fit      states of the test
==================  ==================  =====================  =====================
frozen evaluator    the start           the base policy's      the base policy's
frozen heads        the start           the base policy's      the checkpoint's own
refitted            checkpoint k        the checkpoint's own   the checkpoint's own
==================  ==================  =====================  =====================

S1 says that frozen estimators are "trained at checkpoint 0 and applied unchanged", not to whose
states.  A frozen evaluator, snapshot and heads, is what training without refits uses; frozen
heads lose the snapshot and read states that they were not fitted on.

Questions are dealt into folds once, by their sufficiency label at the start.  Each fold is scored
by heads that ``readouts.selection.select`` chose and fitted on the other folds, and the AUC is
that of all folds' scores together.  Refitted heads may be of another architecture or layer, as
in training.

B reads the prompt, which is the same at every checkpoint: the frozen evaluator's scores of it
never change, only whether the policy still answers from memory does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig, Interval
from ..inference.paired import mean_intervals, paired_differences
from ..inference.ratios import ratio_intervals
from ..inference.statistic import bootstrap_statistic
from ..readouts.heads import Head
from ..readouts.metrics import _checked, _pairs
from ..readouts.probes import Unfit
from ..readouts.selection import SelectionConfig, group_folds, select
from ..readouts.tables import readout_rows
from .checkpoints import Measured

FROZEN_EVALUATOR, FROZEN_HEADS, REFITTED = "frozen evaluator", "frozen heads", "refitted"
READINGS = (FROZEN_EVALUATOR, FROZEN_HEADS, REFITTED)
FIDELITY_COLUMNS = [
    "readout", "reading", "step", "value", "low", "high", "n", "seeds", "sd", "rows",
    "positives", "gap", "gap_low", "gap_high", "absent",
]  # fmt: skip
_NOTHING = Interval(np.nan, np.nan, np.nan, 0)


@dataclass(frozen=True)
class Tested:
    """One readout at one checkpoint of one seed: labels [N], questions, scores or why not."""

    labels: np.ndarray
    questions: list[str]
    scores: Mapping[str, np.ndarray | str]


def fidelity(
    measured: Sequence[Measured],
    selection: SelectionConfig | None = None,
    bootstrap: BootstrapConfig | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Held-out AUC by checkpoint of both readouts, in the three readings (Figure 5).

    Parameters
    ----------
    measured : the base policy at step 0 and checkpoints of one seed or more, same questions.
    selection : candidates and folds; all fits use it.

    Returns
    -------
    ``FIDELITY_COLUMNS``, a row per readout, reading and step.  ``value`` is the mean over seeds,
    low and high its interval over questions (the same resamples for all seeds and readings,
    seeds as they are), ``n`` questions with a row, ``sd`` over seeds, NaN for one.  ``gap`` is
    refitted minus this reading on the same rows.  ``absent`` says what could not be measured
    and why, "" if nothing.

    Raises
    ------
    WorkbenchError : not one start, or checkpoints with other questions or layers than it.
    """
    selection = selection or SelectionConfig()
    start = _start(measured)
    items = [item.item_id for item in start.targets.items]
    rows = []
    steps = sorted({m.checkpoint.step for m in measured})
    try:
        held_out = group_folds(start.targets.closed_book.sufficient, items, selection.folds, seed)
        folds = [{items[row] for row in fold} for fold in held_out]
    except Unfit as reason:
        folds, why = [], reason.what
    for name, (states, labels, questions) in readout_rows(start.targets).items():
        fit = _Fits(start.targets.layers, folds, selection, seed)
        frozen = fit.heads(states, labels, questions) if folds else why
        for step in steps:
            tested = {
                m.checkpoint.seed: _tested(m, name, frozen, fit)
                for m in measured
                if m.checkpoint.step == step
            }
            for reading in READINGS:
                found = _row(tested, reading, bootstrap)
                rows.append({"readout": name, "reading": reading, "step": step, **found})
    return pd.DataFrame(rows, columns=FIDELITY_COLUMNS)


def moved(measured: Sequence[Measured], bootstrap: BootstrapConfig | None = None) -> pd.DataFrame:
    """How far the policy is from its start: step, metric, value, low, high, n, seeds, p.

    "kl" is the mean over the rollouts' generated tokens of log π - log base (nats per token), an
    estimate of KL(π ‖ base) along the policy's own rollouts at the temperature they were drawn
    with, exact at temperature 1; it may be negative by chance.  "em" is the rollouts' EM,
    "em_change" its paired difference to the start's on the same questions.  Seeds, then
    questions, are resampled.

    Raises
    ------
    WorkbenchError : not one start, or checkpoints with other questions than it.
    """
    start = _start(measured).rollouts
    frames = [m.rollouts.assign(step=m.checkpoint.step, seed=m.checkpoint.seed) for m in measured]
    rollouts = pd.concat(frames, ignore_index=True)
    steps = sorted(set(rollouts["step"]))
    before = pd.concat([start.assign(step=step, seed=0) for step in steps], ignore_index=True)
    how = {"by": ["step"], "seed": "seed", "config": bootstrap}
    kl = ratio_intervals(rollouts, {"kl": ("log_ratio", "generated")}, **how)
    change = paired_differences(rollouts, before, ["em"], **how).assign(metric="em_change")
    return pd.concat([kl, mean_intervals(rollouts, ["em"], **how), change], ignore_index=True)


def _start(measured: Sequence[Measured]) -> Measured:
    starts = [m for m in measured if m.checkpoint.step == 0]
    if len(starts) != 1:
        raise WorkbenchError(
            f"{len(starts)} of {len(measured)} checkpoints are at step 0",
            where="co-evolution",
            fix="measure the base policy once and give it with the others",
        )
    expected = [item.item_id for item in starts[0].targets.items]
    for m in measured:
        if [item.item_id for item in m.targets.items] != expected:
            what = "other questions"
        elif m.targets.layers != starts[0].targets.layers:
            what = "other layers"
        else:
            continue
        raise WorkbenchError(
            f"{what} than at the start",
            where=f"seed {m.checkpoint.seed}, step {m.checkpoint.step}",
            fix="measure all checkpoints with the same items and calibration settings",
        )
    return starts[0]


@dataclass(frozen=True)
class _Fits:
    """Heads fitted on all folds but one, and scores of that one."""

    layers: tuple[int, ...]
    folds: list[set[str]]
    selection: SelectionConfig
    seed: int

    def heads(
        self, states: np.ndarray, labels: np.ndarray, questions: Sequence[str]
    ) -> list[Head] | str:
        """A head per fold, or why there is none."""
        names, found = np.asarray(questions, dtype=object), []
        for fold in self.folds:
            rest = np.array([q not in fold for q in questions], dtype=bool)
            try:
                chosen = select(
                    states[rest], labels[rest], names[rest], self.layers, self.selection, self.seed
                )
            except Unfit as reason:
                return reason.what
            found.append(chosen.head)
        return found

    def scores(
        self, heads: list[Head] | str, states: np.ndarray, questions: Sequence[str]
    ) -> np.ndarray | str:
        """float64 [N], each row by the head that has not seen its question."""
        if isinstance(heads, str):
            return heads
        scores = np.full(len(questions), np.nan)
        for fold, head in zip(self.folds, heads, strict=True):
            own = np.array([q in fold for q in questions], dtype=bool)
            if own.any():
                scores[own] = head.score(states[own, self.layers.index(head.layer)])
        return scores


def _tested(m: Measured, name: str, frozen: list[Head] | str, fit: _Fits) -> Tested:
    states, labels, questions = readout_rows(m.targets)[name]
    base = replace(
        m.targets, prompt_states=m.base_prompt_states, commit_states=m.base_commit_states
    )
    labels, questions = np.asarray(labels, dtype=bool), list(questions)
    if not len(labels) or labels.all() or not labels.any():
        why = f"all {len(labels)} labels are {int(labels[0])}" if len(labels) else "no rows"
        return Tested(labels, questions, dict.fromkeys(READINGS, why))
    refitted = fit.heads(states, labels, questions) if fit.folds else frozen
    through_base = readout_rows(base)[name][0]
    unfit = f"not fitted at the start: {frozen}" if isinstance(frozen, str) else frozen
    scores = {
        FROZEN_EVALUATOR: fit.scores(unfit, through_base, questions),
        FROZEN_HEADS: fit.scores(unfit, states, questions),
        REFITTED: fit.scores(refitted, states, questions),
    }
    return Tested(labels, questions, scores)


def _row(
    tested: Mapping[int, Tested], reading: str, bootstrap: BootstrapConfig | None
) -> dict[str, object]:
    """One reading at one step, over the seeds in which it could be measured."""
    kept = {s: t for s, t in tested.items() if not isinstance(t.scores[reading], str)}
    reasons = {s: t.scores[reading] for s, t in tested.items() if s not in kept}
    both = [t for t in kept.values() if not isinstance(t.scores[REFITTED], str)]
    value, each = weighted_auc(list(kept.values()), [(reading, 1.0)], bootstrap, 0.5)
    pair = [(REFITTED, 1.0), (reading, -1.0)]
    gap = weighted_auc(both, pair, bootstrap, 0.0)[0] if reading != REFITTED else _NOTHING
    several = len(tested) > 1
    told = [f"seed {s}: {why}" if several else why for s, why in reasons.items()]
    return {
        **{key: getattr(value, key) for key in ("value", "low", "high", "n")},
        "seeds": len(kept),
        "sd": float(np.std(each, ddof=1)) if len(each) > 1 else np.nan,
        "rows": sum(len(t.labels) for t in kept.values()),
        "positives": sum(int(t.labels.sum()) for t in kept.values()),
        "gap": gap.value, "gap_low": gap.low, "gap_high": gap.high,
        "absent": "; ".join(told),
    }  # fmt: skip


def weighted_auc(
    tested: Sequence[Tested],
    readings: Sequence[tuple[str, float]],
    bootstrap: BootstrapConfig | None,
    null: float,
) -> tuple[Interval, list[float]]:
    """Weighted sum of AUCs, mean over seeds with its interval; and the value of each seed."""
    if not tested:
        return _NOTHING, []
    names = sorted({question for t in tested for question in t.questions})
    numbers = {question: number for number, question in enumerate(names)}
    parts = [
        _auc_of_counts(t, readings, np.array([numbers[q] for q in t.questions]), len(names))
        for t in tested
    ]
    interval = bootstrap_statistic(
        lambda counts: np.mean([part(counts) for part in parts], axis=0),
        len(names), bootstrap, null,
    )  # fmt: skip
    return interval, [float(part(np.ones((1, len(names))))[0]) for part in parts]


def _auc_of_counts(
    t: Tested, readings: Sequence[tuple[str, float]], numbers: np.ndarray, count: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Counts [draws, questions] -> weighted sum of AUCs [draws]; NaN without both classes."""
    total = np.zeros((count, count))
    for reading, weight in readings:
        labels, scores = _checked(t.labels, t.scores[reading])
        wins, positives, negatives = _pairs(labels, scores, numbers, count)
        total += weight * wins

    def of(counts: np.ndarray) -> np.ndarray:
        pairs = (counts @ positives) * (counts @ negatives)
        with np.errstate(invalid="ignore", divide="ignore"):
            return ((counts @ total) * counts).sum(axis=1) / pairs

    return of
