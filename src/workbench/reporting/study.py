"""Tables of a study beyond the comparison with the papers: settings, differences, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..grpo.config import GRPOConfig
from ..inference.bootstrap import Interval
from ..methods.registry import Condition
from .claims import verdict
from .comparisons import METRIC_NAMES, Setting
from .tables import NOT_MEASURED, Column, Table


def our_setting(
    policy: str, parameters: int, corpus: str, passages: int, encoder: str,
    grpo: GRPOConfig, seeds: int,
) -> Setting:  # fmt: skip
    """What our results were obtained with, in the words of the comparison tables."""
    name = Path(policy).name if Path(policy).is_absolute() else policy
    corpus = "World Factbook" if corpus == "embedded" else Path(corpus).name
    runs = f"{seeds} run" + ("s" if seeds > 1 else "")
    batch = f"{grpo.questions_per_step} x {grpo.group_size} rollouts"
    return Setting(
        model=f"{name}, {parameters / 1e6:.1f} M parameters",
        corpus=f"{corpus}, {passages} passages, {encoder}",
        budget=f"batch {batch}, {grpo.steps} steps, {runs}",
    )


def settings_table(
    conditions: Sequence[Condition], grpo: GRPOConfig, model: str, name: str = "settings"
) -> Table:
    """Training settings, ours and the paper's, one row per setting that the paper states."""
    ours = {
        "model": model,
        "group_size": grpo.group_size,
        "batch_questions": grpo.questions_per_step,
        "mini_batch_questions": grpo.mini_batch,
        "micro_batch_rollouts": grpo.micro_batch_rollouts or "the whole mini-batch",
        "lr": grpo.optimiser.lr,
        "warmup_ratio": grpo.optimiser.warmup_ratio,
        "epsilon": grpo.objective.epsilon,
        "dual_clip": grpo.objective.dual_clip or "none",
        "entropy_coefficient": grpo.objective.entropy_coefficient,
        "kl_coefficient": grpo.objective.kl_coefficient,
        "kl_clip": grpo.objective.kl_clip,
        "temperature": grpo.temperature,
        "top_p": grpo.top_p,
    }
    rows = []
    for condition in conditions:
        stated = ", ".join(f"{k} {v}" for k, v in condition.settings.items())
        mine = ours | {"reward": f"{condition.method} ({stated})"} | condition.settings
        rows += [
            {
                "condition": condition.label,
                "setting": key.replace("_", " "),
                "ours": _text(mine.get(key)),
                "published": _text(value),
                "paper": condition.paper,
            }
            for key, value in condition.published.items()
        ]
    caption = (
        "How each condition was trained here and in its paper. Ours besides: "
        f"{grpo.steps} steps, {grpo.trained}"
        + (f" of rank {grpo.lora.rank}." if grpo.trained == "lora" else ".")
    )
    columns = [
        Column("condition", "condition"),
        Column("setting", "setting"),
        Column("ours", "ours", absent="not a setting here"),
        Column("published", "published", absent="not published"),
        Column("paper", "paper"),
    ]
    return Table(name, caption, columns, rows)


def differences_table(
    differences: pd.DataFrame,
    keys: Sequence[str],
    reference: str = "base",
    name: str = "differences",
    questions: str = "test questions",
) -> Table:
    """Paired differences to ``reference`` with what their intervals allow to say.

    ``differences``: condition, ``keys``, metric, value, low, high, n, seeds.
    """
    rows = [
        {
            "condition": record["condition"],
            **{key: str(record[key]) for key in keys},
            "metric": METRIC_NAMES.get(record["metric"], record["metric"].replace("_", " ")),
            "difference": interval_of(record),
            "verdict": verdict(record, record["metric"]),
        }
        for record in differences.to_dict("records")
    ]
    caption = (
        f"Paired difference to {reference} on the same {questions}: mean [95 % bootstrap "
        "interval over training seeds, then questions] (questions, x seeds)."
    )
    heads = [Column("condition", "condition"), *(Column(k, k.replace("_", " ")) for k in keys)]
    tail = [Column("difference", f"minus {reference}"), Column("verdict", "shown")]
    return Table(name, caption, [*heads, Column("metric", "metric"), *tail], rows)


def shares_table(
    frame: pd.DataFrame, keys: Sequence[str], title: str, caption: str, name: str
) -> Table:
    """Any frame of value, low, high, n with its key columns, as a table."""
    rows = [
        {**{key: str(record[key]) for key in keys}, "value": interval_of(record)}
        for record in frame.to_dict("records")
    ]
    heads = [Column(key, key.replace("_", " "), absent="none") for key in keys]
    return Table(name, caption, [*heads, Column("value", title)], rows)


def runs_table(changes: Mapping[str, pd.DataFrame], name: str = "runs") -> Table:
    """First and last steps of every condition's training (``grpo.history.start_and_end``)."""
    rows = []
    for condition, table in changes.items():
        for metric, part in table.groupby("metric", sort=False):
            cells = {r["when"]: _over_seeds(r) for r in part.to_dict("records")}
            rows.append({"condition": condition, "metric": metric.replace("_", " "), **cells})
    width = max((int(t["steps"].max()) for t in changes.values() if len(t)), default=0)
    caption = (
        f"Training rollouts, mean of the first and the last {width} step(s): mean over seeds "
        "[95 % t interval over seeds, cut at 0 and, of shares, at 1] (seeds)."
    )
    columns = [
        Column("condition", "condition"),
        Column("metric", "metric"),
        Column("first", "first steps", absent=NOT_MEASURED),
        Column("last", "last steps", absent=NOT_MEASURED),
    ]
    return Table(name, caption, columns, rows)


def interval_of(record: Mapping) -> Interval:
    """The interval in a row of any summary frame."""
    seeds = int(record.get("seeds", 1))
    return Interval(record["value"], record["low"], record["high"], int(record["n"]), seeds)


def _over_seeds(record: Mapping) -> Interval:
    return Interval(record["value"], record["low"], record["high"], int(record["n"]))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
