"""Audits of Search-G1's labels and credit (S1 Tables A6, A16, A17, A22), ours beside theirs."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ..errors import WorkbenchError
from ..evaluation.search_g1_credit import credit_usefulness, reliability
from ..evaluation.search_g1_study import CREDIT_CONTROLS, FULL
from ..inference.bootstrap import BootstrapConfig, Interval
from ..methods.registry import load_condition
from ..methods.shaping import Shaping
from .comparisons import Setting
from .published import Published
from .search_g1_cells import (
    MODELS,
    NOT_ASKED,
    NOT_IN_S1,
    NOT_TRAINED,
    NQ,
    WIKI,
    cells,
    label,
    printed,
    setting_note,
    shown,
    their_columns,
    theirs,
    untrained_note,
)
from .study import interval_of
from .tables import Cell, Column, Table

_SMALL = {"3B": MODELS["3B"]}
_QUESTIONS = "[95 % bootstrap interval over questions, all rollouts of a question together]"
# Rows of readouts.tables.control_table.
RELIANCE, MATCHED, SHUFFLED = (
    "D, reliance", "D, matched on count and length", "D on shuffled labels",
)  # fmt: skip
# Row of notebook 06's controls -> S1's; its strongest log-prob control is chosen by AUC.
_CONTROLS = {
    "search count": "Search count only",
    "response length": "Response length only",
    "retrieved tokens": "Retrieved-token count only",
    "answer-evidence overlap": "Answer–evidence lexical overlap",
    SHUFFLED: "Label-shuffled representation",
    RELIANCE: "Full answer-commit representation",
    MATCHED: "Matched on search count and length",
}
_LOGIT = "Strongest output/logit baseline"
_REPEATS = (MATCHED, SHUFFLED)
_CONSTRUCTIONS = {"paired_greedy": "Paired-greedy", "paired_sampling": "CRN paired sampling"}


def table_a6(
    labels: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Table A6: deleting the reasoning as well (strict) beside deleting evidence alone.

    ``labels``: condition, training_seed, item_id, construction ("deletion", "strict"), changed.
    """
    found = reliability(labels, ["strict"], None, config)
    cell = cells(found, "condition", "metric")
    titles = {
        "agreement": "agreement", "kappa": "κ", "reference_rate": "reliance rate",
        "rate": "strict reliance rate",
    }  # fmt: skip
    printed_as = dict(
        zip(titles, ("Agreement", "kappa", "Reliance Rate", "Strict Reliance Rate"))
    )  # fmt: skip
    rows: list[dict[str, Cell]] = []
    for condition in dict.fromkeys(labels["condition"]):
        row: dict[str, Cell] = {"policy": label(condition)}
        row |= {m: _measured(cell(condition, m)) for m in titles}
        rows.append(row | {"rollouts": _rollouts(found, condition)})
    for dataset in (NQ, "HotpotQA"):
        rows.append({"policy": f"S1: {dataset}", **theirs("A6", printed_as, dataset=dataset)})
    absent = "not among our questions"
    columns = [Column("policy", "policy")]
    columns += [Column(m, title, absent=absent) for m, title in titles.items()]
    columns.append(Column("rollouts", "rollouts", absent=absent))
    caption = (
        "S1 Table A6: does the answer change without evidence (reliance), and without evidence "
        f"and reasoning (strict)? Valid searched greedy rollouts: value {_QUESTIONS} (questions); "
        f"κ is Cohen's. {setting_note(setting, 'NQ and HotpotQA')}"
    )
    columns += their_columns(printed_as, absent=NOT_IN_S1)
    return Table("s1_table_a6", caption, columns, rows)


