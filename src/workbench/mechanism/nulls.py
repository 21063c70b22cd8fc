"""Null controls of RGV (S2 §6.1, Fig. 2b): does the score need this question's documents?

- ``within``: prose meets the documents of another rollout of its question;
- ``across``: prose meets the documents of a rollout of another question;
- ``random``: as many random tokens as the prose has meet the rollout's own documents.

Both shuffles hand every rollout's documents to exactly one prose.  Random tokens are drawn
without repetition from all rollouts' prose tokens, each as likely as the number of rollouts
that use it.  Each null is averaged over ``repeats`` draws, so a gap is not that of one shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..reports.record import Rollout
from ..seeding import generator
from ..voting.tokens import token_set
from .frames import rollout_frame
from .grounding import best_recall, document_sets
from .verdicts import verdict_gaps

NULLS = ("within", "across", "random")


def within_partners(questions: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    """Whose documents each rollout gets, int64 [n]: another's of its question, -1 for none.

    A rollout that is alone in its question has no partner.
    """
    partners = np.full(len(questions), -1, dtype=np.int64)
    for members in _members(questions):
        if len(members) > 1:
            order = rng.permutation(members)
            partners[order] = np.roll(order, 1)
    return partners


def across_partners(questions: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    """Whose documents each rollout gets, int64 [n]: those of a rollout of another question.

    Raises
    ------
    WorkbenchError : one question has more than half of the rollouts, so some cannot be paired.
    """
    groups = _members(questions)
    largest = max(map(len, groups), default=0)
    if 2 * largest > len(questions):
        raise WorkbenchError(
            f"one question has {largest} of {len(questions)} rollouts",
            where="across-question shuffle",
            fix="give rollouts of more questions",
        )
    order = [i for g in rng.permutation(len(groups)) for i in rng.permutation(groups[g])]
    partners = np.empty(len(questions), dtype=np.int64)
    partners[order] = np.roll(order, -largest)  # past the rest of its question
    return partners


def null_scores(rollouts: Sequence[Rollout], seed: int = 0, repeats: int = 10) -> pd.DataFrame:
    """RGV of each rollout and under each null.  Give the rollouts of one cell.

    Returns
    -------
    question_id, rollout_id, cell, correct, w_rgv, w_within (NaN for the only rollout of a
    question), w_across, w_random; the nulls are means over ``repeats`` draws.

    Raises
    ------
    WorkbenchError : see ``across_partners``.
    """
    prose = [token_set(r.prose) for r in rollouts]
    documents = [document_sets(r) for r in rollouts]
    questions = [r.question_id for r in rollouts]
    pool = np.array(sorted(t for p in prose for t in p), dtype=object)
    draws: dict[str, list[list[float]]] = {name: [] for name in NULLS}
    for repeat in range(repeats):
        rng = generator("grounding nulls", seed, repeat)
        for name, partners in (
            ("within", within_partners(questions, rng)),
            ("across", across_partners(questions, rng)),
        ):
            draws[name].append(
                [
                    best_recall(p, documents[j]) if j >= 0 else np.nan
                    for p, j in zip(prose, partners, strict=True)
                ]
            )
        fakes = [random_tokens(pool, len(p), rng) for p in prose]
        draws["random"].append([best_recall(*pair) for pair in zip(fakes, documents, strict=True)])
    own = [best_recall(p, d) for p, d in zip(prose, documents, strict=True)]
    found = {f"w_{name}": np.mean(draws[name], axis=0) for name in NULLS}
    return rollout_frame(rollouts).assign(w_rgv=own, **found)


def random_tokens(pool: np.ndarray, count: int, rng: np.random.Generator) -> frozenset[str]:
    """``count`` distinct tokens of ``pool`` [m], drawn one after another and repeats dropped.

    The pool must hold that many.
    """
    drawn: dict[str, None] = {}
    while len(drawn) < count:
        drawn.update(dict.fromkeys(pool[rng.integers(0, len(pool), 2 * count)]))
    return frozenset(list(drawn)[:count])


def null_gaps(scores: pd.DataFrame, config: BootstrapConfig | None = None) -> pd.DataFrame:
    """Fig. 2b: the C−W mean gap of RGV and of each null, questions resampled.

    Parameters
    ----------
    scores : of ``null_scores``.

    Returns
    -------
    Rows of ``verdicts.verdict_gaps`` with ``drop``, RGV's gap over the row's.
    """
    table = verdict_gaps(scores, ["w_rgv", *(f"w_{name}" for name in NULLS)], config=config)
    return table.assign(drop=table["value"].iloc[0] / table["value"])


def _members(questions: Sequence[str]) -> list[np.ndarray]:
    """Places of each question's rollouts, questions sorted."""
    codes, names = pd.factorize(np.array(questions, dtype=object), sort=True)
    return [np.flatnonzero(codes == k) for k in range(len(names))]
