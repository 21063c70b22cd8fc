"""How good a readout is: ranking (AUC) and calibration (Brier, ECE, scale drift; Table A20)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig, Interval
from ..inference.statistic import bootstrap_statistic
from .probes import checked_labels


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Area under the ROC curve: share of (positive, negative) pairs in order, ties a half.

    Raises
    ------
    WorkbenchError : one class only, or scores that are not finite.
    """
    labels, scores = _checked(labels, scores)
    wins, positives, negatives = _pairs(labels, scores, np.zeros(len(labels), dtype=int), 1)
    if not positives[0] * negatives[0]:
        raise WorkbenchError(
            f"no AUC of {len(labels)} rows of one class",
            fix="evaluate on rows of both classes",
        )
    return float(wins[0, 0] / (positives[0] * negatives[0]))


def auc_interval(
    labels: np.ndarray,
    scores: np.ndarray,
    questions: Sequence[str],
    config: BootstrapConfig | None = None,
) -> Interval:
    """AUC with its percentile interval over resampled questions; ``p`` is about 0.5.

    All rows of a drawn question come along as often as it was drawn.  ``n`` counts questions.
    Resamples without both classes have no AUC and are left out.

    Raises
    ------
    WorkbenchError : one class only, scores that are not finite, or lengths that differ.
    """
    labels, scores = _checked(labels, scores)
    names, numbers = np.unique(np.asarray(questions, dtype=object), return_inverse=True)
    if len(numbers) != len(labels):
        raise WorkbenchError(f"{len(numbers)} questions for {len(labels)} rows")
    wins, positives, negatives = _pairs(labels, scores, numbers, len(names))

    def statistic(counts: np.ndarray) -> np.ndarray:
        pairs = (counts @ positives) * (counts @ negatives)
        with np.errstate(invalid="ignore"):
            return ((counts @ wins) * counts).sum(axis=1) / pairs

    return bootstrap_statistic(statistic, len(names), config, null=0.5)


def brier(labels: np.ndarray, scores: np.ndarray) -> float:
    """Mean squared difference of probability and label.

    Raises
    ------
    WorkbenchError : no rows, scores outside [0, 1], or lengths that differ.
    """
    labels, scores = _checked(labels, scores, probabilities=True)
    return float(np.mean((scores - labels) ** 2))


def reliability(
    labels: np.ndarray, scores: np.ndarray, bins: int = 10
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each of ``bins`` equal-width bins: mean score, mean label (NaN when empty) and rows.

    Bin k holds scores in (k/bins, (k+1)/bins], the first one 0 as well.

    Raises
    ------
    WorkbenchError : no rows, scores outside [0, 1], or lengths that differ.
    """
    labels, scores = _checked(labels, scores, probabilities=True)
    edges = np.linspace(0.0, 1.0, bins + 1)
    place = np.searchsorted(edges[1:-1], scores)
    rows = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        score = np.bincount(place, scores, bins) / rows
        label = np.bincount(place, labels, bins) / rows
    return score, label, rows


def expected_calibration_error(labels: np.ndarray, scores: np.ndarray, bins: int = 10) -> float:
    """ECE: mean over rows of |mean label - mean score| of the row's bin (``reliability``)."""
    score, label, rows = reliability(labels, scores, bins)
    filled = rows > 0
    return float(np.abs(label - score)[filled] @ rows[filled] / rows.sum())


def scale_drift(scores: Sequence[np.ndarray]) -> float:
    """Mean absolute change of the mean score between adjacent refits (Table A20).

    ``scores`` are those of each refit in turn, on held-out rows.

    Raises
    ------
    WorkbenchError : fewer than two refits, or one without scores or with NaN.
    """
    means = np.array([np.mean(s) if len(s) else np.nan for s in scores])
    if len(means) < 2 or not np.isfinite(means).all():
        raise WorkbenchError(
            f"no drift over {len(means)} refits with mean scores {means.tolist()}",
            fix="give the scores of two refits or more, each on at least one row",
        )
    return float(np.mean(np.abs(np.diff(means))))


def _pairs(
    labels: np.ndarray, scores: np.ndarray, questions: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Won pairs float64 [Q, Q] (positive's, negative's question), positives, negatives [Q]."""
    positive, negative = labels == 1, labels == 0
    negatives = np.argsort(scores[negative], kind="stable")
    ordered, owner = scores[negative][negatives], questions[negative][negatives]
    # won[k] counts, by question, the negatives among the k lowest.
    won = np.zeros((len(ordered) + 1, count))
    won[np.arange(1, len(ordered) + 1), owner] = 1.0
    won = won.cumsum(axis=0)
    below, upto = (np.searchsorted(ordered, scores[positive], side) for side in ("left", "right"))
    wins = np.zeros((count, count))
    np.add.at(wins, questions[positive], (won[below] + won[upto]) / 2)
    sizes = (np.bincount(questions[side], minlength=count) for side in (positive, negative))
    return (wins, *(size.astype(np.float64) for size in sizes))


def _checked(
    labels: np.ndarray, scores: np.ndarray, probabilities: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    scores = np.asarray(scores, dtype=np.float64)
    labels = checked_labels(labels, len(scores))
    bad = ~np.isfinite(scores)
    if probabilities:
        bad |= (scores < 0) | (scores > 1)
    if bad.any() or not len(scores):
        kind = "outside [0, 1]" if probabilities else "not finite"
        raise WorkbenchError(
            f"{int(bad.sum())} of {len(scores)} scores are {kind}",
            where=f"row {int(np.argmax(bad))}" if bad.any() else "scores",
            fix="score every row with a fitted readout",
        )
    return labels, scores
