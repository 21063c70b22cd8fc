"""Tables 4 and 5 of the retrieval-credit study (S3), split overlap, exclusions and coverage.

Questions that name their root do not exist in S3; they have rows or columns of their own and
never count towards what stands beside a published number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import pandas as pd

from ..evaluation.credit_study import CONDITIONS
from ..questions.audits import GraphAudit, SplitOverlap
from ..questions.categories import CATEGORIES
from .comparisons import Setting
from .credit_tables import NOT_TRAINED, PAPER, setting_note
from .published import Published, published_cell
from .study import interval_of
from .style import display
from .tables import Cell, Column, Table

_ROOTS = ("described", "named")
_NO_NAMED = "S3 describes every root"


def table_4(counts: pd.DataFrame, name: str = "s3_table_4") -> Table:
    """Table 4: questions by category; ``counts`` of ``questions.audits.category_counts``."""
    number = {
        (r["roots"], r["category"], r["split"]): int(r["questions"])
        for r in counts.to_dict("records")
    }
    splits = list(dict.fromkeys(["train", "test", *sorted(counts["split"])]))
    rows: list[dict[str, Cell]] = []
    for roots in _ROOTS:
        for category in CATEGORIES:
            row: dict[str, Cell] = {"category": category, "roots": roots}
            row |= {s: number.get((roots, category, s), 0) for s in splits}
            rows.append(row | _published_4(category, roots))
        total = {s: sum(number.get((roots, c, s), 0) for c in CATEGORIES) for s in splits}
        rows.append({"category": "Total", "roots": roots} | total | _published_4("Total", roots))
    columns = [Column("category", "category"), Column("roots", "roots")]
    columns += [Column(split, split) for split in splits]
    columns += [Column("S3 Train", "S3: train", 0), Column("S3 Dev", "S3: dev", 0)]
    caption = (
        "S3 Table 4: questions by construction category. Ours are made from the embedded corpus, "
        "splits are drawn over pages, and test questions play the part of S3's development "
        "questions; S3's are a sample of 86,681 made from Wikipedia and Wikidata."
    )
    return Table(name, caption, columns, rows)


def _published_4(category: str, roots: str) -> dict[str, Cell]:
    if roots == "named":
        return {"S3 Train": _NO_NAMED, "S3 Dev": _NO_NAMED}
    return {
        f"S3 {split}": published_cell(PAPER, "4", category=category, split=split)
        for split in ("Train", "Dev")
    }


def table_5(
    audits: Mapping[str, GraphAudit], trajectories: pd.DataFrame, name: str = "s3_table_5"
) -> Table:
    """Table 5: graph structure, grounding, and what dependencies change on saved trajectories.

    Parameters
    ----------
    audits : by roots ("described", "named"), over train and test questions.
    trajectories : rows of ``EvidenceReader.read`` with the column roots.
    """
    rows = [
        _row_5("selected train + test records", audits, lambda a: str(a.records),
               "Selected train + development records"),
        _row_5("grounded graph nodes", audits, lambda a: f"{a.nodes - a.ungrounded}",
               "Grounded graph nodes"),
        _row_5("conjunctive nodes among them", audits, lambda a: str(a.conjunctive),
               "Grounded graph nodes, conjunctive subset"),
        _row_5("missing prerequisites", audits, lambda a: str(a.missing_prerequisites),
               "Missing prerequisites"),
        _row_5("cycles", audits, lambda a: str(a.cycles), "Cycles"),
        _row_5("missing node grounding", audits, lambda a: str(a.ungrounded),
               "Missing node grounding"),
        _row_5("annotation records with start-position coverage", audits,
               lambda a: f"{a.start_covered} of {a.annotations}",
               "Gold annotation records with start-position coverage"),
        _row_5("annotation records without full-mention chunk coverage", audits,
               lambda a: f"{a.without_whole_mention} of {a.annotations}",
               "Gold annotation records without full-mention chunk coverage"),
        _row_5("annotation-chunk pairs with a start but no complete mention", audits,
               lambda a: f"{a.partial_pairs} of {a.matched_pairs}", None,
               metric="matched pairs with a start but no complete mention"),
    ]  # fmt: skip
    for column, check, theirs in (
        ("mention_cut", "trajectories affected by requiring full-mention coverage",
         "Trajectories affected by requiring full-mention coverage"),
        ("cov_above", "trajectories with Cov above Cov-Dep at some point",
         "Trajectories with Cov progress above Cov-Dep at some point"),
        ("delayed", "trajectories exhibiting delayed unlocking",
         "Trajectories exhibiting delayed unlocking"),
    ):  # fmt: skip
        cells: dict[str, Cell] = {"check": check, "published": _count_5(theirs)}
        for roots in _ROOTS:
            part = trajectories[trajectories["roots"] == roots]
            cells[roots] = f"{int(part[column].sum())} of {len(part)}" if len(part) else None
        rows.append(cells)
    caption = (
        "S3 Table 5: structure and chunk grounding of the question graphs, and retrieval progress "
        "on saved trajectories. Ours: sampled rollouts of the base policy and of the trained "
        "policies on test questions; S3's: 7,680 training trajectories. Chunks here are of 30 "
        "words and seldom cut a mention, S3's of 100 words of running text."
    )
    columns = [Column("check", "check")]
    columns += [Column(roots, f"ours, {roots} roots", absent="none") for roots in _ROOTS]
    columns += [Column("published", "S3 (described roots)", 0)]
    return Table(name, caption, columns, rows)


def _row_5(check, audits, text, theirs: str | None, metric: str = "") -> dict[str, Cell]:
    cells: dict[str, Cell] = {roots: text(audits[roots]) for roots in _ROOTS if roots in audits}
    cell = published_cell(PAPER, "inline", topic="grounding", metric=metric) if metric else None
    return {"check": check, "published": _count_5(theirs) if theirs else cell} | cells


def _count_5(category: str) -> Published | str | None:
    cell = published_cell(PAPER, "5", category=category)
    total = {"Traj": "7680", "Gold": "52435"}.get(category[:4])
    return f"{cell.printed} of {total}" if cell and total else cell


_SAME = "exact id or normalised-question overlap"
_ALIAS = "questions with an alias string in the question"
# Field of SplitOverlap -> what it counts here, S3's words for it (None: the same), S3's split.
_OVERLAP = {
    "train": ("training questions", None, "train"),
    "other": ("questions of the split", "development questions", "dev"),
    "same_id": ("same id as a training question", _SAME, "dev"),
    "same_question": ("same normalised question as a training one", _SAME, "dev"),
    "alias_train": ("training questions that contain an accepted answer", _ALIAS, "train"),
    "alias_other": ("questions that contain an accepted answer", _ALIAS, "dev"),
    "evidence_seen": ("all gold evidence seen in training", None, "dev"),
    "evidence_partial": ("partial evidence overlap", None, "dev"),
    "evidence_unseen": ("fully unseen gold evidence", None, "dev"),
    "page_shared": ("sharing a training page", None, "dev"),
    "answer_shared": ("sharing an answer entity", None, "dev"),
}


def overlap_table(overlaps: Mapping[str, SplitOverlap], name: str = "s3_split_overlap") -> Table:
    """What each split shares with training, beside S3 App. B; ``overlaps`` by split."""
    rows = []
    for field in fields(SplitOverlap):
        label, metric, split = _OVERLAP[field.name]
        topic = "mixture" if field.name in ("train", "other") else "overlap"
        cells = {s: int(getattr(overlap, field.name)) for s, overlap in overlaps.items()}
        keys = {"topic": topic, "metric": metric or label, "split": split}
        rows.append({"check": label, **cells, "S3": published_cell(PAPER, "inline", **keys)})
    caption = (
        "What questions share with training questions. Our splits are drawn over pages, so that "
        "evidence and pages are never shared; S3 samples its development questions from the same "
        "pool. An answer entity may be shared: many countries trade with the same one."
    )
    columns = [Column("check", "check"), *(Column(s, f"ours: {s}") for s in overlaps)]
    return Table(name, caption, [*columns, Column("S3", "S3: dev", 0)], rows)


_REASONS = {
    "graph shortcut": "graph shortcuts",
    "no category": "no requested category",
    "missing grounding": "failed chunk grounding",
}


def exclusions_table(excluded: Mapping[str, int], kept: int, name: str = "s3_exclusions") -> Table:
    """Candidates that became no question, by reason, beside those of S3's source pool."""
    counts = {reason: excluded.get(reason, 0) for reason in _REASONS} | dict(excluded)
    rows: list[dict[str, Cell]] = [{"reason": "kept", "ours": kept, "S3": _pool("eligible")}]
    for reason, count in sorted(counts.items(), key=lambda pair: (pair[0] not in _REASONS, pair)):
        theirs = _REASONS.get(reason)
        rows.append({"reason": reason, "ours": count, "S3": _pool(theirs) if theirs else None})
    caption = (
        "Candidate graphs left out, by reason. Ours are all graphs that the statements of the "
        "embedded corpus allow; S3 counts 87,171 source questions, made before these filters. "
        "What is over the limit of its category was sampled away, as S3 samples its mixture."
    )
    columns = [Column("reason", "reason"), Column("ours", "ours"),
               Column("S3", "S3", 0, "not a reason in S3")]  # fmt: skip
    return Table(name, caption, columns, rows)


