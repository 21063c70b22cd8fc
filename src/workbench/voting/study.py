"""Voting over the sampled rollouts of each question: rules side by side, with intervals.

Two references are no votes: ``single`` is the mean over a question's rollouts (what one
rollout earns), ``oracle`` is 1 when any rollout is right (what the best vote could earn).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from ..agent.trajectory import Trajectory
from ..errors import WorkbenchError
from ..evaluation.answers import exact_match
from ..evaluation.metrics import scored_answer
from ..inference.bootstrap import BootstrapConfig, bootstrap_means
from ..inference.paired import interval_row
from ..questions.graph import Item
from .clustering import ClusterRule
from .overlap import rgv_weight
from .vote import weighted_vote

Weight = Callable[[Trajectory], float]
Score = Callable[[str | None, Sequence[str]], float]

RULES: dict[str, Weight] = {"majority": lambda trajectory: 1.0, "rgv": rgv_weight}
REFERENCES = ("single", "oracle")


def vote_questions(
    items: Iterable[Item],
    trajectories: Sequence[Trajectory],
    rules: Mapping[str, Weight] = RULES,
    score: Score = exact_match,
    cluster_rule: ClusterRule | None = None,
    rollouts: int | None = None,
) -> pd.DataFrame:
    """One row per question and rule: what was elected and what it scores.

    Parameters
    ----------
    rules : name -> weight of one rollout.
    rollouts : N that every question should have; None takes what is there.

    Returns
    -------
    item_id, category, rule (``single``, the rules, ``oracle``), correct (score in [0, 1]),
    answer, tied (clusters sharing the largest weight, 0 without a tie), abstained (rollouts
    without a valid answer), rollouts, right (rollouts that score 1).

    Raises
    ------
    WorkbenchError : a question without rollouts, or with another number than ``rollouts``.
    """
    by_item: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        by_item.setdefault(trajectory.item_id, []).append(trajectory)
    rows = []
    for item in items:
        samples = by_item.get(item.item_id, [])
        if not samples or (rollouts is not None and len(samples) != rollouts):
            raise WorkbenchError(
                f"{len(samples)} rollouts to vote over, {rollouts or 'at least 1'} needed",
                where=item.item_id,
                fix="sample the same number of rollouts for every question",
            )
        rows += _question_rows(item, samples, rules, score, cluster_rule)
    return pd.DataFrame(rows)


def _question_rows(item, samples, rules, score, cluster_rule) -> list[dict]:
    answers = [scored_answer(t) for t in samples]
    scores = np.array([score(a, item.answers) for a in answers])
    shared = {
        "item_id": item.item_id,
        "category": item.category,
        "abstained": sum(a is None for a in answers),
        "rollouts": len(samples),
        "right": int((scores == 1.0).sum()),
    }
    reference = {"answer": None, "tied": 0, **shared}
    rows = [{"rule": "single", "correct": float(scores.mean()), **reference}]
    for name, weight in rules.items():
        vote = weighted_vote(answers, [weight(t) for t in samples], cluster_rule)
        correct = score(vote.answer, item.answers)
        elected = {"answer": vote.answer, "tied": len(vote.tied)}
        rows.append({"rule": name, "correct": correct, **elected, **shared})
    rows.append({"rule": "oracle", "correct": float(scores.max()), **reference})
    return rows


def summarise_votes(
    votes: pd.DataFrame, comparator: str = "majority", config: BootstrapConfig | None = None
) -> pd.DataFrame:
    """Accuracy of every rule and its paired difference to ``comparator``, over questions.

    All rules are resampled on the same draws of questions, so differences are paired.

    Returns
    -------
    One row per rule: rule, accuracy, low, high, n (questions), delta, delta_low, delta_high,
    delta_p, comparator (the delta columns are 0 for the comparator itself), tied (share of
    questions that ended in a tie), rollouts (mean per question).
    """
    table = votes.pivot(index="item_id", columns="rule", values="correct")
    names = list(dict.fromkeys(votes["rule"]))
    if comparator not in names:
        raise WorkbenchError(f"no rule {comparator!r} to compare with", fix=f"one of {names}")
    scores = table[names].to_numpy(dtype=np.float64)
    deltas = scores - table[comparator].to_numpy(dtype=np.float64)[:, None]
    found = bootstrap_means(np.hstack([scores, deltas]), config)
    ties = (votes["tied"] > 0).groupby(votes["rule"]).mean()
    sizes = votes.groupby("rule")["rollouts"].mean()
    rows = []
    for place, name in enumerate(names):
        own, delta = (interval_row(i) for i in (found[place], found[place + len(names)]))
        rows.append(
            {
                "rule": name,
                "accuracy": own["value"],
                "low": own["low"],
                "high": own["high"],
                "n": own["n"],
                "delta": delta["value"],
                "delta_low": delta["low"],
                "delta_high": delta["high"],
                "delta_p": delta["p"],
                "comparator": comparator,
                "tied": float(ties[name]),
                "rollouts": float(sizes[name]),
            }
        )
    return pd.DataFrame(rows)
