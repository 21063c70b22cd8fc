"""S1's Tables A18, A20 and A21: what refits change, ours beside theirs."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ..evaluation.refreshes import ADVANTAGE, AT_REFRESH, CORRECT, DIFFERENCE, QUIET, REWARD
from ..methods.registry import load_condition
from ..readouts.tables import RELIANCE, SUFFICIENCY
from .co_evolution import PAPER, cell_or_why, plain_cell, setting_note
from .comparisons import Setting
from .published import published_cell
from .study import interval_of
from .tables import Cell, Column, Table

NOT_IN_S1 = "not in S1"
NOT_TRAINED = "not trained in this profile"
EVERY = 25  # S1's updates between the rounds of Table A18
SCHEDULES = {"search_g1_k_10": "10", "search_g1": "25", "search_g1_k_50": "50"}
_READOUTS = {RELIANCE: "D_phi (evidence)", SUFFICIENCY: "B_psi (closed-book)"}
_A18 = {
    "hard_s": ("hard S", "Hard S", 0), "hard_n": ("hard N", "Hard N", 0),
    "mean": ("mean n", "Mean", 3), "sd": ("SD of n", "SD", 3), "q10": ("q10", "q10", 3),
    "median": ("median", "median", 3), "q90": ("q90", "q90", 3),
    "predicted_n": ("predicted N", "Pred. N", 0),
    "predicted_share": ("predicted N, share", "Pred. N %", 3), "auc": ("AUC", "AUC", 3),
}  # fmt: skip


def table_a18(distribution: pd.DataFrame, setting: Setting, questions: str) -> Table:
    """Table A18: distribution of n = 1 - b at each round; S1's 25, 50 and 75 are rounds 1 to 3.

    Parameters
    ----------
    distribution : of ``evaluation.evaluator_series.necessity_distribution``.
    questions : which questions these are, for the caption.
    """
    rows = []
    order = ["number", "seed"]
    for (number, seed), own in distribution.groupby(order, sort=True):
        cells = {r["metric"]: r for r in own.to_dict("records")}
        row: dict[str, Cell] = {
            "number": int(number), "seed": int(seed) if seed >= 0 else "all (start)",
            "step": int(own["step"].iloc[0]), "n": int(own["n"].max()),
        }  # fmt: skip
        for metric, (_, theirs, _) in _A18.items():
            cell = cells[metric]
            count = metric in ("hard_s", "hard_n", "predicted_n")
            row[metric] = str(int(cell["value"])) if count else cell_or_why(cell)
            keys = {"checkpoint": str(EVERY * int(number)), "metric": theirs}
            row[f"S1 {metric}"] = published_cell(PAPER, "A18", **keys)
        rows.append(row)
    columns = [
        Column("number", "round"), Column("seed", "training seed"), Column("step", "update"),
        Column("n", "questions"),
    ]  # fmt: skip
    columns += [
        Column(metric, title, digits, counted=False) for metric, (title, _, digits) in _A18.items()
    ]
    columns += [
        Column(f"S1 {metric}", f"S1: {title}", digits, NOT_IN_S1)
        for metric, (title, _, digits) in _A18.items()
    ]
    cell = published_cell(PAPER, "A18", checkpoint=str(EVERY), metric="AUC")
    caption = (
        f"S1 Table A18: necessity n = 1 - b of each round's B on {questions}, read on the states "
        "of the policy that it was fitted on [95 % interval over questions, of the share: Wilson]; "
        "hard S and N count that policy's closed-book labels, predicted N scores of at least 0.5. "
        f"Round 0 is the base policy. S1: 300 questions of 2WikiMultiHopQA on which B was also "
        f"fitted, rounds at updates 25, 50 and 75. {setting_note(setting, cell)}"
    )
    return Table("s1_table_a18", caption, columns, rows)


def table_a20(quality: pd.DataFrame, drift: pd.DataFrame, setting: Setting) -> Table:
    """Table A20: AUC, Brier and ECE at the start (``readouts.tables.quality_table``) and drift.

    ``drift``: of ``evaluation.evaluator_series.evaluator_drift``.
    """
    measured = {r["readout"]: r for r in quality.to_dict("records")}
    drifts = {r["readout"]: r for r in drift.to_dict("records")}
    rows = []
    for name, theirs in _READOUTS.items():
        row: dict[str, Cell] = {"readout": name}
        if own := measured.get(name):
            row |= {"auc": plain_cell(own), "brier": own["brier"], "ece": own["ece"]}
        if own := drifts.get(name):
            row |= {"drift": cell_or_why(own), "refits": f"{own['refits']} in {own['seeds']} seeds"}
        for key, metric in _A20.items():
            row[f"S1 {key}"] = published_cell(PAPER, "A20", readout=theirs, metric=metric)
        rows.append(row)
    titles = {"auc": "AUC", "brier": "Brier", "ece": "ECE", "drift": "scale drift across refits"}
    columns = [Column("readout", "readout"), *(Column(k, t) for k, t in titles.items())]
    columns.append(Column("refits", "refits"))
    columns += [Column(f"S1 {k}", f"S1: {t}", 2, NOT_IN_S1) for k, t in titles.items()]
    cell = published_cell(PAPER, "A20", readout=_READOUTS[RELIANCE], metric="AUC")
    caption = (
        "S1 Table A20: held-out scores at the start, AUC [95 % bootstrap interval over questions] "
        "(questions) with Brier score and ECE (points, n of the AUC); scale drift is the mean "
        "absolute change of the mean score between successive evaluators on the same rollouts of "
        "the base policy, mean over seeds; being absolute it does not vanish by chance alone. "
        f"{setting_note(setting, cell)}"
    )
    return Table("s1_table_a20", caption, columns, rows)


_A20 = {"auc": "AUC", "brier": "Brier", "ece": "ECE", "drift": "Scale drift across refits"}


def table_a21(
    shifts: Mapping[str, pd.DataFrame],
    jumps: Mapping[str, pd.DataFrame],
    updates: Mapping[str, int | None],
    setting: Setting,
    window: int,
) -> Table:
    """Table A21 by condition: what a refresh does to rewards and to the outcome.

    Parameters
    ----------
    shifts : condition -> ``evaluation.refreshes.refresh_shift``.
    jumps : condition -> ``evaluation.refreshes.performance_jump`` over ``window`` steps.
    updates : condition -> its K here, None for no refits.
    """
    others = [c for c in (*shifts, *jumps) if c not in SCHEDULES]
    rows = []
    for condition in dict.fromkeys([*SCHEDULES, *others]):
        row: dict[str, Cell] = {"condition": load_condition(condition).label}
        if (trained := condition in jumps or condition in shifts) and condition in updates:
            row["k"] = updates[condition] or "no refits"
        if trained:
            row |= _shift_cells(shifts.get(condition)) | _jump_cells(jumps.get(condition))
        if k := SCHEDULES.get(condition):
            row["S1 k"] = k
            for key, metric in (("shift", "Reward shift at refresh"), ("jump", "Perf. jump")):
                row[f"S1 {key}"] = published_cell(PAPER, "A21", k=k, metric=metric)
        rows.append(row)
    columns = [
        Column("condition", "condition"), Column("k", "K, updates", absent=NOT_TRAINED),
        Column("refreshes", "refreshes, all seeds", absent=NOT_TRAINED),
        Column(REWARD, "reward shift", absent=NOT_TRAINED),
        Column(CORRECT, "of correct rollouts", absent=NOT_TRAINED),
        Column(ADVANTAGE, "shift of advantages", absent=NOT_TRAINED),
        Column(AT_REFRESH, "jump at a refresh", absent=NOT_TRAINED),
        Column(QUIET, "jump without one", absent=NOT_TRAINED),
        Column(DIFFERENCE, "difference of the jumps", absent=NOT_TRAINED),
        Column("S1 k", "S1: K", absent=NOT_IN_S1),
        Column("S1 shift", "S1: reward shift", 2, NOT_IN_S1),
        Column("S1 jump", "S1: performance jump", 2, NOT_IN_S1),
    ]  # fmt: skip
    frames = [f for f in jumps.values() if len(f)]
    metric = frames[0]["metric"].iloc[0] if frames else "outcome"
    cell = published_cell(PAPER, "A21", k="25", metric="Perf. jump")
    caption = (
        "S1 Table A21. Reward shift: mean absolute change of Eq. 6 from the old to the new "
        "evaluator on the same rollouts of the base policy, of all and of the correct ones, and "
        'of the reward normalised in its group (S1: "normalized", not said how) [95 % interval '
        f"over seeds, then questions] (questions x seeds). Jump: |mean {metric} of the {window} "
        f"steps after - of the {window} before|, at refreshes and where none was near [95 % t "
        "interval over seeds] (seeds); S1: held-out EM, windows not stated, nothing without a "
        f"refresh. {setting_note(setting, cell)}"
    )
    return Table("s1_table_a21", caption, columns, rows)


def _shift_cells(shift: pd.DataFrame | None) -> dict[str, Cell]:
    if shift is None or shift.empty:
        why = "not measured" if shift is None else "no evaluator was replaced"
        return dict.fromkeys(("refreshes", REWARD, CORRECT, ADVANTAGE), why)
    whole = shift[shift["number"] == "all"]
    cells: dict[str, Cell] = {r["metric"]: interval_of(r) for r in whole.to_dict("records")}
    cells = {k: v if v.n else "no such rollout" for k, v in cells.items()}
    return cells | {"refreshes": str(int(whole["refreshes"].iloc[0]))}


def _jump_cells(jump: pd.DataFrame | None) -> dict[str, Cell]:
    if jump is None:
        return dict.fromkeys((AT_REFRESH, QUIET, DIFFERENCE), "not measured")
    return {
        r["when"]: plain_cell(r) if r["n"] else "no such window" for r in jump.to_dict("records")
    }
