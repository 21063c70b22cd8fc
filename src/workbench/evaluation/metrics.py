"""Scores and costs of rollouts: one row per trajectory, nothing averaged yet.

Means, intervals and shares over such frames are in ``workbench.evaluation.summary``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from ..agent.trajectory import Segment, Trajectory
from ..errors import WorkbenchError
from ..questions.graph import Item
from .answers import exact_match, f1_score, inclusion

COLUMNS = {
    "item_id": "str",
    "group": "str",
    "sample": "int64",
    "seed": "int64",
    "category": "str",
    "hops": "int64",
    "exposures": "int64",
    "closed_book": "object",
    "em": "float64",
    "f1": "float64",
    "inclusion": "float64",
    "searched": "float64",
    "direct": "float64",
    "searches": "float64",
    "generated_tokens": "float64",
    "observation_tokens": "float64",
    "prompt_tokens": "float64",
    "turns": "float64",
    "invalid_actions": "float64",
    "valid": "float64",
    "truncated": "float64",
    "missing": "float64",
    "invalid_reason": "str",
    "answer": "object",
}


def scored_answer(trajectory: Trajectory) -> str | None:
    """The answer that counts: None when the output parser refused the trajectory (S1 §3.1)."""
    return trajectory.answer if trajectory.valid else None


def evaluate(
    items: Iterable[Item], trajectories: Sequence[Trajectory], expected: int | None = None
) -> pd.DataFrame:
    """Score every trajectory against its question; items may repeat.

    Parameters
    ----------
    expected : rollouts that every item should have.  Each one that is not there becomes a row
        with ``missing`` 1, EM, F1 and inclusion 0 and no counts, so that a lost or cut-off
        rollout stays in the denominator.  None scores what is given.

    Returns
    -------
    One row per trajectory in the order given, missing ones last; columns ``COLUMNS``.
    ``em``, ``f1`` and ``inclusion`` lie in [0, 1] and are 0 without a valid answer.
    ``searches`` counts executed searches (Search/Q); ``searched`` is 1 when there was one,
    ``direct`` is 1 when an answer was given without any.  Token counts: ``generated_tokens``
    is everything the policy wrote, queries and tags included.  Shares are 0.0 or 1.0.

    Raises
    ------
    WorkbenchError : a trajectory of an unknown item, two items of one id, no accepted answer,
        or more than ``expected`` rollouts of an item.
    """
    by_id: dict[str, Item] = {}
    for item in items:
        if by_id.setdefault(item.item_id, item) != item:
            raise WorkbenchError("two different items have this id", where=item.item_id)
    rows = []
    for trajectory in trajectories:
        item = by_id.get(trajectory.item_id)
        if item is None:
            raise WorkbenchError(
                "a trajectory belongs to no given item",
                where=trajectory.item_id,
                fix="score predictions with the question file they were made from",
            )
        rows.append({**_item_columns(item), **_trajectory_columns(item, trajectory)})
    if expected is not None:
        rows += _missing_rows(by_id.values(), trajectories, expected)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _item_columns(item: Item) -> dict:
    return {
        "item_id": item.item_id,
        "category": item.category,
        "hops": item.hops,
        "exposures": item.exposures,
        "closed_book": item.closed_book,
    }


def _trajectory_columns(item: Item, trajectory: Trajectory) -> dict:
    answer, searches = scored_answer(trajectory), len(trajectory.searches)
    return {
        "group": trajectory.group,
        "sample": trajectory.sample,
        "seed": trajectory.seed,
        "em": exact_match(answer, item.answers),
        "f1": f1_score(answer, item.answers),
        "inclusion": inclusion(answer, item.answers),
        "searched": searches > 0,
        "direct": searches == 0 and answer is not None,
        "searches": searches,
        "generated_tokens": int(trajectory.generated.sum()),
        "observation_tokens": int((trajectory.segments == Segment.OBSERVATION).sum()),
        "prompt_tokens": int((trajectory.segments == Segment.PROMPT).sum()),
        "turns": trajectory.turns,
        "invalid_actions": trajectory.invalid_actions,
        "valid": trajectory.valid,
        "truncated": trajectory.truncated,
        "missing": False,
        "invalid_reason": trajectory.invalid_reason,
        "answer": trajectory.answer,
    }


def _missing_rows(
    items: Iterable[Item], trajectories: Sequence[Trajectory], expected: int
) -> list[dict]:
    have = Counter(t.item_id for t in trajectories)
    rows = []
    for item in items:
        found = have[item.item_id]
        if found > expected:
            raise WorkbenchError(
                f"{found} rollouts where {expected} were expected",
                where=item.item_id,
                fix="was a prediction file read twice?",
            )
        lost = {"em": 0.0, "f1": 0.0, "inclusion": 0.0, "valid": 0.0, "missing": 1.0}
        nowhere = {"group": item.item_id, "sample": -1, "seed": -1, "answer": None}
        reason = {"invalid_reason": "missing"}
        row = dict.fromkeys(COLUMNS, np.nan) | _item_columns(item) | lost | nowhere | reason
        rows += [row] * (expected - found)
    return rows
