"""What the training of one condition would pay for the rollouts of any policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..agent.storage import load_trajectories
from ..methods.base import Attached, Context, Method
from ..methods.registry import Condition, build_method, method_needs
from ..questions.graph import Item
from .policies import PolicyName, prediction_path


def yardstick(condition: Condition, context: Context, model: object) -> Method:
    """The condition's method, to score rollouts with and not to train.

    A method that reads the policy's states keeps the evaluator of ``context`` (that of the base
    policy, whose ``model`` is lent to it): the rollouts of all policies are read by the same one.
    """
    settings = condition.settings
    if "calibration" in method_needs(condition.method):
        settings = {**settings, "interval": None}
    method = build_method(condition.model_copy(update={"settings": settings}), context)
    if isinstance(method, Attached):
        method.attach(model)
    return method


def rewards_of(
    method: Method, items: Sequence[Item], predictions: Mapping[PolicyName, Path], decoding: str
) -> pd.DataFrame:
    """The reward of each saved rollout: item_id, sample, condition, training_seed, reward.

    Parameters
    ----------
    predictions : folder that ``policies.ask`` wrote for each policy.
    """
    by_id = {item.item_id: item for item in items}
    frames = []
    for name, folder in predictions.items():
        trajectories = load_trajectories(prediction_path(folder, name, decoding))
        asked = [by_id[t.item_id] for t in trajectories]
        frames.append(
            pd.DataFrame(
                {
                    "item_id": [t.item_id for t in trajectories],
                    "sample": [t.sample for t in trajectories],
                    "condition": name.condition,
                    "training_seed": name.seed,
                    "reward": np.asarray(method.score(asked, trajectories).reward),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)
