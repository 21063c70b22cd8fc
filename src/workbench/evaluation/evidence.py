"""What rollouts retrieved, beside what they answered (S3 §5.3, App. A.5 and Table 5).

Coverage is exact here, never rounded.  Nothing is filtered: a rollout without an answer, one
cut off by a budget and one that is lost altogether stay in every denominator, and are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..agent.trajectory import Trajectory
from ..corpus.records import Chunk
from ..inference.bootstrap import BootstrapConfig
from ..inference.paired import mean_intervals
from ..methods.coverage import CoverageReader, State, complete
from ..methods.signals import AnswerMatch
from ..questions.graph import Item
from .metrics import evaluate

# What is added to the columns of ``evaluate``.
EVIDENCE = (
    "cov", "cov_dep", "am", "no_evidence", "all_evidence", "no_answer", "cut_observations",
    "cov_above", "delayed", "mention_cut",
)  # fmt: skip
LEVEL_DIGITS = 4


class EvidenceReader:
    """Scores rollouts with what they retrieved; remembers chunk matches from call to call.

    Parameters
    ----------
    chunks : chunk by id, of the corpus that was searched (``Corpus.by_id``).
    """

    def __init__(self, chunks: Mapping[str, Chunk]):
        self._start = CoverageReader(chunks)
        self._whole = CoverageReader(chunks, whole_mention=True)
        self._match = AnswerMatch()

    def read(
        self, items: Sequence[Item], trajectories: Sequence[Trajectory], expected: int | None = None
    ) -> pd.DataFrame:
        """The frame of ``evaluate`` (its arguments, too) with the columns ``EVIDENCE``.

        ``cov``, ``cov_dep``, ``am`` : potentials at the end, in [0, 1]; 0 for a lost rollout.
        ``no_evidence``, ``all_evidence`` : whether no node, or every node, is covered.
        ``no_answer`` : 1 when no answer was parsed.
        ``cut_observations`` : searches whose observation the policy did not see in full; such
        searches count as searches and cover nothing.
        ``cov_above`` : 1 when Cov exceeds Cov-Dep after some search.
        ``delayed`` : 1 when a covered node is unlocked by a later search only.
        ``mention_cut`` : 1 when Cov-Dep would be lower if whole mentions were required.

        Raises
        ------
        WorkbenchError : as ``evaluate``; a question without a graph; an unknown chunk.
        """
        frame = evaluate(items, trajectories, expected)
        by_id = {item.item_id: item for item in items}
        rows = [self._columns(by_id[t.item_id], t) for t in trajectories]
        lost = dict.fromkeys(EVIDENCE, 0.0) | {"no_answer": 1.0, "no_evidence": 1.0}
        rows += [lost] * (len(frame) - len(rows))
        added = pd.DataFrame(rows, columns=list(EVIDENCE), index=frame.index, dtype=np.float64)
        return frame.join(added)

    def _columns(self, item: Item, trajectory: Trajectory) -> dict[str, float]:
        states = self._start.states(item, trajectory)
        last = states[-1] if states else self._start.final(item, trajectory)
        matched = self._match.potentials(item, trajectory)
        return {
            "cov": last.cov,
            "cov_dep": last.cov_dep,
            "am": matched[-1] if matched else 0.0,
            "no_evidence": last.cov == 0,
            "all_evidence": last.cov == 1,
            "no_answer": trajectory.answer is None,
            "cut_observations": sum(not complete(search) for search in trajectory.searches),
            "cov_above": any(state.cov > state.cov_dep for state in states),
            "delayed": unlocked_late(states),
            "mention_cut": self._whole.final(item, trajectory).cov_dep < last.cov_dep,
        }


def unlocked_late(states: Sequence[State]) -> bool:
    """Whether a node is covered at one search and in the closure only from a later one on."""
    return any(
        (before.covered - before.unlocked) & after.unlocked
        for before, after in zip(states, states[1:])
    )


def coverage_level(cov: pd.Series | np.ndarray) -> np.ndarray:
    """Cov as a level that frames can be grouped by: 2 of 6 nodes and 1 of 3 are one level."""
    return np.round(np.asarray(cov, dtype=np.float64), LEVEL_DIGITS)


def coverage_histogram(
    frame: pd.DataFrame,
    by: Sequence[str] = ("condition",),
    seed: str | None = "training_seed",
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Share of questions at each level of final Cov, every level in every group.

    Returns
    -------
    Rows: ``by``, level, value (share; several rollouts of a question share its weight), low,
    high, n (questions), seeds, p.  Shares of a group sum to 1.
    """
    level = coverage_level(frame["cov"])
    names = {f"{value:.{LEVEL_DIGITS}f}": value for value in np.unique(level)}
    flags = {name: (level == value).astype(float) for name, value in names.items()}
    table = mean_intervals(frame.assign(**flags), list(flags), by, seed, config)
    return table.assign(level=table["metric"].map(names)).drop(columns="metric")


def score_by_coverage(
    frame: pd.DataFrame,
    by: Sequence[str] = ("condition",),
    metric: str = "f1",
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Mean score of the rollouts that end at each level of Cov.

    Groups at one level differ between policies in size and in questions, so their difference
    is not a paired one.  Rollouts of a question at the same level (of all training seeds) are
    averaged; intervals are over questions.

    Returns
    -------
    Rows: ``by``, level, value, low, high, n (questions), rollouts, seeds, p.
    """
    at = frame.assign(level=coverage_level(frame["cov"]))
    keys = [*by, "level"]
    table = mean_intervals(at, [metric], keys, None, config).drop(columns="metric")
    sizes = at.groupby(keys, observed=True).size().rename("rollouts").reset_index()
    return table.merge(sizes, on=keys)


def kept_counts(frame: pd.DataFrame, by: Sequence[str] = ("condition",)) -> pd.DataFrame:
    """What is kept in the denominators although something is missing.

    Rows: ``by``, rollouts, lost (no trajectory), no_answer (lost ones included), truncated,
    cut (rollouts with an observation that was not seen in full).
    """
    return (
        frame.assign(cut=frame["cut_observations"] > 0)
        .groupby(list(by), sort=False, observed=True)
        .agg(
            rollouts=("item_id", "size"),
            lost=("missing", "sum"),
            no_answer=("no_answer", "sum"),
            truncated=("truncated", "sum"),
            cut=("cut", "sum"),
        )
        .astype(int)
        .reset_index()
    )
