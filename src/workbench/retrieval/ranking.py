"""The best rows of a score list, with ties decided by row number."""

from __future__ import annotations

import numpy as np


def top_rows(rows: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` highest scores with their rows, by descending score, then ascending row.

    ``rows`` int [n] and ``scores`` float [n] belong together, in any order; fewer than ``k``
    entries give all of them.  Unlike a bare argpartition, the choice among equal scores at
    the cut does not depend on the order of the input.
    """
    if len(scores) > k:
        cut = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero(scores >= cut)
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]
