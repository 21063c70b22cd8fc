"""What the credit of Search-G1 rests on: its labels (S1 A6, A16) and its support (A22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig, Interval
from ..inference.paired import INTERVAL_COLUMNS, interval_row, mean_intervals
from ..inference.ratios import ratio_intervals
from ..inference.statistic import bootstrap_statistic
from ..methods.advantages import group_advantages
from ..methods.shaping import Shaping, eq6
from .label_agreement import cohen_kappa, label_agreement
from .search_g1_study import SEED, of_conditions
from .uga import annotated_support

DELETION = "deletion"
_BLOCK = 2_000_000  # weights held at once


def reliability(
    labels: pd.DataFrame,
    constructions: Sequence[str],
    shaping: Shaping | None = None,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """How far other constructions of the reliance label agree with evidence deletion.

    Parameters
    ----------
    labels : condition, training_seed, item_id, construction, changed (bool), one row per valid
        searched rollout and construction.  With the columns group and correct, and several
        rollouts in a group, ``sign_flips`` compares the advantages (``label_advantages``).
    shaping : coefficients of those advantages.

    Returns
    -------
    Rows: condition, construction, metric (agreement, kappa, reference_rate, rate, rate_delta,
    sign_flips), value, low, high, n (questions), seeds, p, rollouts.  Questions are resampled
    with all their rollouts.  NaN: κ of constant labels, ``sign_flips`` without groups.

    Raises
    ------
    WorkbenchError : a column is missing, or a rollout has two labels of one construction.
    """
    of_conditions(labels, None)
    if "changed" not in labels.columns or labels["changed"].isna().any():
        raise WorkbenchError(
            "a rollout has no label", where="labels: changed", fix="label every rollout"
        )
    rollout = [SEED, "item_id", *(c for c in ("group", "sample") if c in labels.columns)]
    if labels.duplicated(["condition", *rollout, "construction"]).any():
        raise WorkbenchError(
            "a rollout has two labels of one construction",
            where="labels",
            fix="name the rollouts of a question apart in a column 'sample'",
        )
    rows = []
    for condition, part in labels.groupby("condition", sort=False):
        tables = {c: own.set_index(rollout) for c, own in part.groupby("construction")}
        for name in constructions:
            if name not in tables or DELETION not in tables:
                continue
            pair = tables[DELETION].join(tables[name][["changed"]], how="inner", rsuffix="_other")
            if len(pair):
                key = {"condition": condition, "construction": name}
                rows += [key | r for r in _agreement(pair.reset_index(), name, shaping, config)]
    columns = ["condition", "construction", "metric", *INTERVAL_COLUMNS, "rollouts"]
    return pd.DataFrame(rows, columns=columns)


def label_advantages(
    changed: np.ndarray, correct: np.ndarray, groups: Sequence[str], shaping: Shaping
) -> np.ndarray:
    """Advantages float64 [N] among the searched rollouts of a group with the label as d, n = 1.

    Eq. 6 of valid rollouts that searched once: what the label alone would be worth.
    """
    ones, d = np.ones(len(changed)), np.asarray(changed, dtype=np.float64)
    parts = eq6(ones, correct, ones, d, 0 * ones, ones, shaping)
    return group_advantages(np.sum(list(parts.values()), axis=0), groups, 1e-6)


def _agreement(
    pair: pd.DataFrame, name: str, shaping: Shaping | None, config: BootstrapConfig | None
) -> list[dict]:
    first, second = (pair[c].astype(bool).to_numpy() for c in ("changed", "changed_other"))
    questions = pair["item_id"].tolist()
    numbers = pd.DataFrame({"item_id": questions, "one": 1.0, "first": first, "second": second})
    numbers = numbers.astype({"first": float, "second": float})
    numbers = numbers.assign(delta=numbers["second"] - numbers["first"])
    shares = {"reference_rate": "first", "rate": "second", "rate_delta": "delta"}
    found = ratio_intervals(numbers, {k: (c, "one") for k, c in shares.items()}, config=config)
    credit = None
    if {"group", "correct"} <= set(pair.columns) and shaping is not None:
        groups = (pair[SEED].astype(str) + "/" + pair["group"].astype(str)).tolist()
        correct = pair["correct"].astype(bool).to_numpy()
        if len(set(groups)) < len(groups):

            def credit(labels: np.ndarray) -> np.ndarray:
                return label_advantages(labels, correct, groups, shaping)

    told = label_agreement(first, {name: second}, questions, credit, config).iloc[0]
    n = int(numbers["item_id"].nunique())
    same = Interval(told["agreement"], told["low"], told["high"], n)
    flips = Interval(told["sign_flips"], np.nan, np.nan, n)
    rows = [{"metric": "agreement", **interval_row(same)}]
    rows.append({"metric": "kappa", **interval_row(_kappa(first, second, questions, config))})
    rows += found.to_dict("records")
    rows.append({"metric": "sign_flips", **interval_row(flips)})
    seeds = int(pair[SEED].nunique())
    return [row | {"rollouts": len(pair), "seeds": seeds} for row in rows]


def _kappa(first, second, questions: Sequence[str], config: BootstrapConfig | None) -> Interval:
    names, unit = np.unique(np.asarray(questions, dtype=object), return_inverse=True)
    if np.isnan(cohen_kappa(first, second)):
        return Interval(np.nan, np.nan, np.nan, len(names))
    columns = (np.ones(len(first)), first, second, first == second)
    sums = np.stack([np.bincount(unit, c, len(names)) for c in columns], axis=1)

    def statistic(counts: np.ndarray) -> np.ndarray:
        n, a, b, same = (counts @ sums).T
        chance = (a * b + (n - a) * (n - b)) / n**2
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(chance < 1, (same / n - chance) / (1 - chance), np.nan)

    return bootstrap_statistic(statistic, len(names), config)


def credit_usefulness(
    groups: pd.DataFrame,
    deltas: Mapping[str, float],
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Table A22: does credit go to the answers that the evidence supports?

    Parameters
    ----------
    groups : sampled rollouts, several per question, with cov, all_evidence
        (``evaluation.evidence``) and ``reward``, what the condition's own training would pay.
    deltas : δ of the advantages by condition; others are left out.

    Returns
    -------
    Rows: condition, metric, value, low, high, n (questions), seeds, p, rollouts.  ``em`` over all
    rollouts, ``support`` (``uga.annotated_support``) of correct searched answers, and over these
    the correlation of advantage and support: ``pearson``, ``spearman``, and ``within``, Pearson's
    after taking the mean of the question's own correct searched rollouts from both, so that easy
    and hard questions cannot make it.  Undefined correlations (no variation) are NaN.

    Raises
    ------
    WorkbenchError : a column is missing, or a reward is not finite.
    """
    rows = of_conditions(groups, list(deltas))
    if "reward" not in rows.columns:
        raise WorkbenchError(
            "the frame has no column 'reward'", fix="score the rollouts with their own condition"
        )
    tables = []
    for condition, part in rows.groupby("condition", sort=False):
        names = (part[SEED].astype(str) + "/" + part["item_id"].astype(str)).tolist()
        told = part.assign(
            group_name=names,
            advantage=group_advantages(part["reward"].to_numpy(), names, deltas[condition]),
            support=annotated_support(part),
            right=((part["em"] == 1) & (part["searches"] > 0)).astype(float),
        ).assign(supported=lambda t: t["support"] * t["right"])
        found = [
            mean_intervals(told, ["em"], (), SEED, config).assign(rollouts=len(told)),
            ratio_intervals(told, {"support": ("supported", "right")}, (), SEED, config),
        ]
        right = told[told["right"] == 1]
        found.append(pd.DataFrame(_correlations(right, config)))
        whole = pd.concat(found, ignore_index=True)
        tables.append(whole.assign(condition=condition).fillna({"rollouts": len(right)}))
    columns = ["condition", "metric", *INTERVAL_COLUMNS, "rollouts"]
    return (
        pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)
    )


