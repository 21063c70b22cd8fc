"""How much of what a policy says is copied (S2 §3, Tables 6 and 11)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..inference.bootstrap import BootstrapConfig
from .frames import estimate, interval, need, parts, questions_of, quotient, ratio

HEAVY = 0.90  # a rollout or question that copies this much is copy-heavy (S2 §3)
# metric of the report -> column of ``copying.copy_shares``
TESTS = {"share": "share", "whole_share": "whole_share"}


def share_summary(
    shares: pd.DataFrame, by: Sequence[str] = ("cell",), config: BootstrapConfig | None = None
) -> pd.DataFrame:
    """Median copy share and how common heavy copying is, questions resampled.

    Parameters
    ----------
    shares : of ``copying.copy_shares``.

    Returns
    -------
    One row per group, test ("share" for S2's substrings, "whole_share" for whole words) and
    metric: ``median`` share over rollouts, ``heavy_rollouts`` (share of them that copy at least
    ``HEAVY``), ``heavy_questions`` (share of questions whose mean is that high).  value, low,
    high, p (NaN), n (questions), rollouts (with a share), left_out (without).
    """
    need(shares, ["question_id", *TESTS.values()])
    rows = []
    for key, part in parts(shares, by):
        for test, column in TESTS.items():
            known = part[part[column].notna()]
            values = known[column].to_numpy(dtype=np.float64)
            owner, names = questions_of(known)
            counts = np.bincount(owner, minlength=len(names))
            heavy = np.bincount(owner, values >= HEAVY, len(names))
            mean = ratio(np.bincount(owner, values, len(names)), counts)
            statistics = {
                "median": _median(values, owner),
                "heavy_rollouts": quotient(heavy, counts),
                "heavy_questions": quotient(mean >= HEAVY, np.ones(len(names))),
            }
            for metric, statistic in statistics.items():
                found = estimate(interval(statistic, len(names), config)) | {"p": np.nan}
                size = {"rollouts": len(known), "left_out": len(part) - len(known)}
                rows.append({**key, "test": test, "metric": metric, **found, **size})
    columns = ["test", "metric", "value", "low", "high", "p", "n", "rollouts", "left_out"]
    return pd.DataFrame(rows, columns=[*by, *columns])


def _median(values: np.ndarray, owner: np.ndarray):
    """Counts [draws, questions] -> median [draws] of the drawn questions' rollouts."""
    order = np.argsort(values, kind="stable")
    ordered, whose = values[order], owner[order]

    def statistic(counts: np.ndarray) -> np.ndarray:
        reached = counts[:, whose].cumsum(axis=1)
        half = reached[:, -1:] / 2.0
        lower, upper = (reached >= half).argmax(axis=1), (reached > half).argmax(axis=1)
        return (ordered[lower] + ordered[upper]) / 2.0

    return statistic
