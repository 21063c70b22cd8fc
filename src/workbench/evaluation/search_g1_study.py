"""The comparisons of the Search-G1 study (S1 Tables 3, 4, A3, A13, A14; Figure 4).

Frames in, frames with intervals out.  Trained conditions are resampled over training seeds and
then over questions (S1 Table 2); the untrained policy over questions.  What conditions on being
right, on searching or on being classifiable is a ratio whose denominator the bootstrap resamples
too, and its n counts the questions that are in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.classical import t_interval, wilson
from ..inference.paired import INTERVAL_COLUMNS, interval_row, mean_intervals
from ..questions.categories import CHAIN
from .contrasts import ALL, against
from .grounding import grounding
from .policies import BASE
from .selection import STRATA

SEED = "training_seed"
FULL = "search_g1"
MAIN = (BASE.condition, "search_r1", FULL)  # Table 3
VARIANTS = (
    FULL, "search_g1_frozen", "search_g1_no_cost", "search_g1_no_reliance", "search_g1_open_gate",
    "search_g1_no_bonus", "search_g1_no_necessity", "search_g1_shuffled_gate",
)  # fmt: skip
# Rows of Tables A13 and A14 in S1's order; eta = 0 is the variant without search cost.
SWEEP = (
    "search_g1_lambda_04", FULL, "search_g1_lambda_08", "search_g1_no_cost", "search_g1_eta_05",
)  # fmt: skip
SCHEDULES = ("search_g1_frozen", "search_g1_k_50", FULL, "search_g1_k_10", "search_g1_m_100")
CREDIT_CONTROLS = ("search_g1_permuted", "search_g1_cost_only", FULL)  # Table A22
KINDS = ("all_correct", "all_wrong")


def of_conditions(frame: pd.DataFrame, conditions: Sequence[str] | None) -> pd.DataFrame:
    """The rows of ``conditions``, all for None; those that are not there are left out.

    Raises
    ------
    WorkbenchError : the frame has no condition or training seed.
    """
    if absent := [c for c in ("condition", SEED, "item_id") if c not in frame.columns]:
        raise WorkbenchError(
            f"the frame has no column {absent[0]!r}", fix="take the rows of policies.ask"
        )
    return frame if conditions is None else frame[frame["condition"].isin(conditions)]


def greedy_rows(evaluated: pd.DataFrame) -> pd.DataFrame:
    """The greedy rollouts of ``evaluated`` (rows of ``policies.ask``)."""
    if "decoding" not in evaluated.columns:
        raise WorkbenchError("the frame does not say how it was decoded", where="decoding")
    return evaluated[evaluated["decoding"] == "greedy"]


def with_category(frame: pd.DataFrame, category: str = CHAIN) -> pd.DataFrame:
    """``frame`` with the column questions: all rows, and those of ``category`` once more.

    Two-hop chains stand beside S1's 2WikiMultiHopQA, single one-hop questions beside its NQ.
    """
    part = frame[frame["category"] == category]
    return pd.concat(
        [frame.assign(questions=ALL), part.assign(questions=category)], ignore_index=True
    )


def behaviour(
    grounded: pd.DataFrame,
    conditions: Sequence[str] | None = None,
    by: Sequence[str] = (),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """EM and Search/Q over all rollouts, and TC, D-Inv and the unclassified share.

    Parameters
    ----------
    grounded : greedy rollouts, as ``evaluation.grounding.grounded`` returns them.

    Returns
    -------
    Rows: condition, ``by``, metric (em, searches, tc, tc_searched, d_inv, d_inv_all,
    unclassified), value, low, high, n (questions), seeds, p.  A metric that conditions on
    nothing is NaN with n 0.
    """
    rows, keys = of_conditions(grounded, conditions), ["condition", *by]
    means = mean_intervals(rows, ["em", "searches"], keys, SEED, config)
    return pd.concat([means, grounding(rows, keys, SEED, config)], ignore_index=True)


def classified_counts(grounded: pd.DataFrame, by: Sequence[str] = ()) -> dict[tuple, str]:
    """``"57 of 60"``: classified among correct searched rollouts, by condition and ``by``."""
    sums = grounded.groupby(["condition", *by], observed=True)[["classified", "correct_searched"]]
    return {
        key if isinstance(key, tuple) else (key,): f"{int(a)} of {int(b)}"
        for key, (a, b) in zip(sums.sum().index, sums.sum().to_numpy())
    }


def against_full(
    frame: pd.DataFrame,
    conditions: Sequence[str] = VARIANTS,
    metrics: Sequence[str] = ("em", "searches"),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Paired difference of each condition to full Search-G1: rows of ``contrasts.against``.

    Without rows of Search-G1, or of anything else, there is nothing to compare and no row.
    """
    rows = of_conditions(frame, [FULL, *conditions])
    present = set(rows["condition"])
    others = [c for c in conditions if c in present and c != FULL]
    if FULL not in present or not others:
        return pd.DataFrame(columns=["condition", "metric", *INTERVAL_COLUMNS])
    return against(rows, metrics, (), others, FULL, config)


