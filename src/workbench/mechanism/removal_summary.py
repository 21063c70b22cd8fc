"""The table of App. I.2: what removal costs copied tokens, and what it costs the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..inference.bootstrap import BootstrapConfig
from .frames import estimate, interval, need, parts, questions_of, quotient

CLASSES = {"copied": "delta_copied", "non-copy": "delta_other"}
DIFFERENCE = "copied - non-copy"


def removal_summary(
    rollouts: pd.DataFrame, by: Sequence[str] = (), config: BootstrapConfig | None = None
) -> pd.DataFrame:
    """Mean and median over rollouts of their mean Δ log p, by token class; questions resampled.

    Parameters
    ----------
    rollouts : second frame of ``removal.remove_documents``; only rollouts with scored tokens of
        both classes count, so that the classes are compared within rollouts.

    Returns
    -------
    One row per group and token class ("copied", "non-copy", "copied - non-copy"): value (mean
    of the rollouts' means, nats), low, high, p, n (questions), median (over rollouts), rollouts,
    losing (of them, where the class lost log-prob; in the last row where copied tokens lost
    more), left_out (rollouts without tokens of both classes).
    """
    need(rollouts, ["question_id", *CLASSES.values()])
    rows = []
    for key, part in parts(rollouts, by):
        known = part[part[list(CLASSES.values())].notna().all(axis=1)]
        owner, names = questions_of(known)
        counts = np.bincount(owner, minlength=len(names))
        columns = {name: known[c].to_numpy(dtype=np.float64) for name, c in CLASSES.items()}
        columns[DIFFERENCE] = columns["copied"] - columns["non-copy"]
        for name, values in columns.items():
            sums = np.bincount(owner, values, len(names))
            found = interval(quotient(sums, counts), len(names), config)
            rows.append(
                {
                    **key,
                    "token_class": name,
                    **estimate(found),
                    "median": float(np.median(values)) if len(values) else np.nan,
                    "rollouts": len(values),
                    "losing": int((values < 0).sum()),
                    "left_out": len(part) - len(known),
                }
            )
    columns = [
        *by, "token_class", "value", "low", "high", "p", "n", "median", "rollouts", "losing",
        "left_out",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
