"""How far constructions of one label agree, and what their differences do (S1 A6, A16)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.ratios import ratio_intervals

_TIE = 1e-9  # advantages closer to zero than this have no sign


def label_agreement(
    reference: np.ndarray,
    others: Mapping[str, np.ndarray],
    questions: Sequence[str],
    advantages: Callable[[np.ndarray], np.ndarray] | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """How far other constructions agree with the reference label (S1 Tables A6 and A16).

    Parameters
    ----------
    reference, others : bool [N] of the same trajectories.
    questions : item id of each trajectory, the unit of the bootstrap.
    advantages : group-relative advantages float [N] that given labels lead to.

    Returns
    -------
    One row per construction: ``construction``, ``agreement`` with ``low`` and ``high``,
    ``kappa`` (Cohen), ``reference_rate``, ``rate`` and ``rate_delta`` of positive labels,
    ``sign_flips`` (share of trajectories whose advantage has another sign; NaN without
    ``advantages``), ``n`` trajectories.

    Raises
    ------
    WorkbenchError : no trajectories, or labels of different lengths.
    """
    first = _binary(reference, "reference", len(questions))
    rows = []
    for name, labels in others.items():
        second = _binary(labels, name, len(questions))
        frame = pd.DataFrame({"item_id": list(questions), "same": first == second, "one": 1.0})
        found = ratio_intervals(frame, {"agreement": ("same", "one")}, config=config).iloc[0]
        flips = np.nan
        if advantages is not None:
            flips = sign_flips(advantages(first), advantages(second))
        rows.append(
            {
                "construction": name,
                "agreement": found["value"],
                "low": found["low"],
                "high": found["high"],
                "kappa": cohen_kappa(first, second),
                "reference_rate": first.mean(),
                "rate": second.mean(),
                "rate_delta": second.mean() - first.mean(),
                "sign_flips": flips,
                "n": len(first),
            }
        )
    return pd.DataFrame(rows)


def cohen_kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Cohen's κ of two binary labels [N]; NaN where both are the same constant (0/0)."""
    a, b = (_binary(labels, "labels", len(first)) for labels in (first, second))
    by_chance = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    if by_chance == 1:
        return float("nan")
    return float(((a == b).mean() - by_chance) / (1 - by_chance))


def sign_flips(first: np.ndarray, second: np.ndarray) -> float:
    """Share of advantages [N] whose sign (-, 0, +) differs."""
    signs = [np.sign(np.where(np.abs(a) < _TIE, 0.0, a)) for a in map(np.asarray, (first, second))]
    return float((signs[0] != signs[1]).mean())


def _binary(labels: np.ndarray, name: str, count: int) -> np.ndarray:
    array = np.asarray(labels)
    if array.shape != (count,) or not count or not np.isin(array, (0, 1)).all():
        raise WorkbenchError(
            f"labels of shape {array.shape}, expected {count} that are 0 or 1",
            where=name,
            fix="label the same valid searched trajectories, at least one, by every construction",
        )
    return array.astype(bool)
