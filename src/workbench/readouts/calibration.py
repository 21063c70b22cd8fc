"""One calibration round: both targets from a frozen policy, both heads fitted (S1 §3.2, §7.2.1).

M questions of the calibration split are asked closed-book (z of Eq. 2) and rolled out G times;
every valid searched rollout is answered again without its evidence (s_chg of Eq. 1).  Then one
no-grad pass reads the hidden states of all candidate layers, and each head is chosen and fitted.
Decodes beyond the rollouts: M + N_vs, at most M·(1 + G).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..agent.config import AgentConfig
from ..agent.rollout import rollout
from ..agent.trajectory import Trajectory
from ..engines.base import Engine, Sampling
from ..interventions.cache import DecodeCache
from ..interventions.closed_book import ClosedBookLabels, closed_book_labels
from ..interventions.decode import Answerer
from ..interventions.variants import RelianceLabels, reliance_labels
from ..questions.graph import Item
from ..seeding import generator, seed_of
from .config import CalibrationConfig
from .contexts import commit_context, is_searched, prompt_context
from .evaluator import Evaluator
from .features import features
from .selection import Selected, select
from .snapshot import take_snapshot


@dataclass(frozen=True)
class Targets:
    """What one round measured on Q questions with N valid searched rollouts.

    ``prompt_states`` float32 [Q, L, H] and ``commit_states`` float32 [N, L, H] of ``layers``;
    ``closed_book`` holds z [Q], ``reliance`` s_chg [N]; ``searched`` are the N trajectories.
    ``cost`` counts rollouts, extra decodes and forward tokens, and seconds by part.
    """

    items: list[Item]
    trajectories: list[Trajectory]
    searched: list[Trajectory]
    closed_book: ClosedBookLabels
    reliance: RelianceLabels
    layers: tuple[int, ...]
    prompt_states: np.ndarray
    commit_states: np.ndarray
    cost: dict[str, float]

    @property
    def questions(self) -> list[str]:
        """The question of each searched rollout, for group splits."""
        return [trajectory.item_id for trajectory in self.searched]


@dataclass(frozen=True)
class Calibrated:
    """An evaluator, and how each of its heads was chosen."""

    evaluator: Evaluator
    d: Selected
    b: Selected


def calibration_items(items: Sequence[Item], config: CalibrationConfig, seed: int) -> list[Item]:
    """M of the items (all, if there are fewer), the same in every round: rounds compare."""
    rows = generator("calibration questions", seed).permutation(len(items))[: config.questions]
    return [items[row] for row in sorted(rows)]


def measure_targets(
    engine: Engine,
    model: object,
    searcher: object,
    items: Sequence[Item],
    agent: AgentConfig,
    closed_book: AgentConfig,
    config: CalibrationConfig,
    seed: int,
    number: int = 0,
    cache: DecodeCache | None = None,
) -> Targets:
    """Roll out, intervene and read the states of ``model``, whose weights ``engine`` runs.

    Parameters
    ----------
    closed_book : the agent with the retrieval-disabled prompt (``policy.recipe``).
    seed, number : name the draws of the rollouts of this round.
    cache : decodes known from before; its keys hold the weights, so they never go stale.

    Raises
    ------
    WorkbenchError : no questions, or a layer outside the model.
    """
    clock, started, items = time.perf_counter, time.perf_counter(), list(items)
    weights = take_snapshot(model).hash if cache is not None else ""
    trajectories = rollout(
        engine, searcher, items, agent, Sampling(temperature=config.temperature),
        seed_of("calibration rollouts", seed, number), samples_per_item=config.rollouts,
    )  # fmt: skip
    rolled_out = clock()
    searched = [t for t in trajectories if is_searched(t)]
    without, alone = (Answerer(engine, a, cache, weights) for a in (agent, closed_book))
    labels = closed_book_labels(alone, items)
    reliance = reliance_labels(without, searched)
    intervened = clock()
    first = {t.item_id: t for t in reversed(trajectories)}
    contexts = [prompt_context(first[item.item_id]) for item in items]
    contexts += [commit_context(t) for t in searched]
    found = features(model, contexts, config.layers, config.features)
    cost = {
        "rollouts": len(trajectories),
        "closed_book_decodes": alone.counts.decoded,
        "deletion_decodes": without.counts.decoded,
        "repeated_decodes": alone.counts.saved + without.counts.saved,
        "rollout_tokens": int(sum(t.generated.sum() for t in trajectories)),
        "decode_tokens": alone.counts.tokens + without.counts.tokens,
        "forward_tokens": found.forward_tokens,
        "seconds_rollouts": rolled_out - started,
        "seconds_decodes": intervened - rolled_out,
        "seconds_features": clock() - intervened,
    }
    states = found.values
    return Targets(
        items, trajectories, searched, labels, reliance, tuple(config.layers),
        states[: len(items)], states[len(items) :], cost,
    )  # fmt: skip


def fit(
    targets: Targets, model: object, config: CalibrationConfig, seed: int, full: bool = False
) -> Calibrated:
    """Both heads on the targets, with the snapshot of ``model``, whose states they read.

    ``full`` is for a policy that is trained in full (``snapshot.take_snapshot``).

    Raises
    ------
    Unfit : one of the heads cannot be fitted; then there is no new evaluator at all.
    """
    d = select(
        targets.commit_states, targets.reliance.changed, targets.questions, targets.layers,
        config.selection, seed_of("reliance", seed) % 2**31,
    )  # fmt: skip
    b = select(
        targets.prompt_states, targets.closed_book.sufficient,
        [item.item_id for item in targets.items], targets.layers,
        config.selection, seed_of("sufficiency", seed) % 2**31,
    )  # fmt: skip
    notes = {
        name: {
            "validation_auc": s.validation_auc, "rows": s.rows, "positives": s.positives,
            "questions": s.questions,
        }
        for name, s in (("d", d), ("b", b))
    }  # fmt: skip
    return Calibrated(Evaluator(take_snapshot(model, full), d.head, b.head, notes), d, b)
