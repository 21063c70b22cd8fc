"""Retrieval signals (S3 §2.2): what the observations of a rollout have shown after each search.

    φ_Cov(t)      share of the question's nodes that are covered
    φ_Cov-Dep(t)  share in the dependency closure of the covered nodes
    φ_AM(t)       1 once a retrieved title or body has contained a reference answer, else 0

Only complete observations count (``coverage.complete``).  Training uses potentials rounded to
four decimals, analysis the exact ones (S3 App. A.3 and A.5).

Answer match looks for a normalised, nonempty alias of the question's answer in each title and
each body apart, on word boundaries (``no`` is not in ``Nolan Ryan``); S3 says "contains" and
leaves boundaries open.  It never sees queries, reasoning, answers or notices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from ..agent.trajectory import Trajectory
from ..corpus.records import Chunk
from ..errors import WorkbenchError
from ..evaluation.answers import accepted_answers, contains_phrase, normalise_answer
from ..questions.graph import Item
from .coverage import CoverageReader, complete
from .credit import new_maxima

SignalName = Literal["cov", "cov_dep", "am"]
TRAINING_DIGITS = 4


class Signal(Protocol):
    """One potential; ``name`` is its ``SignalName``."""

    name: str

    def potentials(self, item: Item, trajectory: Trajectory) -> list[float]:
        """φ after each executed search, exact, each in [0, 1] and none below the one before."""


class CoverageSignal:
    """Cov, or with ``dependencies`` Cov-Dep; signals may share one reader."""

    def __init__(self, reader: CoverageReader, dependencies: bool = False):
        self.reader, self.dependencies = reader, dependencies
        self.name = "cov_dep" if dependencies else "cov"

    def potentials(self, item: Item, trajectory: Trajectory) -> list[float]:
        states = self.reader.states(item, trajectory)
        return [s.cov_dep if self.dependencies else s.cov for s in states]


class AnswerMatch:
    """AM: needs neither a graph nor the corpus."""

    name = "am"

    def potentials(self, item: Item, trajectory: Trajectory) -> list[float]:
        aliases = [a for a in map(normalise_answer, accepted_answers(item.answers)) if a]
        matched, potentials = False, []
        for search in trajectory.searches:
            if not matched and complete(search):
                places = [*search.titles, *search.texts]
                matched = any(contains_phrase(_normal(p), a) for p in places for a in aliases)
            potentials.append(float(matched))
        return potentials


def build_signal(name: SignalName, chunks: Mapping[str, Chunk] | None = None) -> Signal:
    """The signal of that name; coverage needs ``chunks``, the corpus that is searched, by id.

    Raises
    ------
    WorkbenchError : coverage without chunks.
    """
    if name == "am":
        return AnswerMatch()
    if chunks is None:
        raise WorkbenchError(
            "coverage is read off the corpus that is searched, and none was handed over",
            where=f"signal {name}",
            fix="build_method(condition, Context(chunks=corpus.by_id))",
        )
    return CoverageSignal(CoverageReader(chunks), dependencies=name == "cov_dep")


def retrieval_events(
    signal: Signal,
    items: Sequence[Item],
    trajectories: Sequence[Trajectory],
    digits: int | None,
) -> list[np.ndarray]:
    """New-maximum events of each rollout: float64 [searches] each (S3 Eq. 3).

    Parameters
    ----------
    items : ``items[i]`` is the question of ``trajectories[i]``.
    digits : decimals that potentials are rounded to first (``TRAINING_DIGITS``); None: exact.
    """
    return [
        new_maxima(signal.potentials(item, trajectory), digits)
        for item, trajectory in zip(items, trajectories, strict=True)
    ]


@lru_cache(maxsize=1 << 14)
def _normal(text: str) -> str:
    # The rollouts of a group retrieve the same passages over and over.
    return normalise_answer(text)
