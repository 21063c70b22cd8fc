"""Unconditional grounded accuracy and its five buckets (S1 §7.3.4, Table A19).

UGA = P(correct direct) + P(correct search, full) + 0.5 P(correct search, partial).  TC and
D-Inv condition on what each policy got right; here every question counts for every policy.

Support labels are given from outside.  S1 takes them from human annotation; on question graphs
``annotated_support`` reads them off the gold passages instead, and is named so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from .summary import summarise

FULL, PARTIAL, UNSUPPORTED = 1.0, 0.5, 0.0
BUCKETS = (
    "correct_direct", "search_full", "search_partial", "search_unsupported", "incorrect",
)  # fmt: skip


def annotated_support(frame: pd.DataFrame) -> pd.Series:
    """Support of each rollout by the question graph's passages, from the columns of
    ``EvidenceReader``: all nodes covered 1.0, some 0.5, none 0.0.

    Raises
    ------
    WorkbenchError : the frame has no coverage.
    """
    if not {"cov", "all_evidence"} <= set(frame.columns):
        raise WorkbenchError(
            "the frame has no coverage", fix="score the rollouts by evaluation.evidence"
        )
    partial = np.where(frame["cov"] > 0, PARTIAL, UNSUPPORTED)
    support = np.where(frame["all_evidence"] == 1, FULL, partial)
    return pd.Series(support, index=frame.index, name="support")


def buckets(frame: pd.DataFrame, support: str = "support") -> pd.DataFrame:
    """``frame`` of ``evaluate`` with the 0/1 columns ``BUCKETS``, one of them 1, and ``uga``.

    Parameters
    ----------
    support : column with 1.0, 0.5 or 0.0 for correct searched rollouts; others may have NaN.

    Raises
    ------
    WorkbenchError : the column is missing, or a correct searched rollout has another value.
    """
    if support not in frame.columns:
        raise WorkbenchError(f"the frame has no column {support!r}", fix="label the support first")
    correct = frame["em"] == 1
    searched = correct & (frame["searches"] > 0)
    label = frame[support]
    bad = searched & ~label.isin((FULL, PARTIAL, UNSUPPORTED))
    if bad.any():
        raise WorkbenchError(
            f"{int(bad.sum())} correct searched rollouts have no support label of 0, 0.5 or 1, "
            f"the first is of {frame.loc[bad, 'item_id'].iloc[0]}",
            where=support,
            fix="label every correct searched rollout: UGA conditions on nothing",
        )
    flags = (
        correct & ~searched,
        searched & (label == FULL),
        searched & (label == PARTIAL),
        searched & (label == UNSUPPORTED),
        ~correct,
    )
    told = frame.assign(**{n: f.astype(np.float64) for n, f in zip(BUCKETS, flags, strict=True)})
    earned = told["correct_direct"] + told["search_full"] + PARTIAL * told["search_partial"]
    return told.assign(uga=earned)


def grounded_accuracy(
    frame: pd.DataFrame,
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Rows of ``summarise`` for the five buckets and ``uga``, with question-bootstrap intervals.

    ``frame`` is that of ``buckets``; compare policies on the same questions.
    """
    if "uga" not in frame.columns:
        raise WorkbenchError("the frame has no buckets", fix="make them by evaluation.uga.buckets")
    return summarise(frame, by, (*BUCKETS, "uga"), seed, config)
