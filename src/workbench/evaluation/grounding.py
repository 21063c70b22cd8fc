"""Grounding under document replacement: TC and D-Inv (S1 §7.3.1, Tables 1, 3 and A15).

TC = 1/|C| Σ s(τ): C are the correct direct trajectories (s = 1.0 by convention) and the
classified correct searched ones (s = 1.0 true, 0.6 amb, 0.3 hall).  D-Inv = N_hall / (N_true +
N_hall + N_amb).  Both condition on what a policy got right, so they are ratios whose
denominators differ between policies; what could not be classified is counted beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pydantic import Field

from ..config import Settings
from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.ratios import ratio_intervals
from ..interventions.replacement import AMB, HALL, TRUE, Counterfactual

DIRECT, UNCLASSIFIED, OTHER = "direct", "unclassified", "not correct"
OUTCOMES = (DIRECT, TRUE, AMB, HALL, UNCLASSIFIED, OTHER)
# metric -> (numerator, denominator), columns that ``grounded`` adds
_RATIOS = {
    "tc": ("tc_sum", "tc_in"),
    "tc_searched": ("tc_searched_sum", "classified"),
    "d_inv": ("invariant", "classified"),
    "d_inv_all": ("invariant", "correct_searched"),
    "unclassified": ("unclassified", "correct_searched"),
}


class GroundingConfig(Settings):
    """Scores of the outcomes; the defaults are S1's."""

    direct: float = Field(default=1.0, ge=0, le=1)
    true: float = Field(default=1.0, ge=0, le=1)
    amb: float = Field(default=0.6, ge=0, le=1)
    hall: float = Field(default=0.3, ge=0, le=1)


def grounded(
    frame: pd.DataFrame,
    counterfactuals: Sequence[Counterfactual | None],
    config: GroundingConfig | None = None,
) -> pd.DataFrame:
    """``frame`` with what document replacement made of each rollout.

    Parameters
    ----------
    frame : of ``evaluate``; rows of missing rollouts may follow those of the trajectories.
    counterfactuals : of ``replace_documents`` for the same trajectories in the same order.

    Returns
    -------
    The frame with ``outcome`` (``OUTCOMES``), ``reason`` (of an unclassified rollout),
    ``regenerated`` ("answer", "turn" or ""), ``prefix_states`` and the 0/1 columns and scores
    that ``grounding`` sums.

    Raises
    ------
    WorkbenchError : the two do not belong together.
    """
    config = config or GroundingConfig()
    padded = [*counterfactuals, *[None] * int(frame["missing"].sum())]
    searched = (frame["em"] == 1) & (frame["searches"] > 0)
    if len(padded) != len(frame) or [c is not None for c in padded] != searched.tolist():
        raise WorkbenchError(
            f"{len(counterfactuals)} counterfactuals do not belong to these {len(frame)} rollouts",
            where="grounded",
            fix="give the frame of the trajectories that replace_documents was given, in order",
        )
    outcome = pd.Series(OTHER, index=frame.index)
    outcome[(frame["em"] == 1) & (frame["direct"] == 1)] = DIRECT
    outcome[searched] = [c.outcome or UNCLASSIFIED for c in padded if c is not None]
    scores = {TRUE: config.true, AMB: config.amb, HALL: config.hall}
    classified = outcome.isin(scores)
    earned = outcome.map(scores).fillna(0.0)
    return frame.assign(
        outcome=outcome,
        reason=[c.reason if c else "" for c in padded],
        regenerated=[c.regenerated if c else "" for c in padded],
        prefix_states=[float(c.prefix_states) if c else 0.0 for c in padded],
        correct_searched=searched.astype(float),
        classified=classified.astype(float),
        unclassified=(outcome == UNCLASSIFIED).astype(float),
        invariant=(outcome == HALL).astype(float),
        tc_in=(classified | (outcome == DIRECT)).astype(float),
        tc_searched_sum=earned,
        tc_sum=earned + config.direct * (outcome == DIRECT),
    )


def grounding(
    frame: pd.DataFrame,
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """TC and D-Inv under both conditionings with bootstrap intervals.

    ``tc`` over correct direct and classified correct searched rollouts (S1 Tables 1 and 3),
    ``tc_searched`` over the latter only (Table A15); ``d_inv`` among classified, ``d_inv_all``
    among all correct searched rollouts, where what could not be classified is in the
    denominator; ``unclassified`` its share.  With ``by=["regenerated"]`` rollouts whose answer
    alone and whose last turn was regenerated are told apart.

    Parameters
    ----------
    frame : of ``grounded``, possibly several with further columns.

    Returns
    -------
    Rows of ``ratio_intervals``; a metric that conditions on nothing is NaN with n 0.
    """
    _need(frame, "tc_in", "grounded")
    return ratio_intervals(frame, _RATIOS, by, seed, config)


def cost_controlled(
    frame: pd.DataFrame,
    by: Sequence[str] = (),
    seed: str | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """S1 Table A15: ``em`` over all rollouts (invalid ones 0), ``tc_searched``, ``searches``
    per rollout and ``em_per_search`` (Σ EM / Σ searches, NaN where nobody searched)."""
    _need(frame, "tc_in", "grounded")
    ratios = {
        "em": ("em", "one"),
        "tc_searched": _RATIOS["tc_searched"],
        "searches": ("searches", "one"),
        "em_per_search": ("em", "searches"),
    }
    return ratio_intervals(frame.assign(one=1.0), ratios, by, seed, config)


def outcome_counts(frame: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Rollouts of each outcome and reason: ``by``, outcome, reason, rollouts."""
    _need(frame, "outcome", "grounded")
    keys = [*by, "outcome", "reason"]
    counts = frame.groupby(keys, observed=True, sort=False, dropna=False).size()
    table = counts.rename("rollouts").reset_index()
    order = table["outcome"].map(OUTCOMES.index)
    return (
        table.assign(order=order)
        .sort_values([*by, "order", "reason"])
        .drop(columns="order")
        .reset_index(drop=True)
    )


def _need(frame: pd.DataFrame, column: str, maker: str) -> None:
    if column not in frame.columns:
        raise WorkbenchError(
            f"the frame has no column {column!r}", fix=f"make it by evaluation.grounding.{maker}"
        )
