"""What a refresh of the evaluator does to rewards and to training (S1 Table A21).

S1: "Reward shift is the mean absolute change in normalized shaping reward at a refresh, and
performance jump is the absolute held-out EM change across the surrounding evaluation windows."
It does not say how rewards are normalised nor how wide windows are, and it has no row without
refreshes.  Here the shift is told three ways, and the jump stands beside what the same windows
show where nothing was refreshed: policies under training move anyway.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.classical import t_interval
from ..inference.paired import INTERVAL_COLUMNS, interval_row, mean_intervals
from ..methods.advantages import group_advantages
from ..methods.shaping import Shaping, shaped_reward
from .checkpoints import refits
from .evaluator_series import Readings

REWARD, CORRECT, ADVANTAGE = "reward", "correct_reward", "advantage"
AT_REFRESH, QUIET, DIFFERENCE = "at a refresh", "without a refresh", "difference"


def reward_changes(
    readings: Readings, shaping: Shaping, control_seed: int = 0, delta: float = 1e-6
) -> pd.DataFrame:
    """Absolute changes of each anchor rollout at each refresh.

    Returns
    -------
    seed, step (update at which the new evaluator took over), number (its round), item_id,
    ``reward`` (|Δ| of Eq. 6), ``correct_reward`` (the same of correct rollouts, NaN of others,
    whose reward no evaluator changes) and ``advantage`` (|Δ| of the reward normalised in its
    group, what GRPO uses; groups of one have none).

    Parameters
    ----------
    shaping, control_seed, delta : the condition's, so that its variants are measured as
        trained.
    """
    found = readings.found
    reward = {
        checkpoint: shaped_reward(found, scored.d, scored.b, shaping, control_seed).reward
        for checkpoint, scored in readings.scored.items()
    }
    sizes = pd.Series(found.groups).map(pd.Series(found.groups).value_counts()).to_numpy()
    parts = []
    for seed, chain in readings.chains().items():
        for old, new in pairwise(chain):
            change = np.abs(reward[new] - reward[old])
            advantages = [group_advantages(reward[c], found.groups, delta) for c in (old, new)]
            parts.append(
                pd.DataFrame(
                    {
                        "seed": seed,
                        "step": new.installed,
                        "number": new.number,
                        "item_id": found.questions,
                        REWARD: change,
                        CORRECT: np.where(found.correct, change, np.nan),
                        ADVANTAGE: np.where(sizes > 1, np.abs(np.subtract(*advantages)), np.nan),
                    }
                )
            )
    columns = ["seed", "step", "number", "item_id", REWARD, CORRECT, ADVANTAGE]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def refresh_shift(
    readings: Readings,
    shaping: Shaping,
    bootstrap: BootstrapConfig | None = None,
    control_seed: int = 0,
    delta: float = 1e-6,
) -> pd.DataFrame:
    """Mean absolute change at each refresh, and over all of them (number "all").

    Columns number, refreshes (how many, over seeds), metric (those of ``reward_changes``),
    value, low, high, n (questions), seeds, p; seeds, then questions, are resampled.  Empty where
    no evaluator was replaced.
    """
    changes = reward_changes(readings, shaping, control_seed, delta)
    parts = [("all", changes), *changes.groupby("number")] if len(changes) else []
    frames = []
    for number, part in parts:
        found = mean_intervals(part, [REWARD, CORRECT, ADVANTAGE], seed="seed", config=bootstrap)
        count = len(part[["seed", "step"]].drop_duplicates())
        frames.append(found.assign(number=number, refreshes=count))
    columns = ["number", "refreshes", "metric", *INTERVAL_COLUMNS]
    return (
        pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
    )


def performance_jump(
    history: pd.DataFrame, window: int, metric: str = "outcome_mean"
) -> pd.DataFrame:
    """|mean over ``window`` steps after - before| a refresh, and where there was none.

    An evaluator that took over behind update s scores update s + 1, so s + 2 is the first whose
    rollouts are by a policy that it has trained: "after" starts there.  (A held-out metric,
    ``eval_*``, is taken behind its update, so there it starts at s + 1.)  Steps without a refresh
    are those with none less than ``window`` steps away.  Both windows must lie within the
    training and hold a value.

    Parameters
    ----------
    history : seed, step, ``metric`` and, where the training refits, refits_installed.

    Returns
    -------
    when (``AT_REFRESH``, ``QUIET``, and their ``DIFFERENCE`` in seeds that have both), metric,
    count (pairs of windows), value, low, high, n, seeds, p: mean over seeds of the seed's mean
    and its t interval; one seed has none.  Rows without any value have n = 0.

    Raises
    ------
    WorkbenchError : no such metric in the history, or a window below 1.
    """
    if metric not in history.columns or window < 1:
        raise WorkbenchError(
            f"no jump of {metric!r} over {window} steps",
            where="performance_jump",
            fix=f"a logged metric and a window of 1 or more; logged: {list(history.columns)}",
        )
    first = 1 if metric.startswith("eval_") else 2
    means: dict[str, dict[int, float]] = {AT_REFRESH: {}, QUIET: {}}
    counts = dict.fromkeys(means, 0)
    for seed, own in history.groupby("seed"):
        values = own.set_index("step")[metric].sort_index()
        values = values[values.index >= first - 1]
        installed = refits(own, "installed")
        refreshed = set(installed.index[installed.diff().fillna(installed) > 0].tolist())
        jumps: dict[str, list[float]] = {AT_REFRESH: [], QUIET: []}
        for step in values.index:
            near = min((abs(step - other) for other in refreshed), default=window)
            jump = _jump(values, step + first, window)
            if np.isfinite(jump) and (near == 0 or near >= window):
                jumps[AT_REFRESH if near == 0 else QUIET].append(jump)
        for when, found in jumps.items():
            counts[when] += len(found)
            if found:
                means[when][int(seed)] = float(np.mean(found))
    both = means[AT_REFRESH].keys() & means[QUIET].keys()
    means[DIFFERENCE] = {s: means[AT_REFRESH][s] - means[QUIET][s] for s in sorted(both)}
    rows = []
    for when, found in means.items():
        within = (-np.inf, np.inf) if when == DIFFERENCE else (0.0, np.inf)
        row = {"when": when, "metric": metric, "count": counts.get(when, len(found))}
        row |= dict.fromkeys(INTERVAL_COLUMNS, np.nan) | {"n": 0, "seeds": 0}
        if found:
            row |= interval_row(t_interval(list(found.values()), within=within))
        rows.append(row)
    return pd.DataFrame(rows)


def _jump(values: pd.Series, start: int, window: int) -> float:
    """|mean of the ``window`` steps from ``start`` on - of those before it|, NaN outside."""
    if start - window < values.index[0] or start + window - 1 > values.index[-1]:
        return np.nan
    before, after = values.loc[start - window : start - 1], values.loc[start : start + window - 1]
    return float(abs(after.mean() - before.mean()))
