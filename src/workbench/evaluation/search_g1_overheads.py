"""What recalibration and scoring cost beside training itself (S1 §7.2.1, overheads)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..grpo.history import seed_folder
from ..inference.classical import t_interval
from ..inference.paired import INTERVAL_COLUMNS, interval_row
from ..readouts.config import CalibrationConfig

_NEEDED = ("seed", "step", "rollouts", "generated_tokens", "seconds", "seconds_score")
COLUMNS = (
    "seed", "number", "failed", "rollouts", "closed_book_decodes", "deletion_decodes",
    "rollout_tokens", "decode_tokens", "seconds",
)  # fmt: skip


def refit_schedule(
    settings: Mapping[str, object], calibration: CalibrationConfig
) -> tuple[int | None, int]:
    """(K, M) of a condition's ``settings``: its factors times those of the profile.

    K counts updates and is None where readouts are frozen; M counts questions, as many as the
    calibration split has at most.
    """
    interval, factor = settings.get("interval", 1.0), float(settings.get("questions", 1.0))
    every = None if interval is None else max(1, round(float(interval) * calibration.every))
    questions = calibration.questions if factor == 1.0 else round(factor * calibration.questions)
    return every, max(2, questions)


def calibration_rounds(run: Path, seeds: Sequence[int]) -> pd.DataFrame:
    """The rounds beside a training run: one row each, with what its ``report.json`` counts.

    Columns ``COLUMNS``: ``failed`` is the reason or "", decodes and tokens are NaN then; a
    round that was ended with the training left neither evaluator nor reason and has no row.

    Raises
    ------
    WorkbenchError : a report that is missing or cannot be read.
    """
    from ..readouts.refit import FAILED, REPORT, RESULT

    rows = []
    for seed in seeds:
        for place in sorted((seed_folder(run, seed) / "calibration").glob("round-[0-9]*")):
            number = place.name.removeprefix("round-")
            done, failed = (place / RESULT).is_file(), (place / FAILED).is_file()
            if not number.isdigit() or not (done or failed):
                continue
            known = place / (REPORT if done else FAILED)
            try:
                told = json.loads(known.read_text(encoding="utf-8"))
                found = dict(told["cost"]) if done else {"failed": str(told["reason"])}
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise WorkbenchError(
                    f"no report of a calibration round: {error}",
                    where=known,
                    fix="delete the training run and train again",
                ) from None
            rows.append({"seed": seed, "number": int(number), "failed": "", **found})
    return pd.DataFrame(rows).reindex(columns=COLUMNS)


def overheads(
    rounds: pd.DataFrame, history: pd.DataFrame, every: int | None, rollouts: int
) -> pd.DataFrame:
    """One condition's overheads, per seed first: mean over seeds with its t interval.

    Parameters
    ----------
    rounds : of ``calibration_rounds``.
    history : ``grpo.history.training_history`` of the same run.
    every : K in updates, None for frozen readouts: then nothing is compared to K updates.
    rollouts : G of a calibration question.

    Returns
    -------
    Rows: metric, value, low, high, n (seeds), seeds, p:
    ``rounds``, ``failed`` (rounds per seed), ``extra_decodes`` per round, ``bound`` M(1 + G),
    ``decode_share``, ``token_share``: of the rollouts of K updates; ``decode_share_all``,
    ``token_share_all``: with the round's own rollouts on top; ``interval``: updates from an
    evaluator's installation to its replacement; ``seconds_round``, ``seconds_updates`` of K
    updates; ``score_share``: of the seconds of a step that scoring took.  What a seed has no
    round for is NaN there and left out; no seed: n 0.

    Raises
    ------
    WorkbenchError : the history lacks a column.
    """
    if absent := [c for c in _NEEDED if c not in history.columns]:
        raise WorkbenchError(
            f"the history has no column {absent[0]!r}", fix="read it by training_history"
        )
    trained = history[history["step"] > 0]
    seeds = [
        _of_seed(rounds[rounds["seed"] == seed], own, every, rollouts)
        for seed, own in trained.groupby("seed")
    ]
    rows = []
    for metric, values in pd.DataFrame(seeds).items():
        kept = values.dropna()
        nothing = dict.fromkeys(INTERVAL_COLUMNS, np.nan) | {"n": 0, "seeds": 0}
        found = interval_row(t_interval(kept, within=(0.0, np.inf))) if len(kept) else nothing
        rows.append({"metric": metric, **found})
    return pd.DataFrame(rows, columns=["metric", *INTERVAL_COLUMNS])


def _of_seed(
    rounds: pd.DataFrame, history: pd.DataFrame, every: int | None, rollouts: int
) -> dict[str, float]:
    done = rounds[rounds["failed"] == ""].astype({c: float for c in COLUMNS[3:]})
    mean = done[list(COLUMNS[3:])].mean()
    extra = mean["closed_book_decodes"] + mean["deletion_decodes"]
    updates = np.nan if every is None else every
    decodes = updates * history["rollouts"].mean()
    tokens = updates * history["generated_tokens"].mean()
    return {
        "rounds": float(len(rounds)),
        "failed": float((rounds["failed"] != "").sum()),
        "extra_decodes": extra,
        "bound": mean["rollouts"] / rollouts * (1 + rollouts),
        "decode_share": extra / decodes,
        "decode_share_all": (extra + mean["rollouts"]) / decodes,
        "token_share": mean["decode_tokens"] / tokens,
        "token_share_all": (mean["decode_tokens"] + mean["rollout_tokens"]) / tokens,
        "interval": _realised_interval(history),
        "seconds_round": mean["seconds"],
        "seconds_updates": updates * history["seconds"].mean(),
        "score_share": history["seconds_score"].sum() / history["seconds"].sum(),
    }


def _realised_interval(history: pd.DataFrame) -> float:
    """Mean updates from one installation to the next; the first evaluator is there at 0."""
    if "refits_installed" not in history.columns:
        return float("nan")
    steps = history.sort_values("step")
    risen = steps["refits_installed"].fillna(0.0).diff().fillna(steps["refits_installed"]) > 0
    at = steps.loc[risen, "step"].to_numpy(dtype=float)
    return float(np.diff(at, prepend=0.0).mean()) if len(at) else float("nan")
