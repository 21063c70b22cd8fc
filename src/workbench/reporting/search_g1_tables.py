"""Tables 3, 4, A13 and A14 of the Search-G1 study (S1), ours beside theirs.

Every table has a row for each condition that S1 has, also where a profile trains fewer: the cell
then says so.  S1's values stand in columns of their own; what differs in setting is in the
caption.  What policies know and what answers cost is in ``search_g1_boundary``, audits of the
labels and the credit in ``search_g1_audits``, overheads and tied groups in ``search_g1_costs``.
"""

from __future__ import annotations

import pandas as pd

from ..evaluation.contrasts import ALL
from ..evaluation.search_g1_overheads import refit_schedule
from ..evaluation.search_g1_study import (
    FULL,
    MAIN,
    SCHEDULES,
    SWEEP,
    VARIANTS,
    against_full,
    behaviour,
    classified_counts,
    greedy_rows,
    of_conditions,
    with_category,
)
from ..inference.bootstrap import BootstrapConfig, Interval
from ..methods.registry import load_condition
from ..questions.categories import CHAIN
from ..readouts.config import CalibrationConfig
from .claims import verdict
from .comparisons import METRIC_NAMES, Setting
from .published import Published, published_cell
from .search_g1_cells import (
    METHODS,
    MODELS,
    NOT_TRAINED,
    PAPER,
    WIKI,
    cells,
    label,
    over,
    setting_note,
    shown,
    their_columns,
    theirs,
    untrained_note,
)
from .study import interval_of
from .tables import NOT_PUBLISHED, Cell, Column, Table

_OURS = {"em": "EM", "tc": "TC", "unclassified": "unclassified share", "searches": "Search/Q"}
_THEIRS = {"em": "EM", "tc": "TC", "searches": "Search/Q"}
# S1's K and M of the rows of Table A14, in the order of SCHEDULES.
_THEIR_SCHEDULES = (("inf", "0"), ("50", "300"), ("25", "300"), ("10", "300"), ("25", "100"))
GROUNDING_NOTE = (
    "TC is the mean grounding score of correct direct answers (1.0) and of correct searched ones "
    "that document replacement could classify; the unclassified share is of correct searched "
    "rollouts."
)


