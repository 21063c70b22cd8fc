"""What policies know, what answers cost, and behaviour at the boundary (S1 A3-A5, A7, A8, A15)."""

from __future__ import annotations

import pandas as pd

from ..evaluation.boundary import known_answers, unknown_answers
from ..evaluation.contrasts import ALL
from ..evaluation.grounding import cost_controlled
from ..evaluation.search_g1_study import (
    MAIN,
    SEED,
    closed_book_shares,
    greedy_rows,
    of_conditions,
    with_category,
)
from ..inference.bootstrap import BootstrapConfig
from ..inference.paired import mean_intervals
from ..questions.categories import CHAIN, SINGLE
from .comparisons import Setting
from .search_g1_cells import (
    METHODS,
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

_NONE_KNOWN = "no question known"
_SMALL = {"3B": MODELS["3B"]}


def table_a3(grounded: pd.DataFrame, setting: Setting, name: str = "s1_table_a3") -> Table:
    """Table A3: what the base policy answers closed-book, by stratum; S1's data sets below.

    ``grounded``: any rows with item_id, stratum, base_closed_exact and base_closed_sufficient.
    """
    found = closed_book_shares(grounded)
    rows: list[dict[str, Cell]] = []
    for stratum, part in found.groupby("stratum", sort=False):
        record = {r["label"]: r for r in part.to_dict("records")}
        row: dict[str, Cell] = {"group": stratum, "N": str(int(record["exact"]["n"]))}
        for key in ("exact", "sufficient"):
            count, n = int(record[key]["count"]), int(record[key]["n"])
            row |= {key: _counted(count, n), f"{key} share": interval_of(record[key])}
            row[f"not {key}"] = _counted(n - count, n)
        both = record["disagree"]
        rows.append(row | {"disagree": _counted(int(both["count"]), int(both["n"]))})
    rows += [_their_a3(dataset) for dataset in (NQ, "HotpotQA", WIKI, "MuSiQue")]
    kinds = {
        "N": "N", "exact": "exact CB-correct", "not exact": "exact CB-wrong",
        "sufficient": "inclusion sufficient", "not sufficient": "inclusion necessary",
        "disagree": "exact and inclusion disagree",
    }  # fmt: skip
    absent = "not among our questions"
    columns = [Column("group", "questions")]
    for key, title in kinds.items():
        columns.append(Column(key, title, absent=absent))
        if f"{key} share" in rows[0]:
            columns.append(Column(f"{key} share", f"{title}, share", absent=absent, counted=False))
    columns += [Column(f"S1 {k}", f"S1: {title}", absent=NOT_IN_S1) for k, title in kinds.items()]
    caption = (
        "S1 Table A3: closed-book labels of the base policy on the test questions, count (share) "
        "and share [95 % Wilson interval over questions], N questions. Exact: the answer equals "
        "an accepted one; inclusion: it contains one, which is the label of Search-G1. "
        f"{setting_note(setting, 'its four data sets, labelled with the 3B model', ['3B'])}"
    )
    return Table(name, caption, columns, rows)


def table_a4(
    evaluated: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Tables A4 and A5: what an answer costs; ours once, S1's two models beside it.

    ``evaluated``: rows of ``policies.ask``, of which the greedy ones count.
    """
    titles = {
        "em": "EM", "searches": "Search/Q", "generated_tokens": "generated tokens/Q",
        "observation_tokens": "observation tokens/Q",
    }  # fmt: skip
    rows_of = with_category(of_conditions(greedy_rows(evaluated), list(METHODS)), SINGLE)
    found = mean_intervals(rows_of, list(titles), ["condition", "questions"], SEED, config)
    cell = cells(found, "condition", "questions", "metric")
    printed_as = dict(zip(titles, ("EM", "Search/Q", "Gen. tok/Q", "Obs. tok/Q")))
    rows = []
    for condition, method in METHODS.items():
        for questions in (ALL, SINGLE):
            row: dict[str, Cell] = {"condition": label(condition), "questions": questions}
            row |= {metric: cell(condition, questions, metric) for metric in titles}
            if questions == SINGLE:
                for (size, model), table in zip(MODELS.items(), ("A4", "A5")):
                    row |= theirs(table, printed_as, {size: model}, method=method)
            rows.append(row)
    digits = {metric: 1 if metric.endswith("tokens") else 3 for metric in titles}
    columns = [Column("condition", "condition"), Column("questions", "questions")]
    columns += [Column(m, title, digits[m]) for m, title in titles.items()]
    for size in MODELS:
        for metric, title in titles.items():
            columns += their_columns({metric: title}, digits[metric], [size], "NQ only")
    caption = (
        f"S1 Tables A4 (3B) and A5 (7B), greedy decoding: {shown(found)}. Generated tokens are "
        "all that the policy wrote, queries and tags included; observation tokens are the "
        "retrieved text it was shown. Tokens of ours and of S1's tokenizer are not the same. "
        f"{setting_note(setting, NQ)} {untrained_note(METHODS, found['condition'])}"
    )
    return Table("s1_tables_a4_a5", caption.strip(), columns, rows)


def table_a7(
    grounded: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Table A7: what a policy does with questions that it can answer without retrieval.

    ``grounded``: greedy rows of ``policies.ask`` with own_closed_exact, of that very policy.
    """
    titles = {
        "cb_share": "share known", "cb_em": "CB-EM", "cb_searches": "CB-S/Q",
        "all_searches": "All-S/Q", "over_search": "Over-S",
    }  # fmt: skip
    rows_of = of_conditions(grounded, MAIN)
    found = known_answers(rows_of, ["condition"], SEED, config, "own_closed_exact")
    words = dict.fromkeys(("cb_em", "cb_searches"), _NONE_KNOWN)
    cell = cells(found, "condition", "metric", words=words)
    printed_as = {
        "cb_em": "CB-EM", "cb_searches": "CB-S/Q", "all_searches": "All-S/Q",
        "over_search": "Over-S",
    }  # fmt: skip
    asked = set(rows_of["condition"])

    def told(condition: str, metric: str) -> Cell:
        own = cell(condition, metric)
        lost = condition in asked and own in (NOT_TRAINED, NOT_ASKED)
        return "no valid rollout" if lost else own

    rows = [
        {
            "condition": label(condition),
            **{metric: told(condition, metric) for metric in titles},
            **theirs("A7", printed_as, method=METHODS[condition]),
        }
        for condition in MAIN
    ]
    columns = [Column("condition", "condition"), *(Column(m, t) for m, t in titles.items())]
    caption = (
        f"S1 Table A7, greedy decoding, all questions: {shown(found)}. CB: what the policy itself "
        "answers exactly with its retrieval-disabled prompt, so every policy has a set of its own; "
        "Over-S: share of rollouts with more than one search. Rollouts without a valid answer do "
        f"not count. {setting_note(setting, 'a slice of 1,000 HotpotQA questions')} "
        f"{untrained_note(MAIN, asked)}"
    )
    return Table("s1_table_a7", caption.strip(), [*columns, *their_columns(printed_as)], rows)


def table_a8(
    grounded: pd.DataFrame,
    groups: pd.DataFrame,
    setting: Setting,
    config: BootstrapConfig | None = None,
    samples: int = 3,
) -> Table:
    """Table A8: retrieval where the base policy's memory fails, the same questions for all.

    ``grounded``: greedy rows of ``policies.ask`` with base_closed_exact; ``groups``: sampled
    rollouts, ``samples`` or more per question, for Any@3.  Questions of ``groups`` without a
    closed-book label do not count.
    """
    known = grounded.drop_duplicates("item_id").set_index("item_id")["base_closed_exact"]
    sampled = groups.assign(base_closed_exact=groups["item_id"].map(known)).dropna(
        subset=["base_closed_exact"]
    )
    tables = []
    for frame, count, any_of in ((grounded, 1, False), (sampled, samples, True)):
        rows_of = with_category(of_conditions(frame, MAIN))
        keys = ["condition", "questions"]
        if len(rows_of) or not any_of:  # an empty frame of greedy rows is refused
            found = unknown_answers(rows_of, keys, SEED, config, "base_closed_exact", count)
            tables.append(found[found["metric"].str.startswith("any") == any_of])
    found = pd.concat(tables, ignore_index=True)
    any_at = f"any_at_{samples}"
    printed_as = {"cbw_em": "CBw-EM", any_at: "Any@3", "searches": "S/Q", "over_search": "Over-S"}
    titles = printed_as | {any_at: f"Any@{samples}"}
    cell = cells(found, "condition", "questions", "metric")
    asked, drawn = set(grounded["condition"]), set(sampled["condition"])
    rows = []
    for condition in MAIN:
        for questions in (ALL, CHAIN):
            row: dict[str, Cell] = {"condition": label(condition), "questions": questions}
            for metric in titles:
                own = cell(condition, questions, metric)
                if isinstance(own, str) and condition in asked:
                    lost = metric == any_at and condition not in drawn
                    own = "not sampled" if lost else "no such question"
                row[metric] = own
            if questions == CHAIN:
                row |= theirs("A8", printed_as, method=METHODS[condition])
            rows.append(row)
    columns = [Column("condition", "condition"), Column("questions", "questions")]
    columns += [Column(metric, title) for metric, title in titles.items()]
    caption = (
        "S1 Table A8: questions that the base policy does not answer exactly closed-book. EM, "
        f"searches and Over-S (share with more than one search) of greedy rollouts, Any@{samples} "
        f"the share of questions that one of {samples} sampled rollouts answers: {shown(found)}. "
        "Rollouts without a valid answer do not count. "
        f"{setting_note(setting, WIKI)} {untrained_note(MAIN, asked)}"
    )
    columns += their_columns(printed_as, absent="2Wiki only")
    return Table("s1_table_a8", caption.strip(), columns, rows)


def table_a15(
    grounded: pd.DataFrame, setting: Setting, config: BootstrapConfig | None = None
) -> Table:
    """Table A15: accuracy beside what it cost in searches; TC of searched answers alone.

    ``grounded``: greedy rows of ``policies.ask`` through ``evaluation.grounding.grounded``.
    """
    titles = {
        "em": "EM", "tc_searched": "TC (searched only)", "searches": "Search/Q",
        "em_per_search": "EM per search",
    }  # fmt: skip
    rows_of = with_category(of_conditions(grounded, MAIN))
    found = cost_controlled(rows_of, ["condition", "questions"], SEED, config)
    cell = cells(found, "condition", "questions", "metric")
    printed_as = dict(zip(titles, ("EM", "TC", "Search/Q", "EM per marker")))
    rows = []
    for condition in MAIN:
        for questions in (ALL, CHAIN):
            row: dict[str, Cell] = {"condition": label(condition), "questions": questions}
            row |= {metric: cell(condition, questions, metric) for metric in titles}
            if questions == CHAIN:
                row |= theirs("A15", printed_as, _SMALL, method=METHODS[condition])
            rows.append(row)
    columns = [Column("condition", "condition"), Column("questions", "questions")]
    columns += [Column(metric, title) for metric, title in titles.items()]
    columns += their_columns(printed_as, models=_SMALL, absent="2Wiki only")
    caption = (
        f"S1 Table A15, greedy decoding: {shown(found)}. TC over classified correct searched "
        "answers only, without direct ones; EM per search is all EM over all searches, of direct "
        "answers too. "
        f"{setting_note(setting, '1,024 questions of ' + WIKI, ['3B'])} "
        f"{untrained_note(MAIN, found['condition'])}"
    )
    return Table("s1_table_a15", caption.strip(), columns, rows)


def _counted(count: int, n: int) -> str:
    return f"{count} ({100 * count / n:.1f} %)"


def _their_a3(dataset: str) -> dict[str, Cell]:
    cells_of = {
        (r["category"], r["metric"]): r["value"]
        for r in printed("A3", dataset=dataset, model=MODELS["3B"]).to_dict("records")
    }
    row: dict[str, Cell] = {"group": f"S1: {dataset}", "S1 N": cells_of["N", "count"]}
    for key, category in (
        ("exact", "Exact CB-correct"), ("not exact", "Exact CB-wrong"),
        ("sufficient", "Inclusion sufficient"), ("not sufficient", "Inclusion necessary"),
    ):  # fmt: skip
        count, share = (cells_of[category, m] for m in ("count", "percentage"))
        row[f"S1 {key}"] = f"{count} ({share} %)"
    differing = {
        r["metric"]: r["value"]
        for r in printed("inline", topic="necessity label", dataset=dataset).to_dict("records")
    }
    if differing:
        count, share = (
            differing[f"exact vs inclusion disagreement {m}"] for m in ("count", "rate")
        )
        row["S1 disagree"] = f"{count} ({share} %)"
    return row