def _pool(metric: str) -> Published | None:
    return published_cell(PAPER, "inline", topic="source pool", metric=metric)


_ACQUIRED = ("cov", "cov_dep", "am", "no_evidence", "all_evidence", "searches")
# Column -> topic, metric and decimals; whole numbers are of 1,200 questions.
_S3_ACQUIRED = {
    "S3: Cov": ("coverage", "mean Cov", 4),
    "S3: no evidence (of 1200)": ("coverage", "zero-coverage questions", 0),
    "S3: all evidence (of 1200)": ("coverage", "complete-coverage questions", 0),
    "S3: searches": ("searches", "searches per question", 2),
    "S3: no answer (of 1200)": ("trajectories", "missing answers", 0),
    "S3: truncated (of 1200)": ("trajectories", "truncated", 0),
}


def evidence_table(
    summary: pd.DataFrame, counts: pd.DataFrame, setting: Setting, decoding: str
) -> Table:
    """Evidence acquisition (S3 §5.3, App. A.5) of every condition.

    Parameters
    ----------
    summary : condition, metric, value, low, high, n, seeds.
    counts : rows of ``evidence.kept_counts`` by condition.
    """
    cells = {(r["condition"], r["metric"]): interval_of(r) for r in summary.to_dict("records")}
    kept = counts.set_index("condition")
    present = list(dict.fromkeys(summary["condition"]))
    order = [*(c for c in present if c == "base"), *CONDITIONS]
    order += [c for c in present if c not in order]
    rows = []
    for condition in order:
        row: dict[str, Cell] = {"condition": display(condition)}
        row |= {metric: cells.get((condition, metric)) for metric in _ACQUIRED}
        if condition in kept.index:
            row |= {name: int(kept.loc[condition, name]) for name in kept.columns}
        method = display(condition) if condition != "oo" else "OO"
        for key, (topic, metric, _) in _S3_ACQUIRED.items():
            row[key] = published_cell(PAPER, "inline", topic=topic, metric=metric, method=method)
        rows.append(row)
    titles = ("Cov", "Cov-Dep", "AM", "no evidence", "all evidence", "searches")
    columns = [Column("condition", "condition")]
    columns += [Column(m, t, 3, NOT_TRAINED) for m, t in zip(_ACQUIRED, titles)]
    columns += [Column(name, name.replace("_", " "), absent=NOT_TRAINED) for name in kept.columns]
    columns += [Column(k, k, d, "not published") for k, (_, _, d) in _S3_ACQUIRED.items()]
    caption = (
        f"Evidence acquisition, {decoding} decoding, described roots: mean [95 % bootstrap "
        "interval] (questions, x seeds). Rollouts that are lost, cut off or without an answer "
        "stay in every denominator and are counted; 'cut' rollouts have an observation that was "
        f"not seen in full, which covers nothing. {setting_note(setting)} For coverage S3 uses "
        "1,200 development questions of its own construction."
    )
    return Table(f"s3_evidence_{decoding}", caption, columns, rows)