def _correlations(right: pd.DataFrame, config: BootstrapConfig | None) -> list[dict]:
    pair = right[["advantage", "support"]]
    own = pair.groupby(right["group_name"])
    several = own["support"].transform("size") > 1
    centred = (pair - own.transform("mean"))[several]
    found = {
        "pearson": (pair, right, False),
        "spearman": (pair, right, True),
        "within": (centred, right[several], False),
    }
    return [
        {
            "metric": metric,
            **interval_row(
                correlation(*columns.to_numpy().T, of["item_id"].tolist(), ranked, config)
            ),
            "seeds": int(right[SEED].nunique()),
            "rollouts": len(of),
        }
        for metric, (columns, of, ranked) in found.items()
    ]


def correlation(
    x: np.ndarray,
    y: np.ndarray,
    questions: Sequence[str],
    ranked: bool = False,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Pearson's correlation of float [N], Spearman's if ``ranked``; questions are resampled.

    Ranks (ties share their mean) are made anew in every resample.  NaN where one side does not
    vary; ``n`` counts questions.
    """
    names, unit = np.unique(np.asarray(questions, dtype=object), return_inverse=True)
    if len(x) < 2 or np.ptp(x) < 1e-12 or np.ptp(y) < 1e-12:
        return Interval(np.nan, np.nan, np.nan, len(names))

    def statistic(counts: np.ndarray) -> np.ndarray:
        size = max(1, _BLOCK // len(x))
        blocks = [counts[at : at + size][:, unit] for at in range(0, len(counts), size)]
        return np.concatenate([weighted_correlation(x, y, w, ranked) for w in blocks])

    return bootstrap_statistic(statistic, len(names), config)


def weighted_correlation(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray, ranked: bool
) -> np.ndarray:
    """Correlation float [draws] with the weights [draws, N] of the rows; NaN if undefined."""
    total = weights.sum(axis=1, keepdims=True)
    sides = [_ranks(v, weights) if ranked else np.broadcast_to(v, weights.shape) for v in (x, y)]
    a, b = (v - (weights * v).sum(axis=1, keepdims=True) / total for v in sides)
    above, left, right = ((weights * p).sum(axis=1) for p in (a * b, a * a, b * b))
    scale = np.sqrt(left * right)
    defined = scale > 1e-12
    return np.where(defined, above / np.where(defined, scale, 1.0), np.nan)


def _ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean rank float [draws, N] of each row among its ``weights``-fold copies."""
    levels, level = np.unique(values, return_inverse=True)
    order = np.argsort(level, kind="stable")
    last = np.flatnonzero(np.diff(level[order], append=len(levels)))
    upto = weights[:, order].cumsum(axis=1)[:, last]
    before = np.concatenate([np.zeros((len(weights), 1)), upto[:, :-1]], axis=1)
    return ((before + upto + 1) / 2)[:, level]
