"""The reward of Search-G1 (S1 Eq. 6), arrays in and arrays out.

    r = r_inv                              invalid
        r_wrong                            valid, wrong
        1 + λ_g·d·n - η·1[N > 1]           correct, N > 0 searches
        1 + α_cb·b                         correct, N = 0

d is the reliance of a searched answer on its evidence, b closed-book sufficiency, n = 1 - b
retrieval necessity (the *gate*), N the number of executed searches.

Every variant of Table 4 and control of Table A22 is a setting:

| variant | setting |
| --- | --- |
| w/o search cost | eta = 0 |
| w/o reliance shaping | lambda_g = 0 |
| w/o searched gate | gate = "open": n := 1 in the searched branch, b stays |
| w/o direct bonus | alpha_cb = 0 |
| w/o both necessity terms | gate = "open", alpha_cb = 0 |
| shuffled searched gate | gate = "shuffled": n of another question, b stays |
| score permutation (A22) | permute = true |
| cost only (A22) | lambda_g = 0, alpha_cb = 0 |

S1 does not say what the score permutation permutes beyond "each group's reward multiset" being
preserved.  Here the shaping of correct rollouts is dealt anew among them: permuting whole
rewards would pay wrong answers, and Table A22's policies do learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from ..agent.trajectory import Trajectory
from ..config import Settings
from ..errors import WorkbenchError
from ..evaluation.answers import exact_match
from ..questions.graph import Item
from ..seeding import generator
from .advantages import group_rows
from .base import Scores


class Shaping(Settings):
    """Coefficients of Eq. 6 and the variants; S1's values are the defaults.

    Refused: what breaks r_inv < r_wrong < 1 - η, η in [0, 1) or λ_g, α_cb in [0, 1], because
    then some correct rollout may earn no more than a wrong one, or a wrong one no more than an
    invalid one (S1 §3.3).
    """

    r_inv: float = -0.1
    r_wrong: float = 0.05
    lambda_g: float = Field(default=0.6, ge=0, le=1)
    eta: float = Field(default=0.02, ge=0, lt=1)
    alpha_cb: float = Field(default=0.5, ge=0, le=1)
    gate: Literal["necessity", "open", "shuffled"] = "necessity"
    permute: bool = False

    @model_validator(mode="after")
    def _correctness_first(self) -> Shaping:
        if not (self.r_inv < self.r_wrong and self.r_wrong + self.eta < 1):
            raise ValueError(
                f"r_inv < r_wrong < 1 - eta must hold, but it is {self.r_inv} < {self.r_wrong} "
                f"< {1 - self.eta:g}: correctness would not come first"
            )
        return self


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What Eq. 6 branches on, per rollout [N]: bool valid, bool correct, int searches.

    ``questions`` are item ids; ``groups`` the GRPO groups.  An invalid rollout is not correct.
    """

    valid: np.ndarray
    correct: np.ndarray
    searches: np.ndarray
    questions: list[str]
    groups: list[str]


def outcomes(items: Sequence[Item], trajectories: Sequence[Trajectory]) -> Outcomes:
    """Read off trajectories; ``items[i]`` is the question of ``trajectories[i]``."""
    pairs = list(zip(items, trajectories, strict=True))
    return Outcomes(
        np.array([t.valid for t in trajectories], dtype=bool),
        np.array([t.valid and exact_match(t.answer, i.answers) == 1.0 for i, t in pairs], bool),
        np.array([len(t.searches) for t in trajectories], dtype=np.int64),
        [t.item_id for t in trajectories],
        [t.group for t in trajectories],
    )


