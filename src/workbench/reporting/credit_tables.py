"""Tables 1, 3, 8 and 9 of the retrieval-credit study (S3), and its differences, ours beside theirs.

Every table has a row for each of the thirteen conditions, also where a profile trains fewer:
the cell then says so.  Published columns name S3; what differs in setting is in the caption.
Tables 4 and 5 are in ``audit_tables``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pandas as pd

from ..evaluation.contrasts import ALL
from ..evaluation.credit_study import CONDITIONS, GROUPS, SETS
from .claims import verdict
from .comparisons import (
    METRIC_NAMES,
    PUBLISHED_METHODS,
    Setting,
    paper_setting,
    setting_difference,
)
from .published import Published, published_cell
from .study import interval_of
from .style import display
from .tables import Cell, Column, Table

PAPER = "retrieval_credit"
NOT_TRAINED = "not trained in this profile"
NOT_IN_S3 = "not in S3"
_THEIR_GROUPS = {"multi-hop": "Multi-hop", "single-hop": "Single-hop", ALL: "All"}
_THEIR_SETS = (
    "2WikiMultiHopQA", "HotpotQA", "MuSiQue", "Bamboogle", "NQ", "TriviaQA", "PopQA", "Avg",
)  # fmt: skip


def setting_note(setting: Setting) -> str:
    """What differs between S3's results and ours, for captions."""
    cell = published_cell(PAPER, "8", method="OO", group="All")
    theirs = setting_difference(setting, paper_setting(PAPER, cell))
    return (
        f"Ours: model {setting.model}; corpus {setting.corpus}; budget {setting.budget}; question "
        "categories of the embedded corpus in the part of data sets. S3: "
        f"{theirs}; seven data sets, 3,197 questions, greedy decoding, final checkpoint."
    )


def missing_conditions(conditions: Collection[str]) -> str:
    """A sentence on the conditions of S3 that were not trained, "" if all were."""
    missing = [display(name) for name in CONDITIONS if name not in conditions]
    if not missing:
        return ""
    return f"Not trained in this profile: {', '.join(missing)}."


def table_1(
    scores: pd.DataFrame, setting: Setting, decoding: str, metric: str = "f1", name: str = ""
) -> Table:
    """Table 1 for all conditions: a column for each question set, and the micro average.

    Parameters
    ----------
    scores : condition, question_set (``ALL`` for the average), metric, value, low, high, n,
        seeds, of one decoding.
    decoding : its name, for the caption.
    metric : "f1" as in S3's Table 1, or "em"; S3's EM is not in its text.
    """
    scores = scores[scores["metric"] == metric]
    sets = [s for s in SETS if s in set(scores["question_set"])]
    asked = scores.groupby("question_set")["n"].max()
    cells = _cells(scores, "question_set")
    rows = []
    for condition in _rows(scores["condition"]):
        row: dict[str, Cell] = {"condition": display(condition)}
        row |= {s: cells.get((condition, s)) for s in (*sets, ALL)}
        if metric == "f1":
            row |= {f"S3 {s}": _published("1", condition, dataset=s) for s in _THEIR_SETS}
        rows.append(row)
    columns = [Column("condition", "condition")]
    columns += [
        Column(s, f"{'Avg' if s == ALL else s} (n = {asked[s]})", 2, NOT_TRAINED, counted=False)
        for s in (*sets, ALL)
    ]
    if metric == "f1":
        columns += [Column(f"S3 {s}", f"S3: {s}", 4, "not published") for s in _THEIR_SETS]
    caption = (
        f"S3 Table 1, {METRIC_NAMES[metric]} by question set, {decoding} decoding: mean [95 % "
        f"bootstrap interval over {_over(scores)}], n questions in the head of the column. "
        "One-hop questions that name their page are a set of their own; the other sets hold "
        "described and named roots. "
        f"{setting_note(setting)} {missing_conditions(set(scores['condition']))}"
    ).strip()
    return Table(name or f"s3_table_1_{decoding}", caption, columns, rows)


