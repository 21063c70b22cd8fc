"""The base policy's card: what it knows, how it reads, and what training can start from.

Everything later measures this policy, so its properties are measured first, with intervals,
and stand beside the targets it was built to meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ..agent.config import AgentConfig
from ..agent.rollout import rollout
from ..agent.trajectory import Trajectory
from ..engines.base import Engine, Sampling
from ..evaluation.metrics import evaluate
from ..evaluation.summary import group_shares, summarise
from ..inference.bootstrap import BootstrapConfig
from ..inference.classical import wilson
from ..interventions.deletion import changed_under_deletion
from ..questions.categories import CHAIN, CONJUNCTIVE, SINGLE, WIDE
from ..questions.graph import Item
from ..seeding import generator
from .config import CardConfig
from .recipe import closed_book_agent

SEARCH_FIRST = " Looking this up. </think>"

# Questions of the card: named facts and chains have targets, the others are told beside them.
MAIN = ("1-hop", "2-hop")
FURTHER = ("described", "conjunctive", "3-hop", "4-hop")

# (measure, lowest, highest value wanted)
TARGETS: dict[str, tuple[float, float]] = {
    "valid, greedy": (0.95, 1.0),
    "valid, temperature 1": (0.90, 1.0),
    "searched EM, 1-hop": (0.70, 1.0),
    "searched EM, 2-hop": (0.60, 1.0),
    "closed-book EM, unseen facts": (0.0, 0.10),
    "closed-book EM, facts seen 64 times": (0.90, 1.0),
    "groups of five mixed in correctness": (1 / 3, 1.0),
    "answer changes under evidence deletion": (0.20, 0.90),
}


@dataclass
class Card:
    """Evaluated frames of the measurements and the rollouts of the searched one.

    ``closed_book``: greedy, retrieval-disabled prompt, every named fact. ``searched``:
    greedy with the first search forced, held-out questions of every kind. ``greedy`` and
    ``sampled``: the policy's own choice, ``sampled`` at temperature 1 in groups. ``deletion``:
    one row per valid searched trajectory with ``changed``.
    """

    closed_book: pd.DataFrame
    searched: pd.DataFrame
    greedy: pd.DataFrame
    sampled: pd.DataFrame
    deletion: pd.DataFrame
    trajectories: list[Trajectory]


def kind_of(item: Item) -> str:
    """Which questions of the card an item belongs to.

    "1-hop" for named facts, "described" for pages found by what describes them, "2-hop" for
    chains, "conjunctive" for one or two nodes of which one needs two passages, then by hops.
    """
    if item.category == SINGLE:
        return "1-hop" if item.roots == "named" else "described"
    if item.category == CHAIN:
        return "2-hop"
    return "conjunctive" if item.category in (CONJUNCTIVE, WIDE) else item.category[:5]


def choose(items: Sequence[Item], kind: str, count: int, purpose: str, seed: int) -> list[Item]:
    """``count`` items of a kind (all when fewer), drawn by name, in id order."""
    pool = sorted((i for i in items if kind_of(i) == kind), key=lambda i: i.item_id)
    rows = generator(purpose, seed, kind).permutation(len(pool))[:count]
    return [pool[r] for r in sorted(rows)]


def measure(
    engine: Engine,
    searcher: object,
    items: Sequence[Item],
    agent: AgentConfig,
    closed_book_prompt: str,
    config: CardConfig,
) -> Card:
    """Run every measurement of the card on the test split (closed-book: on all facts)."""
    greedy = Sampling(temperature=0.0)
    single = [i for i in items if kind_of(i) == "1-hop"]
    test = [i for i in items if i.split == "test"]
    closed = rollout(
        engine, searcher, single, closed_book_agent(agent, closed_book_prompt), greedy, 0
    )
    held_out = [
        item
        for kind in (*MAIN, *FURTHER)
        for item in choose(
            [i for i in test if i.exposures == 0], kind, config.searched, "card", config.seed
        )
    ]
    forced = agent.model_copy(update={"prompt": agent.prompt + SEARCH_FIRST})
    searched = rollout(engine, searcher, held_out, forced, greedy, 0)
    mixture = [i for k in MAIN for i in choose(test, k, config.groups, "card-groups", config.seed)]
    own = rollout(engine, searcher, mixture, agent, greedy, 0)
    sampled = rollout(
        engine, searcher, mixture, agent, Sampling(temperature=1.0), config.seed, config.samples
    )
    evidence = [t for t in sampled if t.valid and t.searches]
    changed = changed_under_deletion(engine, evidence, agent)
    return Card(
        evaluate(single, closed),
        evaluate(held_out, searched).assign(kind=[kind_of(i) for i in held_out]),
        evaluate(mixture, own),
        evaluate(mixture, sampled),
        evaluate(mixture, evidence).assign(changed=changed.astype(float)),
        sampled,
    )


def summary(card: Card, config: BootstrapConfig | None = None) -> pd.DataFrame:
    """One row per measure: value, low, high, n, the wanted range and whether it is met.

    Means over questions with bootstrap intervals; shares of groups with Wilson intervals.
    """
    unseen = card.closed_book[card.closed_book["exposures"] == 0]
    often = card.closed_book[card.closed_book["exposures"] >= 64]
    searched = {k: card.searched[card.searched["kind"] == k] for k in (*MAIN, *FURTHER)}
    means = {
        "valid, greedy": (card.greedy, "valid"),
        "valid, temperature 1": (card.sampled, "valid"),
        **{f"searched EM, {kind}": (frame, "em") for kind, frame in searched.items()},
        "closed-book EM, unseen facts": (unseen, "em"),
        "closed-book EM, facts seen 64 times": (often, "em"),
        "EM, greedy": (card.greedy, "em"),
        "EM, temperature 1": (card.sampled, "em"),
        "answered without search, temperature 1": (card.sampled, "direct"),
        "answer changes under evidence deletion": (card.deletion, "changed"),
    }
    rows = [
        {"measure": name, **_interval(frame, metric, config)}
        for name, (frame, metric) in means.items()
        if len(frame)
    ]
    shares = group_shares(card.sampled).set_index("metric")
    for name, metric in (
        ("groups of five mixed in correctness", "mixed"),
        ("groups with direct and searched rollouts", "both_modes"),
    ):
        rows.append({"measure": name, **shares.loc[metric, ["value", "low", "high", "n"]]})
    table = pd.DataFrame(rows)
    wanted = table["measure"].map(TARGETS)
    table["wanted"] = [f"{w[0]:.2f} to {w[1]:.2f}" if isinstance(w, tuple) else "" for w in wanted]
    table["met"] = [
        bool(w[0] <= v <= w[1]) if isinstance(w, tuple) else None
        for w, v in zip(wanted, table["value"], strict=True)
    ]
    return table


def _interval(frame: pd.DataFrame, metric: str, config: BootstrapConfig | None) -> dict:
    if metric == "changed":
        interval = wilson(int(frame[metric].sum()), len(frame))
        return {k: getattr(interval, k) for k in ("value", "low", "high", "n")}
    row = summarise(frame, (), [metric], config=config).iloc[0]
    return row[["value", "low", "high", "n"]].to_dict()