def closed_book_shares(grounded: pd.DataFrame) -> pd.DataFrame:
    """Table A3: what the base policy answers without retrieval, by stratum and over all.

    Parameters
    ----------
    grounded : any rows with item_id, stratum, base_closed_exact and base_closed_sufficient;
        every question counts once.

    Returns
    -------
    Rows: stratum, label ("exact", "sufficient", or "disagree" where the two differ), count, and
    the share with its Wilson interval: value, low, high, n (questions), seeds, p.

    Raises
    ------
    WorkbenchError : a column is missing, a label is NaN, or a question has two.
    """
    columns = ["item_id", "stratum", "base_closed_exact", "base_closed_sufficient"]
    if absent := [c for c in columns if c not in grounded.columns]:
        raise WorkbenchError(
            f"the frame has no column {absent[0]!r}", fix="ask the base policy closed-book"
        )
    asked = grounded[columns].drop_duplicates()
    bad = asked["item_id"].duplicated(keep=False) | asked.isna().any(axis=1)
    if bad.any():
        raise WorkbenchError(
            f"{asked.loc[bad, 'item_id'].nunique()} questions have no closed-book label, or two",
            where=str(asked.loc[bad, "item_id"].iloc[0]),
            fix="label every question once, with the base policy",
        )
    exact, sufficient = (asked[c].astype(bool) for c in columns[2:])
    labels = {"exact": exact, "sufficient": sufficient, "disagree": exact != sufficient}
    names = [*STRATA, *sorted(set(asked["stratum"]) - set(STRATA))]
    rows = []
    for name in (ALL, *names):
        chosen = (asked["stratum"] == name) | (name == ALL)
        for label, values in labels.items() if chosen.any() else ():
            count = int(values[chosen].sum())
            share = interval_row(wilson(count, int(chosen.sum())))
            rows.append({"stratum": name, "label": label, "count": count, **share})
    return pd.DataFrame(rows, columns=["stratum", "label", "count", *INTERVAL_COLUMNS])


def tied_groups(histories: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Figure 4 and its mirror: what a reward makes of groups that the outcome cannot rank.

    ``credited`` is the share of such groups in which some advantage is not 0, ``reward_sd``
    their mean within-group sample deviation of the reward.  In all-correct groups that is
    tie-breaking (S1); in all-wrong groups it is credit without any success.  Steps are pooled
    with their number of such groups as weights.

    Parameters
    ----------
    histories : ``grpo.history.training_history`` by condition.

    Returns
    -------
    Rows: condition, kind (``KINDS``), metric, value, low, high, n (groups of all seeds), seeds,
    p.  Several seeds: their mean and its t interval, cut at the possible values; one seed: the
    Wilson interval of a share, none of a deviation.  No such group: NaN with n 0.

    Raises
    ------
    WorkbenchError : a history does not count its groups.
    """
    rows = []
    for condition, history in histories.items():
        for kind in KINDS:
            counted = ["seed", "step", "groups", f"{kind}_groups"]
            if absent := [c for c in counted if c not in history.columns]:
                raise WorkbenchError(
                    f"the history has no column {absent[0]!r}",
                    where=condition,
                    fix="train again: older logs do not tell tied groups apart",
                )
            trained = history[history["step"] > 0]
            count = (trained["groups"] * trained[f"{kind}_groups"]).round()
            for metric, most in (("credited", 1.0), ("reward_sd", np.inf)):
                # A training without a single such group never logs the column.
                values = trained.get(f"{kind}_{metric}", pd.Series(np.nan, trained.index))
                found = _pooled(values, count, trained["seed"], most)
                rows.append({"condition": condition, "kind": kind, "metric": metric, **found})
    return pd.DataFrame(rows, columns=["condition", "kind", "metric", *INTERVAL_COLUMNS])


def _pooled(values: pd.Series, counts: pd.Series, seeds: pd.Series, most: float) -> dict:
    """Mean over seeds of Σ value·count / Σ count, with interval, n = Σ count and seeds."""
    kept = counts > 0
    if (kept & values.isna()).any():
        raise WorkbenchError("a step has tied groups and does not say what became of them")
    # What is logged as nothing (no group in the step) has no weight.
    sums = (values[kept] * counts[kept]).groupby(seeds[kept]).sum()
    totals = counts[kept].groupby(seeds[kept]).sum()
    if totals.empty:
        nothing = dict.fromkeys(INTERVAL_COLUMNS, np.nan)
        return nothing | {"n": 0, "seeds": int(seeds.nunique())}
    means = (sums / totals).to_numpy()
    found = interval_row(t_interval(means, within=(0.0, most)))
    if len(means) == 1 and most == 1.0:
        share = wilson(round(float(sums.iloc[0])), int(totals.iloc[0]))
        found |= {"low": share.low, "high": share.high}
    return found | {"n": int(totals.sum()), "seeds": len(means)}
