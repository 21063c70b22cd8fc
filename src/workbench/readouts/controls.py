"""Shortcuts that a reliance readout could take, on the same split (S1 §7.3, Table A17).

Every control is one number per rollout, fitted by logistic regression on the group split of the
readout itself, so that its direction is learned where the readout's is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..agent.trajectory import Trajectory
from ..evaluation.answers import normalise_answer
from ..seeding import generator
from .probes import LOGISTIC
from .selection import SelectionConfig, held_out_scores


def lexical_overlap(trajectory: Trajectory) -> float:
    """Share of the answer's normalised words that stand in the retrieved passages, in [0, 1]."""
    answer = normalise_answer(trajectory.answer or "").split()
    passages = [t for s in trajectory.searches for t in (*s.titles, *s.texts)]
    words = set(normalise_answer(" ".join(passages)).split())
    return sum(word in words for word in answer) / len(answer) if answer else 0.0


def shortcuts(trajectories: Sequence[Trajectory]) -> dict[str, np.ndarray]:
    """Scalar controls by name, float64 [N] each, of valid searched rollouts.

    Counts are of searches and tokens; overlap is a share; log-probs are in nats: the answer's
    mean and least, and the mean over all generated tokens.
    """
    found: dict[str, list[float]] = {
        "search count": [], "response length": [], "retrieved tokens": [],
        "answer-evidence overlap": [], "answer log-prob, mean": [], "answer log-prob, least": [],
        "response log-prob, mean": [],
    }  # fmt: skip
    for t in trajectories:
        start, end = t.answer_span
        answer = t.logprobs[start:end]
        spans = [s.observation_span for s in t.searches]
        row = (
            len(t.searches), int(t.generated.sum()), sum(b - a for a, b in spans),
            lexical_overlap(t), answer.mean(), answer.min(), t.logprobs[t.generated].mean(),
        )  # fmt: skip
        for values, value in zip(found.values(), row, strict=True):
            values.append(float(value))
    return {name: np.asarray(values, dtype=np.float64) for name, values in found.items()}


LOGIT_CONTROLS = ("answer log-prob, mean", "answer log-prob, least", "response log-prob, mean")


def control_scores(
    values: np.ndarray, labels: np.ndarray, questions: Sequence[str], config: SelectionConfig
) -> np.ndarray:
    """Held-out scores float64 [N] of one scalar control [N], on the readout's group split.

    Raises
    ------
    Unfit : as ``selection.select``.
    """
    plain = config.model_copy(update={"architectures": [LOGISTIC]})
    return held_out_scores(values[:, None, None], labels, questions, [0], plain)


def shuffled_labels(labels: np.ndarray, questions: Sequence[str], seed: int) -> np.ndarray:
    """The labels dealt anew among all rows: what a readout finds in them is chance."""
    return generator("shuffled labels", seed, *questions).permutation(np.asarray(labels))


def matched_rows(
    trajectories: Sequence[Trajectory], labels: np.ndarray, bins: int = 4, seed: int = 0
) -> np.ndarray:
    """Rows int [n] with as many positives as negatives for each search count and length.

    Lengths are binned at the quantiles of all rows; of the more frequent class of a cell as
    many rows are drawn as the other has, so neither count nor length tells the label.
    """
    labels = np.asarray(labels, dtype=bool)
    lengths = np.array([int(t.generated.sum()) for t in trajectories])
    edges = np.quantile(lengths, np.linspace(0, 1, bins + 1)[1:-1]) if len(lengths) else []
    cells = list(zip((len(t.searches) for t in trajectories), np.searchsorted(edges, lengths)))
    rng, kept = generator("matched rows", seed), []
    for cell in sorted(set(cells)):
        rows = np.array([i for i, own in enumerate(cells) if own == cell])
        positive, negative = rows[labels[rows]], rows[~labels[rows]]
        size = min(len(positive), len(negative))
        for side in (positive, negative):
            kept += rng.permutation(side)[:size].tolist()
    return np.asarray(sorted(kept), dtype=np.int64)
