"""Overheads of Search-G1 (S1 §7.2.1), and Figure 4 with its mirror as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from ..evaluation.credit_study import OUTCOME_ONLY
from ..evaluation.search_g1_overheads import overheads, refit_schedule
from ..evaluation.search_g1_study import FULL, KINDS, tied_groups
from ..inference.bootstrap import Interval
from ..methods.registry import load_condition
from ..readouts.config import CalibrationConfig
from .comparisons import Setting
from .search_g1_cells import (
    MODELS,
    NOT_IN_S1,
    NQ,
    WIKI,
    label,
    printed,
    printed_range,
    setting_note,
)
from .tables import NOT_MEASURED, NOT_PUBLISHED, Cell, Column, Table

# Metric of ``overheads`` -> title of its column and decimals.
_COSTS = {
    "rounds": ("rounds", 1),
    "failed": ("failed rounds", 1),
    "interval": ("realised interval (updates)", 1),
    "extra_decodes": ("extra decodes a round", 0),
    "bound": ("bound M(1 + G)", 0),
    "decode_share": ("extra decodes / rollouts of K updates", 3),
    "decode_share_all": ("the same with the round's own rollouts", 3),
    "token_share": ("extra decoded tokens / rollout tokens of K updates", 3),
    "token_share_all": ("tokens with the round's own rollouts", 3),
    "seconds_round": ("seconds of a round", 1),
    "seconds_updates": ("seconds of K updates", 1),
    "score_share": ("scoring / time of a step", 3),
}
VARIATION = "groups with nonzero reward variation"


def overheads_table(
    rounds: Mapping[str, pd.DataFrame],
    histories: Mapping[str, pd.DataFrame],
    calibration: CalibrationConfig,
    setting: Setting,
    scored: Mapping[str, tuple[int, int]] = {},  # noqa: B006
) -> Table:
    """What recalibration and scoring cost, beside S1's counts.

    Parameters
    ----------
    rounds : ``search_g1_overheads.calibration_rounds`` by condition.
    histories : ``grpo.history.training_history`` of the same conditions, seconds included.
    calibration : the profile's.
    scored : by condition, tokens that went through the snapshot and tokens of the rollouts
        scored (``readouts.evaluator.Scored``).
    """
    rows = []
    for condition, own in rounds.items():
        every, questions = refit_schedule(load_condition(condition).settings, calibration)
        frozen = every is None
        row: dict[str, Cell] = {
            "condition": label(condition),
            "K": "never" if frozen else str(every),
            "M": "none" if frozen else str(questions),
        }
        found = overheads(own, histories[condition], every, calibration.rollouts)
        for record in found.to_dict("records"):
            nothing = "frozen readouts: no refit" if frozen else "no finished round"
            row[record["metric"]] = _over_seeds(record) or nothing
        if condition in scored:
            forward, tokens = scored[condition]
            row["passes"] = f"{forward / tokens:.2f} ({forward} / {tokens} tokens)"
        rows.append(row | (_their_overheads() if condition == FULL else {}))
    columns = [Column("condition", "condition"), Column("K", "K"), Column("M", "M")]
    columns += [Column(key, title, digits) for key, (title, digits) in _COSTS.items()]
    columns.append(Column("passes", "scoring: forward / rollout tokens", absent=NOT_MEASURED))
    columns += [
        Column("S1 extra", "S1: extra decodes at most", absent=NOT_PUBLISHED),
        Column("S1 share", "S1: of the rollouts of K updates", absent=NOT_PUBLISHED),
        Column("S1 passes", "S1: scoring", absent=NOT_PUBLISHED),
    ]
    caption = (
        "Overheads of Search-G1: mean over seeds [95 % t interval over seeds] (seeds). Extra "
        "decodes of a round are closed-book answers and answers without evidence; its own "
        "rollouts of the calibration questions come on top, which S1 does not count. Rounds run "
        "in a process beside the training, so their seconds and those of the updates share the "
        "machine. The realised interval is from an evaluator's installation to the next, the "
        "first being there at update 0. "
        f"{setting_note(setting, 'K = 25, M = 300, 16,000 rollouts in K updates', ['3B'])}"
    )
    return Table("s1_overheads", caption, columns, rows)


def tied_groups_table(histories: Mapping[str, pd.DataFrame], setting: Setting) -> Table:
    """Figure 4 as a table, and its mirror in all-wrong groups, which no paper reports.

    ``histories``: ``grpo.history.training_history`` by condition.
    """
    found = tied_groups(histories)
    records = {(r["condition"], r["kind"], r["metric"]): r for r in found.to_dict("records")}
    heads = {"all_correct": "all-correct groups", "all_wrong": "all-wrong groups"}
    rows = []
    for condition in histories:
        row: dict[str, Cell] = {"condition": label(condition)}
        for kind in KINDS:
            share, sd = (records[condition, kind, m] for m in ("credited", "reward_sd"))
            row[f"{kind} n"] = str(int(share["n"]))
            none = f"no {heads[kind][:-1]}"
            row[f"{kind} credited"] = _over_seeds(share) or none
            row[f"{kind} reward_sd"] = _over_seeds(sd) or none
        if condition == FULL:
            keys = {"figure": "4", "series": "Search-G1"}
            for dataset in (NQ, WIKI):
                row[f"S1 {dataset}"] = printed_range(VARIATION, dataset=dataset, **keys)
            row["S1 sd"] = printed_range("within-group reward SD", dataset="all", **keys)
        elif condition == OUTCOME_ONLY:
            row |= {f"S1 {NQ}": _EM_ONLY, f"S1 {WIKI}": _EM_ONLY, "S1 sd": NOT_PUBLISHED}
        rows.append(row)
    columns = [Column("condition", "condition")]
    for kind in KINDS:
        name = heads[kind]
        columns += [
            Column(f"{kind} n", f"{name} (number)"),
            Column(f"{kind} credited", f"{name}: share with non-zero advantages"),
            Column(f"{kind} reward_sd", f"{name}: mean reward sd"),
        ]
    columns += [
        *(Column(f"S1 {d}", f"S1 {d}: share, all-correct", 3, NOT_IN_S1) for d in (NQ, WIKI)),
        Column("S1 sd", "S1: reward sd, all-correct", 3, NOT_IN_S1),
    ]
    counts = ", ".join(
        f"{_their_count(dataset)} on {dataset}" for dataset in (NQ, WIKI)
    )  # fmt: skip
    caption = (
        "S1 Figure 4 and its mirror: training groups whose rollouts are all correct, or all "
        "wrong, so that outcome alone gives no advantage. In all-correct groups non-zero "
        "advantages break ties; in all-wrong groups they are credit without any success, which "
        "Eq. 6 gives where only some rollouts are invalid. Outcome is exact match, F1 for outcome "
        "only. Steps "
        "are pooled by their number of such groups: mean over seeds [95 % t interval over seeds, "
        "cut at 0 and, of shares, at 1] (seeds), with one seed the share's Wilson interval over "
        f"groups (groups). S1: range over 3B and 7B, {counts} all-correct groups (3B/7B); "
        f"of all-wrong groups it says nothing. {setting_note(setting, f'{NQ} and {WIKI}')}"
    )
    return Table("s1_figure_4", caption, columns, rows)


_EM_ONLY = "0 (EM only)"


def _over_seeds(record: Mapping) -> Interval | None:
    """A cell that counts seeds, or with one seed what the record counts; None without a value."""
    if math.isnan(record["value"]):
        return None
    seeds = int(record["seeds"])
    count = seeds if seeds > 1 else int(record["n"])
    return Interval(record["value"], record["low"], record["high"], count)


def _their_overheads() -> dict[str, Cell]:
    told = printed("inline", topic="overhead")
    share = told[told["metric"] == "extra decodes as share of rollout decodes"]
    ends = [f"{float(value) / 100:.2f}" for value in share["value"]]
    most = told[told["metric"] == "max extra decodes per refit"]["value"].iloc[0]
    return {
        "S1 extra": most, "S1 share": " to ".join(ends),
        "S1 passes": "one batched pass through the snapshot",
    }  # fmt: skip


def _their_count(dataset: str) -> str:
    rows = printed("figures", figure="4", metric="all-correct group count", dataset=dataset)
    return "/".join(rows.set_index("model")["value"].reindex(list(MODELS.values())))
