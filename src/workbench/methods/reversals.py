"""How often shaping overturns what the outcome alone says (S3 App. A.4, Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .advantages import group_advantages, group_rows

if TYPE_CHECKING:
    import pandas as pd

ALPHAS = (0.05, 0.10, 0.25, 0.50, 1.00)  # of Table 3
_NOISE = 1e-9  # below this a difference is that of floats


@dataclass(frozen=True, slots=True)
class Reversals:
    """Counts over a batch of groups.

    ``rank`` of ``pairs``: pairs of one group with unequal outcome whose order is reversed.
    ``sign`` of ``nonzero``: rollouts with a non-zero outcome advantage, all of them in groups
    of mixed outcome, whose advantage has the opposite sign.  A tie or a zero is no reversal.
    """

    pairs: int
    rank: int
    nonzero: int
    sign: int


def count_reversals(
    outcome: np.ndarray, advantages: np.ndarray, groups: Sequence[str], delta: float = 1e-6
) -> Reversals:
    """Compare one advantage per rollout with that of the outcome alone.

    Parameters
    ----------
    outcome : float [N], what is rewarded before shaping (answer F1).
    advantages : float [N], of the shaped reward, standardised inside the group or not.
    groups : group key of each rollout.
    delta : δ of the outcome advantage.
    """
    outcome, advantages = np.asarray(outcome, float), np.asarray(advantages, float)
    base = group_advantages(outcome, groups, delta)
    pairs = rank = 0
    for rows in group_rows(groups):
        first, second = np.triu_indices(len(rows), 1)
        first, second = rows[first], rows[second]
        before, after = outcome[first] - outcome[second], advantages[first] - advantages[second]
        unequal = np.abs(before) > _NOISE
        pairs += int(unequal.sum())
        rank += int((unequal & (np.sign(before) * after < -_NOISE)).sum())
    nonzero = np.abs(base) > _NOISE
    sign = nonzero & (np.sign(base) * advantages < -_NOISE)
    return Reversals(pairs, rank, int(nonzero.sum()), int(sign.sum()))


def alpha_check(
    outcome: np.ndarray,
    progress: Mapping[str, np.ndarray],
    groups: Sequence[str],
    alphas: Sequence[float] = ALPHAS,
    delta: float = 1e-6,
) -> pd.DataFrame:
    """Table 3: different coefficients α applied to the same saved trajectories.

    Parameters
    ----------
    outcome : answer F1, float [N].
    progress : accumulated progress Σ_t e_t, float [N] in [0, 1], by the signal's name.
    groups : group key of each rollout.

    Returns
    -------
    Rows as in the published table: alpha, signal, metric ("Rank reversal" or "Advantage sign
    reversal"), value (percent, NaN when n is 0), count (reversed), n (pairs of unequal outcome,
    or originally non-zero advantages).
    """
    import pandas as pd

    outcome = np.asarray(outcome, float)
    rows = []
    for alpha in alphas:
        for signal, accumulated in progress.items():
            shaped = group_advantages(outcome + alpha * np.asarray(accumulated), groups, delta)
            found = count_reversals(outcome, shaped, groups, delta)
            for metric, count, n in (
                ("Rank reversal", found.rank, found.pairs),
                ("Advantage sign reversal", found.sign, found.nonzero),
            ):
                value = 100 * count / n if n else np.nan
                rows.append((alpha, signal, metric, value, count, n))
    return pd.DataFrame(rows, columns=["alpha", "signal", "metric", "value", "count", "n"])
