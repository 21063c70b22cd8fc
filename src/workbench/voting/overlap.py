"""The RGV weight: how much of the answer's prose a single retrieved document holds (S2 §4).

    w = max_d |T(P) ∩ T(d)| / |T(P)|

P is the answer-turn prose without hidden reasoning, d runs over the raw tool returns of the
rollout.  In the tag protocol the answer turn says nothing but the answer, so P is the answer
itself: the short-prose arm of S2 App. J, where the weight amounts to containment of the
answer.  Only generated answers and the retrieval log are read, no log-probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..agent.trajectory import Trajectory
from ..config import Settings
from .tokens import token_set


class OverlapConfig(Settings):
    """What one document is: everything a search ``call`` returned (S2 §4) or one ``passage``.

    ``titles`` counts a passage's title as part of it, since the agent is shown it.
    """

    document: Literal["call", "passage"] = "call"
    titles: bool = True


def answer_prose(trajectory: Trajectory) -> str:
    """P: the text of the parsed answer, empty without a valid one."""
    return trajectory.answer or "" if trajectory.valid else ""


def document_tokens(
    trajectory: Trajectory, config: OverlapConfig | None = None
) -> list[frozenset[str]]:
    """T(d) of every document the rollout retrieved, in order; searches without hits add none."""
    config = config or OverlapConfig()
    documents = []
    for search in trajectory.searches:
        titles = search.titles if config.titles else [""] * len(search.texts)
        passages = [
            token_set(title) | token_set(text)
            for title, text in zip(titles, search.texts, strict=True)
        ]
        if config.document == "call" and passages:
            passages = [frozenset().union(*passages)]
        documents += passages
    return documents


def prose_recall(prose: frozenset[str], documents: Sequence[frozenset[str]]) -> np.ndarray:
    """|T(P) ∩ T(d)| / |T(P)| per document, float64 [m] in [0, 1]; zeros when P is empty."""
    if not prose:
        return np.zeros(len(documents))
    return np.array([len(prose & d) / len(prose) for d in documents], dtype=np.float64)


def rgv_weight(trajectory: Trajectory, config: OverlapConfig | None = None) -> float:
    """w in [0, 1]; 0 without prose or without documents."""
    recall = prose_recall(token_set(answer_prose(trajectory)), document_tokens(trajectory, config))
    return float(recall.max(initial=0.0))