def table_a16(
    labels: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Table A16: the reliance label against two that decode both sides alike.

    ``labels``: as for A6 with "paired_greedy" and "paired_sampling".  Those of sampled rollouts
    also hold group, sample and correct; then signs of advantages are compared.
    """
    sampled = "group" in labels.columns
    rollouts = (
        "Valid searched sampled rollouts"
        if sampled
        else "Valid searched greedy rollouts, whose own answer paired-greedy decodes again, so "
        "that its agreement says nothing of decoding noise"
    )
    shaping = Shaping(**load_condition(FULL).settings["shaping"])
    found = reliability(labels, list(_CONSTRUCTIONS), shaping, config)
    words = {"sign_flips": "not computed: one rollout a question is no group"}
    cell = cells(found, "condition", "construction", "metric", words=words)
    titles = {
        "agreement": "agreement", "kappa": "κ", "rate_delta": "positive-rate Δ",
        "sign_flips": "advantage-sign flips",
    }  # fmt: skip
    printed_as = dict(zip(titles, ("Agree.", "kappa", "Pos.-rate delta", "Adv.-sign flip")))
    rows = []
    for condition in dict.fromkeys([*labels["condition"], FULL]):
        for construction, printed_name in _CONSTRUCTIONS.items():
            row: dict[str, Cell] = {"policy": label(condition), "construction": printed_name}
            row |= {m: _measured(cell(condition, construction, m)) for m in titles}
            row["rollouts"] = _rollouts(found, condition, construction)
            if condition == FULL:
                row |= theirs("A16", printed_as, _SMALL, construction=printed_name)
            rows.append(row)
    columns = [Column("policy", "policy"), Column("construction", "construction")]
    columns += [Column(m, title) for m, title in titles.items()]
    columns.append(Column("rollouts", "rollouts"))
    columns += their_columns(printed_as, 2, _SMALL, NOT_IN_S1)
    caption = (
        "S1 Table A16: labels by evidence deletion against labels whose answers with and without "
        f"evidence are decoded alike, greedily or with common random numbers (CRN). {rollouts}: "
        f"value {_QUESTIONS} (questions); sign flips have no interval. S1's rollouts are sampled, "
        f"at checkpoint 50. {setting_note(setting, NQ, ['3B'])}"
    )
    return Table("s1_table_a16", caption, columns, rows)


def table_a17(controls: pd.DataFrame, setting: Setting, gaps: pd.DataFrame | None = None) -> Table:
    """Table A17: D beside what it could have taken for reliance.

    ``controls``: ``controls.csv`` of the calibration run: predictor, value (AUC), low, high, n;
    ``gaps``: of ``evaluation.shortcut_gaps``, where the rollouts are at hand.
    """
    from ..readouts.controls import LOGIT_CONTROLS

    records = {r["predictor"]: r for r in controls.to_dict("records")}
    if RELIANCE not in records:
        raise WorkbenchError(
            f"no row {RELIANCE!r} among {list(records)}", fix="give the calibration's controls.csv"
        )
    own = records[RELIANCE]
    paired = {} if gaps is None else {r["predictor"]: r for r in gaps.to_dict("records")}
    logits = [name for name in LOGIT_CONTROLS if name in records]
    best = max(logits, key=lambda name: records[name]["value"], default=None)
    named = _CONTROLS | ({best: _LOGIT} if best else {})
    singles = [n for n in records if n not in (RELIANCE, *_REPEATS)]
    rows: list[dict[str, Cell]] = []
    for name in (*singles, SHUFFLED, RELIANCE, MATCHED):
        record = records.get(name)
        title = f"{name} (strongest log-prob control)" if name == best else name
        row: dict[str, Cell] = {"predictor": title, "ours": "too few rollouts could be matched"}
        if record is not None:
            row["ours"] = interval_of(record)
            row["chance"] = _against_chance(record)
        if name == RELIANCE:
            row |= {"minus": "reference", "apart": "reference"}
        elif name in _REPEATS:
            row |= dict.fromkeys(("minus", "apart"), "D itself, on other rows or labels")
        else:
            gap = interval_of(paired[name]) if name in paired else own["value"] - record["value"]
            row |= {"minus": gap, "apart": _apart(own, record)}
        if name in named:
            for dataset in (NQ, WIKI):
                cell = theirs("A17", {"": "AUC"}, _SMALL, dataset=dataset, predictor=named[name])
                row[f"S1 {dataset}"] = next(iter(cell.values()))
        rows.append(row)
    columns = [
        Column("predictor", "predictor"), Column("ours", "AUC"),
        Column("chance", "against 0.5"), Column("minus", "D minus it"),
        Column("apart", "the two intervals"),
        *(Column(f"S1 {d}", f"S1 3B: {d}", 3, NOT_IN_S1) for d in (NQ, WIKI)),
    ]  # fmt: skip
    difference = (
        "paired, both AUCs from the same draws of questions"
        if paired
        else "a difference of two points without an interval, because the saved table holds no "
        "score of single rollouts"
    )
    caption = (
        "S1 Table A17: held-out AUC [95 % bootstrap interval over questions] (questions) of the "
        "reliance readout D and of single numbers fitted on the same group split, on the base "
        "policy's calibration rollouts. The strongest log-prob control is the one with the "
        f"highest AUC on these very rows, which favours it. 'D minus it' is {difference}. "
        "Shuffled labels: mean of ten shuffles, interval over them. "
        "Intervals of the same rollouts that do not overlap show a difference; overlapping ones "
        "show neither a difference nor its absence. "
        f"{setting_note(setting, f'{NQ} and {WIKI}', ['3B'])}"
    )
    return Table("s1_table_a17", caption, columns, rows)


def table_a22(
    groups: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Table A22: does the credit go to answers that the evidence supports?

    ``groups``: sampled rollouts with cov, all_evidence and ``reward`` (what the training of the
    row's own condition would pay for it).
    """
    deltas = {c: float(load_condition(c).settings["delta"]) for c in CREDIT_CONTROLS}
    found = credit_usefulness(groups, deltas, config)
    still = "undefined: no variation"
    words = dict.fromkeys(("pearson", "spearman", "within"), still)
    cell = cells(found, "condition", "metric", words=words)
    titles = {
        "em": "EM", "support": "annotated support", "pearson": "advantage-support r (Pearson)",
        "spearman": "ρ (Spearman)", "within": "r within questions",
    }  # fmt: skip
    names = dict(
        zip(CREDIT_CONTROLS, ("Score-permutation control", "Cost-only", "Search-G1"))
    )  # fmt: skip
    rows = []
    for condition, theirs_name in names.items():
        row: dict[str, Cell] = {"condition": label(condition)}
        row |= {metric: cell(condition, metric) for metric in titles}
        own = found[(found["condition"] == condition) & (found["metric"] == "support")]
        row["answers"] = str(int(own["rollouts"].iloc[0])) if len(own) else NOT_TRAINED
        rows.append(row | _their_a22(theirs_name))
    columns = [Column("condition", "reward"), *(Column(m, t) for m, t in titles.items())]
    columns.append(Column("answers", "correct searched answers"))
    columns += [Column("S1 em", "S1 3B: EM")]
    columns += [
        Column("S1 support", "S1 3B: human support"),
        Column("S1 r", "S1 3B: advantage-support r"),
    ]
    caption = (
        f"S1 Table A22, sampled rollouts of each policy: {shown(found)}; correlations resample "
        "questions. Advantages are of the condition's own reward within the question's rollouts. "
        "Support and correlations are over correct searched answers. S1's support is human "
        "annotation (180 answers); ours is read off the question graph: 1 if all its facts were "
        "retrieved, 0.5 if some, 0 if none, so it says what was there to read and not what the "
        "answer rests on. 'Within questions' takes the mean of the question's own correct "
        f"searched answers from both. {setting_note(setting, f'{WIKI}, 600 questions', ['3B'])} "
        f"{untrained_note(CREDIT_CONTROLS, found['condition'])}"
    )
    return Table("s1_table_a22", caption.strip(), columns, rows)


def _measured(cell: Cell) -> Cell:
    return "not labelled" if cell in (NOT_TRAINED, NOT_ASKED) else cell


def _rollouts(found: pd.DataFrame, condition: str, construction: str | None = None) -> str:
    own = found[found["condition"] == condition]
    if construction is not None:
        own = own[own["construction"] == construction]
    if own.empty:
        return "0"
    seeds = int(own["seeds"].max())
    text = str(int(own["rollouts"].max()))
    return f"{text} of {seeds} seeds" if seeds > 1 else text


def _against_chance(record: Mapping) -> str:
    if record["low"] > 0.5:
        return "above"
    return "below" if record["high"] < 0.5 else "not told apart"


def _apart(own: Mapping, record: Mapping) -> str:
    if own["low"] > record["high"] or own["high"] < record["low"]:
        return "do not overlap"
    return "overlap"


def _their_a22(variant: str) -> dict[str, Published | Interval | str | None]:
    row = {"S1 em": next(iter(theirs("A22", {"": "EM"}, _SMALL, variant=variant).values()))}
    for key, metric in (("S1 support", "Human support"), ("S1 r", "Adv.–support corr.")):
        record = printed("A22", variant=variant, metric=metric).iloc[0]
        row[key] = f"{record['value']} [{record['ci_low']}, {record['ci_high']}]"
    return row
