"""What training runs logged, as frames: one run per seed, one row per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.classical import t_interval, wilson
from ..inference.paired import INTERVAL_COLUMNS, interval_row
from .runlog import read_log

_SHARES = frozenset(
    {
        "zero_variance_groups", "phantom_groups", "direct", "valid", "truncated", "em", "f1",
        "tied_outcome_groups", "tied_credit", "rank_reversals", "sign_reversals",
        "query_sign_reversals", "credited_searches",
    }
)  # fmt: skip
_NOT_NEGATIVE = frozenset(
    {
        "reward_sd", "reward_variance", "outcome_variance", "entropy", "kl", "searches",
        "invalid_actions", "grad_norm", "seconds",
    }
)  # fmt: skip


def possible_values(metric: str) -> tuple[float, float]:
    """Least and greatest value that a logged metric can have, without "eval_" too.

    Shares lie in [0, 1]; variances, entropy, KL and counts are not negative; rewards are what
    a method makes them.
    """
    name = metric.removeprefix("eval_")
    if name in _SHARES or name.startswith(("clip_", "local_disabled")):
        return 0.0, 1.0
    return (0.0 if name in _NOT_NEGATIVE else -np.inf), np.inf


def seed_folder(run: Path, seed: int) -> Path:
    """Where a condition's run keeps the training run of a seed."""
    return run / f"seed-{seed}"


def training_history(run: Path, seeds: Sequence[int]) -> pd.DataFrame:
    """Logs of all seeds: seed, step, metrics, seconds; step 0 has held-out metrics only."""
    frames = [pd.DataFrame(read_log(seed_folder(run, seed))).assign(seed=seed) for seed in seeds]
    history = pd.concat(frames, ignore_index=True)
    first = ["seed", "step"]
    return history[[*first, *[c for c in history.columns if c not in first]]]


def series(
    histories: Mapping[str, pd.DataFrame], questions: int, heldout: str = "eval_em"
) -> pd.DataFrame:
    """The long frame that ``reporting.figures.training_curves`` draws.

    Parameters
    ----------
    histories : ``training_history`` by condition.
    questions : how many questions a held-out measurement asked; its Wilson interval is in
        ``low`` and ``high`` (``heldout`` must be a share: EM, direct, valid).

    Returns
    -------
    condition, seed, step, series ("training" or "held-out"), value, low, high.
    """
    frames = []
    for condition, history in histories.items():
        for name, metric in (("training", "reward_mean"), ("held-out", heldout)):
            if metric not in history.columns:
                raise WorkbenchError(
                    f"the log of {condition} has no {metric!r}", fix="set grpo.eval_every"
                )
            part = history[["seed", "step", metric]].dropna().rename(columns={metric: "value"})
            frames.append(part.assign(condition=condition, series=name, low=np.nan, high=np.nan))
    table = pd.concat(frames, ignore_index=True)
    asked = table["series"] == "held-out"
    for row, value in table.loc[asked, "value"].items():
        interval = wilson(round(value * questions), questions)
        table.loc[row, ["low", "high"]] = interval.low, interval.high
    return table


def start_and_end(
    history: pd.DataFrame, metrics: Sequence[str], share: float = 0.1
) -> pd.DataFrame:
    """Mean of each metric over the first and the last ``share`` of the steps (at least one).

    With several seeds value, low and high are the mean over seeds and its t interval, cut at
    ``possible_values``; one seed has no interval.  Metrics that were not logged are left out.

    Rows: metric, when ("first" or "last"), steps (averaged), value, low, high, n (seeds),
    seeds, p.
    """
    steps = int(history["step"].max())
    width = max(1, round(share * steps))
    windows = {"first": (1, width), "last": (steps - width + 1, steps)}
    rows = []
    for metric in metrics:
        if metric not in history.columns:
            continue
        for when, (start, end) in windows.items():
            part = history[history["step"].between(start, end)]
            means = part.groupby("seed")[metric].mean().dropna()
            if len(means):
                interval = interval_row(
                    t_interval(means.to_numpy(), within=possible_values(metric))
                )
                rows.append({"metric": metric, "when": when, "steps": width, **interval})
    return pd.DataFrame(rows, columns=["metric", "when", "steps", *INTERVAL_COLUMNS])
