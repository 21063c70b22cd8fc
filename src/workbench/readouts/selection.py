"""Which architecture reads which layer: group-split validation AUC (S1 §7.2.1).

Questions are dealt into ``folds``, classes as even as that allows; a fold is held out, the
candidates are fitted on the rest, and no question is on both sides.  ``rounds`` folds take
their turn at being held out and AUCs are averaged over them: 1 is the paper's one group split,
``folds`` cross-validation.  The chosen candidate is then fitted anew on all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field, model_validator

from ..config import Settings
from ..errors import WorkbenchError
from ..seeding import seed_of
from .heads import Head, check_finite, head_of
from .metrics import auc
from .probes import (
    ARCHITECTURES,
    LOGISTIC,
    ProbeConfig,
    Unfit,
    can_stop_early,
    checked_labels,
    fit_probe,
)

_DECIMALS = 9  # AUCs that differ by less are tied


class SelectionConfig(Settings):
    """``architectures`` are the candidates, ``probe`` how they are fitted."""

    folds: int = Field(default=4, ge=2)
    rounds: int = Field(default=1, ge=1)
    architectures: list[str] = list(ARCHITECTURES)
    probe: ProbeConfig = ProbeConfig()

    @model_validator(mode="after")
    def _known(self) -> SelectionConfig:
        if self.rounds > self.folds:
            raise ValueError(f"rounds {self.rounds} are more than folds {self.folds}")
        if unknown := set(self.architectures) - set(ARCHITECTURES) or not self.architectures:
            raise ValueError(f"architectures: {unknown}; choose from {', '.join(ARCHITECTURES)}")
        return self


@dataclass(frozen=True, slots=True)
class Selected:
    """A chosen readout.

    ``head`` is fitted on all rows.  ``validation_auc`` is the mean over rounds of the winner,
    slightly optimistic because it won; ``table`` holds it for every candidate, by
    (architecture, layer); what was too small to be one is missing.
    """

    head: Head
    validation_auc: float
    table: dict[tuple[str, int], float]
    rows: int
    positives: int
    questions: int


def group_folds(
    labels: np.ndarray, questions: Sequence[str], folds: int, seed: int
) -> list[np.ndarray]:
    """Held-out rows int [n] of each fold; the rows of one question are in one fold.

    Deterministic in seed and input.  A fold may lack a class, when few questions have it.

    Raises
    ------
    Unfit : no rows, or fewer questions than folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    labels = checked_labels(labels, len(questions))
    names, numbers = np.unique(np.asarray(questions, dtype=object), return_inverse=True)
    if len(names) < folds:
        raise Unfit(
            f"{len(names)} questions for {folds} folds",
            where="group split",
            fix="collect more calibration questions, or set fewer folds",
        )
    scarce = int(np.bincount(labels, minlength=2).max()) < folds  # scikit-learn stratifies no more
    kinds = np.zeros_like(labels) if scarce else labels
    splitter = StratifiedGroupKFold(
        folds, shuffle=True, random_state=seed_of("group split", seed) % 2**32
    )
    with warnings.catch_warnings():  # the rarer class may be in fewer rows than folds
        warnings.simplefilter("ignore", UserWarning)
        return [held_out for _, held_out in splitter.split(kinds, kinds, numbers)]


def select(
    values: np.ndarray,
    labels: np.ndarray,
    questions: Sequence[str],
    layers: Sequence[int],
    config: SelectionConfig | None = None,
    seed: int = 0,
) -> Selected:
    """Choose and fit one readout; ties go to the simplest architecture, then the earliest layer.

    Parameters
    ----------
    values : float [N, L, H], hidden states of ``layers`` (``features``).
    labels : bool or 0/1 [N].
    questions : the question of each row.

    Raises
    ------
    Unfit
        no rows, one class only, fewer questions than folds, or no split with both classes on
        both sides.
    WorkbenchError : features that are not finite, or shapes that differ.
    """
    config = config or SelectionConfig()
    values = np.asarray(values)
    if values.ndim != 3 or values.shape[:2] != (len(questions), len(layers)):
        raise WorkbenchError(
            f"features {values.shape} of {len(questions)} rows and {len(layers)} layers",
            where="select",
        )
    labels = checked_labels(labels, len(questions))
    check_finite(values)
    rounds = _rounds(labels, questions, config, seed)
    smallest = [labels, *(labels[train] for train, _ in rounds)]
    candidates = [
        architecture
        for architecture in ARCHITECTURES
        if architecture in config.architectures
        and (architecture == LOGISTIC or all(can_stop_early(y, config.probe) for y in smallest))
    ]
    if not candidates:
        raise Unfit("too few rows for every architecture that may be chosen", where="select")
    table = {}
    for architecture in candidates:
        for layer, place in sorted(zip(layers, range(len(layers)))):
            found = _validated(architecture, values[:, place], labels, rounds, config, seed)
            table[architecture, layer] = found
    best = max(table.values())
    architecture, layer = next(key for key, found in table.items() if found == best)
    place = list(layers).index(layer)
    pipeline = fit_probe(architecture, values[:, place], labels, config.probe, seed)
    return Selected(
        head_of(pipeline, architecture, layer),
        best,
        table,
        len(labels),
        int(labels.sum()),
        len(set(questions)),
    )


def held_out_scores(
    values: np.ndarray,
    labels: np.ndarray,
    questions: Sequence[str],
    layers: Sequence[int],
    config: SelectionConfig | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Honest scores float64 [N]: each fold is scored by what ``select`` chose on the others.

    For audits (AUC, Brier, ECE): neither the fit nor the choice has seen the scored question.

    Raises
    ------
    Unfit : as ``select``, for any of the folds.
    """
    config = config or SelectionConfig()
    values, labels = np.asarray(values), checked_labels(labels, len(questions))
    names, scores = np.asarray(questions, dtype=object), np.full(len(labels), np.nan)
    for held_out in group_folds(labels, questions, config.folds, seed):
        rest = np.setdiff1d(np.arange(len(labels)), held_out)
        head = select(values[rest], labels[rest], names[rest], layers, config, seed).head
        scores[held_out] = head.score(values[held_out, list(layers).index(head.layer)])
    return scores


def _rounds(
    labels: np.ndarray, questions: Sequence[str], config: SelectionConfig, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first ``rounds`` (training rows, held-out rows) with both classes on both sides."""
    if not len(labels):
        raise Unfit("no rows to fit on", where="select", fix="roll out more calibration questions")
    if labels.min() == labels.max():
        raise Unfit(f"all {len(labels)} labels are {labels[0]}", where="select")
    found = []
    for held_out in group_folds(labels, questions, config.folds, seed):
        rest = np.setdiff1d(np.arange(len(labels)), held_out)
        if all(len(set(labels[side])) == 2 for side in (rest, held_out)):
            found.append((rest, held_out))
    if not found:
        raise Unfit(
            f"no group split has both classes on both sides ({int(labels.sum())} of "
            f"{len(labels)} rows are positive)",
            where="select",
            fix="collect more calibration questions, or set fewer folds",
        )
    return found[: config.rounds]


def _validated(architecture, states, labels, rounds, config, seed) -> float:
    aucs = []
    for train, held_out in rounds:
        probe = fit_probe(architecture, states[train], labels[train], config.probe, seed)
        scores = probe.predict_proba(np.asarray(states[held_out], dtype=np.float64))[:, 1]
        aucs.append(auc(labels[held_out], scores))
    return round(float(np.mean(aucs)), _DECIMALS)
