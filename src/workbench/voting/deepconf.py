"""DeepConf weights: peakedness of the next-token distributions (S2 §2, App. A and F).

    C_t = -(1/k) Σ_j log p_j     over the top-k candidates at generated token t

A higher C_t means a more peaked distribution.  Group confidence is the mean of C over a
window of W tokens, stride 1; a stream shorter than W is one window.

Candidates that carry no probability (-inf, NaN, the -9999 sentinel of serving engines) never
reach a mean: they are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from ..agent.trajectory import Trajectory
from ..config import Settings
from ..errors import WorkbenchError

SENTINEL = -9999.0


class DeepConfConfig(Settings):
    """S2's headline is Lowest-Group with a window of 1,024 tokens.

    ``bottom`` is the share of windows that Bottom-10 % averages (at least one window).
    """

    reduction: Literal["lowest_group", "bottom", "tail"] = "lowest_group"
    window: int = Field(default=1024, ge=1)
    bottom: float = Field(default=0.10, gt=0.0, le=1.0)


@dataclass(frozen=True, slots=True)
class Confidences:
    """C_t float64 [n] of the tokens that have candidates, and what was left out.

    dropped_candidates : -inf, NaN or sentinel among the candidates.
    dropped_tokens : tokens with no usable candidate.
    """

    values: np.ndarray
    dropped_candidates: int
    dropped_tokens: int


def token_confidences(top_k: Sequence[Sequence[float]] | np.ndarray) -> Confidences:
    """C_t from top-k log-probabilities: n lists of any lengths, or float [n, k]."""
    lengths = np.array([len(row) for row in top_k], dtype=np.int64)
    flat = np.array([c for row in top_k for c in row], dtype=np.float64)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    usable = flat > SENTINEL  # neither -inf nor NaN is
    counts = np.bincount(owner[usable], minlength=len(lengths))
    sums = np.bincount(owner[usable], weights=flat[usable], minlength=len(lengths))
    kept = counts > 0
    values = -sums[kept] / counts[kept]
    return Confidences(values, int((~usable).sum()), int((~kept).sum()))


def group_confidences(confidences: np.ndarray, window: int) -> np.ndarray:
    """Window means [max(1, n - W + 1)] of C [n], stride 1."""
    n = len(confidences)
    if n == 0:
        raise WorkbenchError(
            "no token has a usable log-probability candidate, so there is no confidence",
            fix="sample with top_k_logprobs > 0",
        )
    width = min(window, n)
    sums = np.concatenate([[0.0], np.cumsum(confidences)])
    return (sums[width:] - sums[:-width]) / width


def reduce_confidences(confidences: np.ndarray, config: DeepConfConfig | None = None) -> float:
    """One score per rollout: Lowest-Group (least window), Bottom-10 % (mean of the lowest
    windows) or Tail (mean over the last W tokens)."""
    config = config or DeepConfConfig()
    groups = group_confidences(confidences, config.window)
    if config.reduction == "tail":
        return float(groups[-1])
    if config.reduction == "lowest_group":
        return float(groups.min())
    lowest = max(1, int(len(groups) * config.bottom))
    return float(np.partition(groups, lowest - 1)[:lowest].mean())


def deepconf_weight(trajectory: Trajectory, config: DeepConfConfig | None = None) -> float:
    """The weight of a rollout, over all its generated tokens (S2 App. A).

    Raises
    ------
    WorkbenchError : the trajectory stores no top-k log-probabilities.
    """
    if trajectory.topk_logprobs.shape[-1] == 0:
        raise WorkbenchError(
            "the trajectory stores no top-k log-probabilities",
            where=trajectory.item_id,
            fix="sample with top_k_logprobs > 0",
        )
    rows = np.flatnonzero(trajectory.generated)
    present = [trajectory.topk_logprobs[t][trajectory.topk_ids[t] >= 0] for t in rows]
    return reduce_confidences(token_confidences(present).values, config)