def table_8(scores: pd.DataFrame, setting: Setting, decoding: str) -> Table:
    """Table 8: F1 on multi-hop and single-hop questions and on all.

    ``scores``: condition, hop_group, metric, value, low, high, n, seeds, of one decoding.
    """
    scores = scores[scores["metric"] == "f1"]
    cells = _cells(scores, "hop_group")
    rows = [
        {
            "condition": display(condition),
            **{g: cells.get((condition, g)) for g in GROUPS},
            **{f"S3 {g}": _published("8", condition, group=_THEIR_GROUPS[g]) for g in GROUPS},
        }
        for condition in _rows(scores["condition"])
    ]
    columns = [Column("condition", "condition")]
    columns += [Column(g, f"{g} F1", 3, NOT_TRAINED) for g in GROUPS]
    columns += [Column(f"S3 {g}", f"S3: {g} F1", 4, NOT_IN_S3) for g in GROUPS]
    caption = (
        f"S3 Table 8, {decoding} decoding: mean F1 [95 % bootstrap interval over "
        f"{_over(scores)}] (questions, x seeds). {setting_note(setting)} "
        f"{missing_conditions(set(scores['condition']))}"
    ).strip()
    return Table(f"s3_table_8_{decoding}", caption, columns, rows)


def table_9(left: pd.DataFrame, setting: Setting, decoding: str) -> Table:
    """Table 9: F1 differences without one question set, ours and S3's below one another.

    ``left``: the frame of ``credit_study.leave_one_out``.
    """
    pairs = [("cov_local", "Cov-local - OO"), ("am_local", "AM-local - OO")]
    cells = {(r["condition"], r["omitted"]): interval_of(r) for r in left.to_dict("records")}
    rows: list[dict[str, Cell]] = []
    for omitted in ("none", *(s for s in SETS if s in set(left["omitted"]))):
        row: dict[str, Cell] = {"omitted": f"{omitted} (all)" if omitted == "none" else omitted}
        for name, theirs in pairs:
            row[name] = cells.get((name, omitted))
            if omitted == "none":
                row[f"S3 {name}"] = _published_9(theirs, "none (full)")
        rows.append(row)
    for omitted in _THEIR_SETS[:-1]:
        row = {"omitted": f"S3: {omitted}"}
        row |= {name: "not among our sets" for name, _ in pairs}
        rows.append(row | {f"S3 {name}": _published_9(theirs, omitted) for name, theirs in pairs})
    columns = [Column("omitted", "omitted set")]
    columns += [Column(n, f"{display(n)} minus OO", 3, NOT_TRAINED) for n, _ in pairs]
    columns += [Column(f"S3 {n}", f"S3: {display(n)} minus OO", 4, NOT_IN_S3) for n, _ in pairs]
    caption = (
        f"S3 Table 9, {decoding} decoding: paired F1 difference after omitting one question set "
        "[95 % bootstrap interval] (questions, x seeds); every remaining question keeps equal "
        f"weight. {setting_note(setting)}"
    )
    return Table(f"s3_table_9_{decoding}", caption, columns, rows)


def table_3(
    check: pd.DataFrame, samples: Mapping[str, str], setting: Setting, groups: Mapping[str, int]
) -> Table:
    """Table 3: what a coefficient of the scalar bonus would overturn on saved trajectories.

    Parameters
    ----------
    check : rows of ``methods.reversals.alpha_check`` with the column sample.
    samples : sample -> what it is.
    groups : groups of each sample.
    """
    rows = []
    for record in check.to_dict("records"):
        keys = {"alpha": f"{record['alpha']:.2f}", "signal": record["signal"]}
        rows.append(
            {
                "sample": samples[record["sample"]],
                "alpha": keys["alpha"],
                "signal": record["signal"],
                "metric": record["metric"],
                "ours": record["value"] / 100,
                "count": f"{record['count']} of {record['n']}",
                "published": published_cell(PAPER, "3", metric=record["metric"], **keys),
            }
        )
    caption = (
        "S3 Table 3: share of within-group pairs of unequal F1 whose order, and of non-zero "
        "outcome advantages whose sign, a scalar bonus of that coefficient reverses, computed on "
        "the same saved trajectories ("
        + ", ".join(f"{samples[name]}: {groups[name]} groups" for name in samples)
        + f"). {setting_note(setting)} S3's sample: 768 groups of five rollouts of short "
        "local-credit runs."
    )
    columns = [
        Column("sample", "sample"), Column("alpha", "alpha"), Column("signal", "signal"),
        Column("metric", "measured"), Column("ours", "ours", 4, "no pair or advantage to reverse"),
        Column("count", "count"), Column("published", "S3", 4, NOT_IN_S3),
    ]  # fmt: skip
    return Table("s3_table_3", caption, columns, rows)