def eq6(
    valid: np.ndarray,
    correct: np.ndarray,
    searches: np.ndarray,
    d: np.ndarray,
    b: np.ndarray,
    n: np.ndarray,
    shaping: Shaping,
) -> dict[str, np.ndarray]:
    """The reward in parts float64 [N] that add up to it.

    "outcome" is e, "miss" what an invalid or wrong rollout gets, "reliance" λ_g·d·n,
    "search_cost" -η·1[N > 1] and "direct_bonus" α_cb·b, each 0 outside its branch.  ``n`` is
    what stands in the searched branch, whatever became of b.

    Raises
    ------
    WorkbenchError
        arrays of different length, d, b or n outside [0, 1] or NaN where its branch reads it,
        a rollout that is correct but invalid, or a negative number of searches.
    """
    valid, correct = np.asarray(valid, dtype=bool), np.asarray(correct, dtype=bool)
    searches = np.asarray(searches)
    d, b, n = (np.asarray(scores, dtype=np.float64) for scores in (d, b, n))
    columns = {"correct": correct, "searches": searches, "d": d, "b": b, "n": n}
    for name, column in columns.items():
        if column.shape != valid.shape or valid.ndim != 1:
            raise WorkbenchError(f"{name} has shape {column.shape}, valid {valid.shape}")
    if (correct & ~valid).any():
        row = int(np.argmax(correct & ~valid))
        raise WorkbenchError("correct but not valid", where=f"rollout {row}")
    if (searches < 0).any():
        raise WorkbenchError("negative searches", where=f"rollout {int(np.argmin(searches))}")
    searched, direct = correct & (searches > 0), correct & (searches == 0)
    for name, scores, branch in (("d", d, searched), ("n", n, searched), ("b", b, direct)):
        bad = branch & ~((scores >= 0) & (scores <= 1))
        if bad.any():
            row = int(np.argmax(bad))
            raise WorkbenchError(
                f"{name} is {scores[row]}, expected a probability",
                where=f"rollout {row}",
                fix="score it with a fitted evaluator; there is no default",
            )
    return {
        "outcome": correct.astype(np.float64),
        "miss": np.where(valid, shaping.r_wrong, shaping.r_inv) * ~correct,
        "reliance": _on(searched, shaping.lambda_g * d * n),
        "search_cost": _on(searched & (searches > 1), np.full(len(valid), -shaping.eta)),
        "direct_bonus": _on(direct, shaping.alpha_cb * b),
    }


def gate(b: np.ndarray, questions: Sequence[str], shaping: Shaping, seed: int) -> np.ndarray:
    """n float64 [N] of the searched branch: 1 - b, 1, or that of another question.

    "shuffled" permutes n over the distinct questions of the batch, one draw per seed and set of
    questions: the values of n stay the same ones, only whose they are changes.

    Raises
    ------
    WorkbenchError : b differs within a question under "shuffled".
    """
    n = 1.0 - np.asarray(b, dtype=np.float64)
    if shaping.gate == "open":
        return np.ones_like(n)
    if shaping.gate == "shuffled":
        rows = group_rows(questions)
        for members in rows:
            if np.ptp(n[members]) != 0:
                raise WorkbenchError(
                    "b differs between rollouts of one question",
                    where=f"question {questions[members[0]]}",
                    fix="score each prompt once",
                )
        values = np.array([n[members[0]] for members in rows])
        names = [questions[members[0]] for members in rows]
        order = generator("shuffled gate", seed, *names).permutation(len(values))
        for members, value in zip(rows, values[order]):
            n[members] = value
    return n


def shaped_reward(
    found: Outcomes, d: np.ndarray, b: np.ndarray, shaping: Shaping, seed: int = 0
) -> Scores:
    """Rewards of a batch under any of the variants; ``seed`` names the draws of the controls.

    Parameters
    ----------
    d, b : float [N] of the evaluator; d is read on correct searched rollouts only.
    """
    b = np.asarray(b, dtype=np.float64)
    n = gate(b, found.questions, shaping, seed)
    parts = eq6(found.valid, found.correct, found.searches, d, b, n, shaping)
    if shaping.permute:
        order = _permuted(found, seed)
        for name in ("reliance", "search_cost", "direct_bonus"):
            parts[name] = parts[name][order]
    return Scores(np.sum(list(parts.values()), axis=0), parts)


def _permuted(found: Outcomes, seed: int) -> np.ndarray:
    """Whose shaping each rollout gets: another correct one's of its group, or its own."""
    order = np.arange(len(found.groups))
    rng = generator("score permutation", seed, *found.groups)
    for rows in group_rows(found.groups):
        correct = rows[found.correct[rows]]
        order[correct] = rng.permutation(correct)
    return order


def _on(branch: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.where(branch, values, 0.0)
