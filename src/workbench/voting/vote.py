"""The weighted majority vote over parallel rollouts (S2 §2).

    V(a) = Σ_i w_i · 1[â_i = a],   â = argmax_a V(a)

Answers are clustered by their normal form.  A rollout without an answer abstains.

Ties.  Clusters whose summed weights agree to within 1e-9 of the largest are tied, and the
result names them: a tie stays a tie for whoever counts ties.  An answer is still needed, so
the tie is decided by, in order, the number of rollouts behind a cluster and then the smallest
SHA-256 of its normal form: a coin that depends neither on the order of the rollouts nor on
the alphabet.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import WorkbenchError
from .clustering import ClusterRule, normal_form

_RELATIVE_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Vote:
    """What was elected, and how clearly.

    answer : the surface form that stands for the winning cluster (the one with the largest
        summed weight in it, under the same tie rule), None when all abstained.
    cluster : its normal form, None likewise.
    totals, counts : summed weight and number of rollouts per cluster.
    tied : the clusters that share the largest weight when there are two or more, else ().
    decided_by : "weight", "count" or "hash", the criterion that settled it; "" for no answer.
    """

    answer: str | None
    cluster: str | None
    totals: dict[str, float]
    counts: dict[str, int]
    tied: tuple[str, ...]
    decided_by: str


def weighted_vote(
    answers: Sequence[str | None],
    weights: Sequence[float] | None = None,
    rule: ClusterRule | None = None,
) -> Vote:
    """Elect one answer; without ``weights`` every rollout counts 1 (simple majority).

    Raises
    ------
    WorkbenchError : as many weights as answers are needed, each one finite.
    """
    weights = [1.0] * len(answers) if weights is None else [float(w) for w in weights]
    if len(weights) != len(answers):
        raise WorkbenchError(f"{len(weights)} weights for {len(answers)} answers")
    bad = [w for w in weights if not math.isfinite(w)]
    if bad:
        raise WorkbenchError(
            f"a voting weight is {bad[0]}", fix="drop log-probabilities of -inf before the mean"
        )
    votes = [
        (normal_form(answer, rule), answer, weight)
        for answer, weight in zip(answers, weights, strict=True)
        if answer is not None and answer.strip()
    ]
    if not votes:
        return Vote(None, None, {}, {}, (), "")
    totals, counts = _tally((key, weight) for key, _, weight in votes)
    cluster, tied, decided_by = _elect(totals, counts)
    surfaces = _tally((answer, weight) for key, answer, weight in votes if key == cluster)
    answer, _, _ = _elect(*surfaces)
    return Vote(answer, cluster, totals, counts, tied, decided_by)


def _tally(votes) -> tuple[dict[str, float], dict[str, int]]:
    """Summed weight and count per key, keys sorted; the sums do not depend on the order."""
    by_key: dict[str, list[float]] = {}
    for key, weight in votes:
        by_key.setdefault(key, []).append(weight)
    ordered = sorted(by_key)
    return {k: math.fsum(by_key[k]) for k in ordered}, {k: len(by_key[k]) for k in ordered}


def _elect(totals: dict[str, float], counts: dict[str, int]) -> tuple[str, tuple[str, ...], str]:
    best = max(totals.values())
    slack = _RELATIVE_TIE * max(map(abs, totals.values()))
    leaders = [key for key, total in totals.items() if total >= best - slack]
    if len(leaders) == 1:
        return leaders[0], (), "weight"
    most = max(counts[key] for key in leaders)
    fullest = [key for key in leaders if counts[key] == most]
    if len(fullest) == 1:
        return fullest[0], tuple(leaders), "count"
    return min(fullest, key=_coin), tuple(leaders), "hash"


def _coin(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