def contrasts_table(
    differences: pd.DataFrame, setting: Setting, decoding: str, name: str = "s3_contrasts"
) -> Table:
    """Paired differences with what their intervals show; S3's are differences of its Table 8."""
    rows = [
        {
            "ours": display(record["condition"]),
            "reference": display(record["reference"]),
            "panel": f"3{record['panel']}" if record["panel"] else "2",
            "questions": record["hop_group"],
            "metric": METRIC_NAMES.get(record["metric"], record["metric"]),
            "difference": interval_of(record),
            "shown": verdict(record, record["metric"]),
            "published": published_difference(record),
        }
        for record in differences.to_dict("records")
    ]
    caption = (
        f"Paired differences, {decoding} decoding: mean [95 % bootstrap interval over training "
        "seeds, then questions] (questions, x seeds). S3 states no intervals; its column is the "
        f"difference of two cells of its Table 8. {setting_note(setting)}"
    )
    columns = [
        Column("ours", "condition"), Column("reference", "minus"), Column("panel", "figure"),
        Column("questions", "questions"), Column("metric", "metric"),
        Column("difference", "difference"), Column("shown", "shown"),
        Column("published", "S3", 4, NOT_IN_S3),
    ]  # fmt: skip
    return Table(f"{name}_{decoding}", caption, columns, rows)


def published_difference(record: Mapping) -> Published | None:
    """S3's F1 difference for a row of ``credit_study.differences``: two cells of Table 8."""
    if record["metric"] != "f1":
        return None
    group = _THEIR_GROUPS[record["hop_group"]]
    ours, theirs = (_published("8", record[k], group=group) for k in ("condition", "reference"))
    if ours is None or theirs is None:
        return None
    value = round(ours.value - theirs.value, 4)
    return Published(f"{100 * value:+.2f}", value, "S3 Table 8, a difference", ours.model)


def published_score(condition: str, group: str = ALL) -> Published | None:
    """S3's F1 of a condition in a group of questions (Table 8)."""
    return _published("8", condition, group=_THEIR_GROUPS[group])


def _rows(conditions: Iterable[str]) -> list[str]:
    """The base policy, the thirteen, then what else was trained."""
    present = list(dict.fromkeys(conditions))
    others = [c for c in present if c not in CONDITIONS]
    base = [c for c in others if c == "base"]
    return [*base, *CONDITIONS, *(c for c in others if c != "base")]


def _cells(scores: pd.DataFrame, key: str) -> dict[tuple[str, str], Cell]:
    records = scores.to_dict("records")
    return {(r["condition"], r[key]): interval_of(r) for r in records}


def _published(table: str, condition: str, **keys: str) -> Published | None:
    paper, method = PUBLISHED_METHODS.get(condition, ("", ""))
    if paper != PAPER:
        return None
    return published_cell(PAPER, table, method=method, metric="F1", **keys)


def _published_9(contrast: str, omitted: str) -> Published | None:
    return published_cell(PAPER, "9", contrast=contrast, omitted_dataset=omitted)


def _over(frame: pd.DataFrame) -> str:
    return "training seeds, then questions" if frame["seeds"].max() > 1 else "questions"