def table_3(
    grounded: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Table 3: grounding, over all questions and on two-hop chains beside S1's 2WikiMultiHopQA.

    ``grounded``: greedy rows of ``policies.ask`` through ``evaluation.grounding.grounded``.
    """
    rows_of = with_category(of_conditions(grounded, MAIN))
    found = behaviour(rows_of, MAIN, ["questions"], config)
    counts = classified_counts(rows_of, ["questions"])
    cell = cells(found, "condition", "questions", "metric")
    titles = {
        "em": "EM", "tc": "TC", "d_inv": "D-Inv (of classified)",
        "d_inv_all": "D-Inv (of correct searched)", "unclassified": "unclassified share",
        "searches": "Search/Q",
    }  # fmt: skip
    printed_as = {"em": "EM", "tc": "TC", "d_inv": "D-Inv", "searches": "Search/Q"}
    rows = []
    for condition in MAIN:
        for questions in (ALL, CHAIN):
            row: dict[str, Cell] = {"condition": label(condition), "questions": questions}
            row |= {metric: cell(condition, questions, metric) for metric in titles}
            row["counts"] = counts.get((condition, questions))
            if questions == CHAIN:
                row |= theirs("3", printed_as, method=METHODS[condition])
            rows.append(row)
    columns = [Column("condition", "condition"), Column("questions", "questions")]
    columns += [Column(metric, title) for metric, title in titles.items()]
    columns.append(Column("counts", "rollouts classified, of correct searched", absent=NOT_TRAINED))
    columns += their_columns(printed_as, absent="2Wiki only")
    caption = (
        f"S1 Table 3, greedy decoding: {shown(found)}. {GROUNDING_NOTE} D-Inv is the share whose "
        "answer ignores the replaced document, once among classified rollouts (S1) and once "
        "among all correct searched ones. All three condition on what a policy got right, so "
        f"policies are measured on different questions. {setting_note(setting, WIKI)} "
        f"{untrained_note(MAIN, found['condition'])}"
    )
    return Table("s1_table_3", caption.strip(), columns, rows)


def table_4(
    grounded: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Table 4: EM, TC and Search/Q of the eight variants (paired in ``table_4_differences``).

    ``grounded``: greedy rows of ``policies.ask`` through ``evaluation.grounding.grounded``.
    """
    found = behaviour(grounded, VARIANTS, (), config)
    cell = cells(found, "condition", "metric")
    rows = [
        {
            "condition": label(condition),
            **{metric: cell(condition, metric) for metric in _OURS},
            **theirs("4", _THEIRS, variant=_variant(condition)),
        }
        for condition in VARIANTS
    ]
    columns = [Column("condition", "variant")]
    columns += [Column(metric, title) for metric, title in _OURS.items()]
    caption = (
        f"S1 Table 4, greedy decoding, all questions: {shown(found)}. {GROUNDING_NOTE} "
        f"{setting_note(setting, WIKI)} {untrained_note(VARIANTS, found['condition'])}"
    )
    return Table("s1_table_4", caption.strip(), [*columns, *their_columns(_THEIRS)], rows)


def table_4_differences(
    evaluated: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Every variant minus full Search-G1, paired; S1's are differences of two cells of Table 4.

    ``evaluated``: rows of ``policies.ask``, of which the greedy ones count.
    """
    found = against_full(greedy_rows(evaluated), VARIANTS, config=config)
    records = {(r["condition"], r["metric"]): r for r in found.to_dict("records")}
    rows = []
    trained = set(evaluated["condition"])
    for condition in VARIANTS[1:]:
        missing = NOT_TRAINED if condition not in trained else "Search-G1 was not trained"
        for metric in ("em", "searches"):
            record = records.get((condition, metric))
            row: dict[str, Cell] = {
                "condition": label(condition), "metric": METRIC_NAMES[metric],
                "difference": missing, "shown": missing,
            }  # fmt: skip
            if record is not None:
                row |= {"difference": interval_of(record), "shown": verdict(record, metric)}
            row |= {f"S1 {s}": _their_difference(condition, metric, m) for s, m in MODELS.items()}
            rows.append(row)
    columns = [
        Column("condition", "variant"), Column("metric", "metric"),
        Column("difference", "minus Search-G1"), Column("shown", "shown"),
        *(Column(f"S1 {size}", f"S1 {size}: minus Search-G1", 3, NOT_PUBLISHED) for size in MODELS),
    ]  # fmt: skip
    caption = (
        "S1 Table 4 as differences, greedy decoding: variant minus full Search-G1 on the same "
        f"questions, mean [95 % bootstrap interval over {over(found)}] (questions, x seeds), and "
        "what the interval shows. S1 states no intervals here; its columns are differences of "
        f"printed means of four runs. {setting_note(setting, WIKI)} "
        f"{untrained_note(VARIANTS, trained)}"
    )
    return Table("s1_table_4_differences", caption.strip(), columns, rows)


def table_a13(
    grounded: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Table A13: λ_g and η; η = 0 is the variant without search cost.

    ``grounded``: greedy rows of ``policies.ask`` through ``evaluation.grounding.grounded``.
    """
    heads, keys = [], []
    for condition in SWEEP:
        shaping = load_condition(condition).settings["shaping"]
        values = {"lambda_g": f"{shaping['lambda_g']:.1f}", "eta": f"{shaping['eta']:.2f}"}
        heads.append(values)
        keys.append(values)
    columns = [Column("lambda_g", "λ_g"), Column("eta", "η")]
    return _sweep("A13", SWEEP, heads, keys, columns, grounded, setting, config)


def table_a14(
    grounded: pd.DataFrame,
    calibration: CalibrationConfig,
    setting: Setting,
    config: BootstrapConfig | None = None,
) -> Table:
    """Table A14: how often readouts are refitted (K) and on how many questions (M).

    ``grounded``: greedy rows of ``policies.ask`` through ``evaluation.grounding.grounded``;
    ``calibration``: the profile's, whose K and M the conditions multiply.
    """
    heads, keys = [], []
    for condition, (k, m) in zip(SCHEDULES, _THEIR_SCHEDULES):
        every, questions = refit_schedule(load_condition(condition).settings, calibration)
        ours = ("never", "none") if every is None else (str(every), str(questions))
        printed_as = ("never", "none") if k == "inf" else (k, m)
        heads.append(dict(zip(("K", "M", "S1 K", "S1 M"), (*ours, *printed_as))))
        keys.append({"k": k, "m": m})
    columns = [Column("K", "K (updates)"), Column("M", "M (questions)")]
    columns += [Column("S1 K", "S1: K"), Column("S1 M", "S1: M")]
    return _sweep("A14", SCHEDULES, heads, keys, columns, grounded, setting, config)


def _sweep(table, conditions, heads, keys, columns, grounded, setting, config) -> Table:
    """Rows with the settings ``heads``, S1's with ``keys``, and the EM minus full Search-G1."""
    found = behaviour(grounded, conditions, (), config)
    cell = cells(found, "condition", "metric")
    differences = cells(against_full(grounded, conditions, ("em",), config), "condition")
    rows = []
    for condition, head, key in zip(conditions, heads, keys):
        row = {"condition": label(condition), **head, "difference": differences(condition)}
        row |= {metric: cell(condition, metric) for metric in _OURS}
        if condition == FULL and isinstance(row["em"], Interval):
            row["difference"] = "reference"
        rows.append(row | theirs(table, _THEIRS, **key))
    columns = [Column("condition", "condition"), *columns]
    columns += [Column(metric, title) for metric, title in _OURS.items()]
    columns.append(Column("difference", "EM minus Search-G1"))
    caption = (
        f"S1 Table {table}, greedy decoding, all questions: {shown(found)}; the EM difference to "
        f"Search-G1 is paired. {GROUNDING_NOTE} {setting_note(setting, WIKI)} "
        f"{untrained_note(conditions, found['condition'])}"
    )
    name = f"s1_table_{table.lower()}"
    return Table(name, caption.strip(), [*columns, *their_columns(_THEIRS)], rows)


def _variant(condition: str) -> str:
    return "Full Search-G1" if condition == FULL else load_condition(condition).label


def _their_difference(condition: str, metric: str, model: str) -> Published | None:
    found = [
        published_cell(PAPER, "4", model=model, variant=_variant(c), metric=_THEIRS[metric])
        for c in (condition, FULL)
    ]
    if None in found:
        return None
    value = round(found[0].value - found[1].value, 4)
    return Published(f"{value:+.3f}", value, f"{found[0].source}, a difference", model)
