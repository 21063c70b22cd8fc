"""One question's vote taken apart: every rollout's ballot, and what the ballots add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ..agent.trajectory import Trajectory
from ..evaluation.answers import exact_match
from ..evaluation.metrics import scored_answer
from ..questions.graph import Item
from .clustering import ClusterRule, normal_form
from .study import RULES, Weight
from .vote import weighted_vote


def ballots(
    item: Item,
    trajectories: Sequence[Trajectory],
    rules: Mapping[str, Weight] = RULES,
    cluster_rule: ClusterRule | None = None,
) -> pd.DataFrame:
    """One row per rollout: answer, cluster ("" for an abstention), searches, right, weights.

    The weight of rule r is in column r.
    """
    rows = []
    for trajectory in trajectories:
        answer = scored_answer(trajectory)
        rows.append(
            {
                "answer": answer or "",
                "cluster": normal_form(answer, cluster_rule) if answer and answer.strip() else "",
                "searches": len(trajectory.searches),
                "right": exact_match(answer, item.answers) == 1.0,
                **{name: weight(trajectory) for name, weight in rules.items()},
            }
        )
    return pd.DataFrame(rows)


def tally(
    item: Item,
    trajectories: Sequence[Trajectory],
    rules: Mapping[str, Weight] = RULES,
    cluster_rule: ClusterRule | None = None,
) -> pd.DataFrame:
    """One row per cluster: rollouts, right, and per rule its summed weight and whether it won.

    Columns ``<rule>`` (sum of weights) and ``<rule>_wins``; clusters with most rollouts first.
    """
    answers = [scored_answer(t) for t in trajectories]
    table = pd.DataFrame()
    for name, weight in rules.items():
        vote = weighted_vote(answers, [weight(t) for t in trajectories], cluster_rule)
        if table.empty:
            table = pd.DataFrame({"rollouts": vote.counts}, dtype="int64")
            table["right"] = [exact_match(c, item.answers) == 1.0 for c in table.index]
        table[name] = pd.Series(vote.totals)
        table[f"{name}_wins"] = table.index == vote.cluster
    return table.rename_axis("cluster").sort_values("rollouts", ascending=False, kind="stable")


def telling_question(votes: pd.DataFrame, rules: tuple[str, str] = ("majority", "rgv")) -> str:
    """Id of a question to show, where some rollouts are right and some wrong if there is one.

    Among those, one where the two rules elect differently, best where only the second is
    right; else the one with the closest call among the rollouts.

    ``votes`` is the frame of ``vote_questions``.  The same frame gives the same question.
    """
    answers = votes.pivot(index="item_id", columns="rule", values="answer")[list(rules)]
    scores = votes.pivot(index="item_id", columns="rule", values="correct")[list(rules)]
    asked = votes.drop_duplicates("item_id").set_index("item_id")
    rank = pd.DataFrame(
        {
            "mixed": (asked["right"] > 0) & (asked["right"] < asked["rollouts"]),
            "differ": answers[rules[0]].fillna("") != answers[rules[1]].fillna(""),
            "gain": scores[rules[1]] - scores[rules[0]],
            "close": -(asked["right"] / asked["rollouts"] - 0.5).abs(),
        }
    ).sort_index()
    return str(rank.sort_values(list(rank.columns), kind="stable").index[-1])
