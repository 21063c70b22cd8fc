"""S1 Eq. 12: token mean inside each rank-local micro-batch, then mean over micro-batches.

    <f> = 1/(S·W) Σ_s Σ_w ( Σ_{selected tokens of B_sw} f ) / ( number of them )

It is not the mean over all tokens: tokens of a micro-batch with few of them weigh more.  The
sum is linear in f, so it is computed as Σ weight·f with one weight per rollout.  That keeps
"what is averaged with what" apart from "what goes through the model together": rollouts can
be sorted and packed freely without changing the gradient.

Eq. 12 assumes that every micro-batch has a selected token.  One without any is left out of
both the sum and the count, so that it neither divides by zero nor dilutes the others; for the
same reason workers may hold different numbers of micro-batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def micro_batch_weights(selected: Sequence[int], size: int | None) -> tuple[np.ndarray, int]:
    """Weight of each rollout's selected tokens on this worker, before the mean over batches.

    Parameters
    ----------
    selected : number of selected tokens of each rollout, in batch order.
    size : rollouts of a micro-batch, consecutive in batch order; None takes all as one.

    Returns
    -------
    weights float64 [N], 1/(selected tokens of the rollout's micro-batch) or 0 without any, and
    the number of micro-batches that have a selected token.  Dividing the weights by the sum of
    these numbers over all workers gives Eq. 12.
    """
    selected = np.asarray(selected, dtype=np.int64)
    size = size or max(1, len(selected))
    weights = np.zeros(len(selected))
    batches = 0
    for start in range(0, len(selected), size):
        tokens = int(selected[start : start + size].sum())
        if tokens:
            weights[start : start + size] = 1.0 / tokens
            batches += 1
    return weights, batches


def reduce_tokens(values: Sequence[Sequence[np.ndarray]], size: int | None) -> float:
    """Eq. 12 of per-token values: ``values[w][j]`` float [n_j] of rollout j on worker w.

    NaN when nothing is selected anywhere.
    """
    total, batches = 0.0, 0
    for worker in values:
        weights, count = micro_batch_weights([len(v) for v in worker], size)
        total += sum(w * float(np.sum(v, dtype=np.float64)) for w, v in zip(weights, worker))
        batches += count
    return total / batches if batches else float("nan")
