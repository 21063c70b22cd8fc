"""Closed-book sufficiency: does the policy answer without retrieval (S1 Eq. 2)?

z = V_cb(A_det(P_cb), y*): the retrieval-disabled prompt is decoded greedily and its answer
scored by normalised *inclusion*; the task's verifier is exact match, and how often the two
disagree is counted (S1 §7.3.4: 6.9 % on NQ, 3.6 % on 2Wiki).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import WorkbenchError
from ..evaluation.answers import exact_match, inclusion
from ..questions.graph import Item
from .decode import Answerer


@dataclass(frozen=True, slots=True)
class ClosedBookLabels:
    """Closed-book answers of N questions.

    ``answers`` are None where the decode holds no complete answer; ``sufficient`` (z) and
    ``exact`` (the verifier's e) are bool [N].  What is exact is sufficient, never the reverse
    only.
    """

    item_ids: tuple[str, ...]
    answers: tuple[str | None, ...]
    sufficient: np.ndarray
    exact: np.ndarray

    @property
    def disagreements(self) -> int:
        """Questions that inclusion calls known and the verifier does not."""
        return int((self.sufficient != self.exact).sum())

    @property
    def unanswered(self) -> int:
        """Questions whose decode holds no complete answer; they count as not sufficient."""
        return sum(answer is None for answer in self.answers)

    def by_item(self) -> dict[str, bool]:
        """z by item id."""
        return dict(zip(self.item_ids, self.sufficient.tolist(), strict=True))


def closed_book_labels(answerer: Answerer, items: Sequence[Item]) -> ClosedBookLabels:
    """Ask every item once; ``answerer.agent`` has the retrieval-disabled prompt and one round.

    Raises
    ------
    WorkbenchError : the agent could search, or a prompt is too long.
    """
    if answerer.agent.turns != 1:
        raise WorkbenchError(
            f"an agent of {answerer.agent.turns} turns can search",
            where="agent.max_rounds",
            fix="closed-book decodes have one round and no answer round",
        )
    actions = answerer.turns([answerer.protocol.prompt(item.question) for item in items])
    answers = tuple(a.text if a.kind == "answer" else None for a in actions)
    pairs = list(zip(answers, items, strict=True))
    return ClosedBookLabels(
        tuple(item.item_id for item in items),
        answers,
        np.array([inclusion(a, item.answers) == 1 for a, item in pairs], dtype=bool),
        np.array([exact_match(a, item.answers) == 1 for a, item in pairs], dtype=bool),
    )
