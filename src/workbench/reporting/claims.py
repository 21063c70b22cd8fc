"""Sentences about differences, made from intervals: "better" only where the interval says so."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .comparisons import METRIC_NAMES
from .numbers import decimal
from .style import display

_ROUNDING = 1e-12  # an end this close to 0 is 0: what is left of sums of equal parts
# Where more is not simply better, a difference is said to be higher or lower.
GOOD = frozenset({"em", "f1", "inclusion", "valid", "accuracy"})


def verdict(row: Mapping, metric: str) -> str:
    """ "better", "worse", "higher", "lower" or "no difference shown", by the interval alone."""
    more, less = ("better", "worse") if metric in GOOD else ("higher", "lower")
    if row["low"] > _ROUNDING:
        return more
    return less if row["high"] < -_ROUNDING else "no difference shown"


def claim(row: Mapping, ours: str, reference: str, metric: str, where: str = "") -> str:
    """One sentence on a paired difference ``ours`` - ``reference``.

    Parameters
    ----------
    row : value, low, high, n (questions) and optionally seeds.
    metric : its key; EM, F1, inclusion, validity and accuracy are "better" or "worse", all
        others "higher" or "lower".
    where : the questions it is about, e.g. a category.
    """
    name = METRIC_NAMES.get(metric, metric.replace("_", " "))
    seeds = int(row.get("seeds", 1))
    rests_on = f"n = {int(row['n'])}" + (f" x {seeds} seeds" if seeds > 1 else "")
    value, low, high = (decimal(row[key], signed=True) for key in ("value", "low", "high"))
    ends = "no interval" if math.isnan(row["low"]) else f"{low}, {high}"
    numbers = f"{value} [{ends}], {rests_on}"
    pair, said = (display(ours), display(reference)), verdict(row, metric)
    if said in ("better", "worse", "higher", "lower"):
        sentence = f"{pair[0]} is {said} than {pair[1]}"
    else:
        sentence = f"no difference between {pair[0]} and {pair[1]} is shown"
    place = f" ({where})" if where else ""
    return f"{name}{place}: {sentence}: {numbers}"


def told_apart(differences, reference: str, where: str, each: str = "") -> None:
    """Print a frame of paired differences: how many are told apart from 0, and only those.

    Parameters
    ----------
    differences : condition, metric, value, low, high, n; rows are condition - ``reference``.
    where : the questions they are about; ``each`` names a column that says more.
    """
    rows = differences.to_dict("records")
    told = [row for row in rows if verdict(row, row["metric"]) != "no difference shown"]
    print(f"{len(told)} of {len(rows)} differences are told apart by their intervals")
    for row in told:
        place = f"{where}, {each} {row[each]}" if each else where
        print(claim(row, row["condition"], reference, row["metric"], place))
