"""Credit made visible: the advantage of every token under several methods, as one frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..agent.trajectory import Segment, Trajectory
from ..errors import WorkbenchError
from ..questions.graph import Item
from .base import Method

if TYPE_CHECKING:
    import pandas as pd


def token_credit(
    items: Sequence[Item],
    trajectories: Sequence[Trajectory],
    methods: Mapping[str, Method],
    tokenizer: object,
) -> pd.DataFrame:
    """What each method gives each token of a group of rollouts.

    Parameters
    ----------
    items : ``items[i]`` is the question of ``trajectories[i]``.
    trajectories : the whole group; standardisation compares what is given here.
    methods : method by the name it has in the frame.
    tokenizer : the fast tokenizer that the rollouts were made with, for the texts.

    Returns
    -------
    One row per method, rollout and token, in that order: method; rollout (index into
    ``trajectories``); position, token_id, text (the characters the token adds); segment
    ("prompt", "reasoning", "call", "query", "observation", "answer", "padding"); search (index of
    the executed search whose call or observation the token is in, else -1); advantage float32;
    and, the same for all tokens of a rollout, reward and outcome.

    Raises
    ------
    WorkbenchError : there is no rollout or no method.
    """
    import pandas as pd

    from ..agent.text import Codec

    if not trajectories or not methods:
        raise WorkbenchError("token credit needs at least one rollout and one method")
    codec = Codec(tokenizer)
    tokens = [_tokens(row, trajectory, codec) for row, trajectory in enumerate(trajectories)]
    frames = []
    for name, method in methods.items():
        scores = method.score(items, trajectories)
        advantages = method.advantages(items, trajectories, scores)
        for row, frame in enumerate(tokens):
            given = {
                "advantage": advantages[row],
                "reward": scores.reward[row],
                "outcome": scores.parts["outcome"][row],
            }
            frames.append(pd.DataFrame({"method": name, **frame, **given}))
    return pd.concat(frames, ignore_index=True)


def _tokens(row: int, trajectory: Trajectory, codec) -> dict:
    pieces = codec.pieces(trajectory.tokens.tolist())
    search = np.full(len(trajectory.tokens), -1)
    for number, record in enumerate(trajectory.searches):
        for start, end in (record.payload_span, record.observation_span):
            search[start:end] = number
    return {
        "rollout": row,
        "position": np.arange(len(trajectory.tokens)),
        "token_id": trajectory.tokens,
        "text": [pieces.text[a:b] for a, b in zip(pieces.bounds, pieces.bounds[1:])],
        "segment": [Segment(code).name.lower() for code in trajectory.segments],
        "search": search,
    }
