"""Do the published numbers of S3 agree with one another, where arithmetic allows to check?

Each check computes a printed number from other printed ones.  What a rounded cell leaves open
is the tolerance: half a unit of the last printed digit for each cell that enters, weighted as
it enters.  A check that holds says that we read and copied the tables rightly, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from .numbers import decimal
from .published import number, published
from .tables import Column, Table

_PAPER = "retrieval_credit"
_HALF = 0.005  # of two printed decimals
MULTI_HOP_SETS = ("2WikiMultiHopQA", "HotpotQA", "MuSiQue", "Bamboogle")
SINGLE_HOP_SETS = ("NQ", "TriviaQA", "PopQA")


@dataclass(frozen=True, slots=True)
class Check:
    """``printed`` against ``computed``; ``rule`` says how it was computed, ``where`` both stand."""

    where: str
    rule: str
    printed: float
    computed: float
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        return abs(self.printed - self.computed) <= self.tolerance + 1e-9


def retrieval_credit_checks() -> list[Check]:
    """All checks on S3: mixture, graphs, pool, overlap, Tables 1, 3, 8 and 9, differences."""
    return [*_mixture(), *_graphs(), *_pool(), *_averages(), *_left_out(), *_gaps(), *_rates()]


def checks_table(checks: list[Check], name: str = "s3_published_arithmetic") -> Table:
    """The checks with their outcome."""
    rows = [
        {
            "where": check.where,
            "rule": check.rule,
            "printed": _number(check.printed),
            "computed": _number(check.computed),
            "tolerance": _number(check.tolerance, 4),
            "holds": "yes" if check.holds else "NO",
        }
        for check in checks
    ]
    caption = (
        f"Arithmetic of S3's own published numbers: {sum(c.holds for c in checks)} of "
        f"{len(checks)} checks hold. The tolerance is what rounding leaves open."
    )
    columns = [
        Column("where", "where"), Column("rule", "computed from"), Column("printed", "printed"),
        Column("computed", "computed"), Column("tolerance", "tolerance"), Column("holds", "holds"),
    ]  # fmt: skip
    return Table(name, caption, columns, rows)


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.0f}" if float(value).is_integer() else decimal(value, digits)


def _cells(table: str, **keys: str) -> pd.DataFrame:
    frame = published(_PAPER, table)
    for column, wanted in keys.items():
        frame = frame[frame[column] == wanted]
    return frame.assign(number=frame["value"].map(number))


def _cell(table: str, **keys: str) -> float:
    (value,) = _cells(table, **keys)["number"]
    return value


def _inline(topic: str, metric: str, **keys: str) -> float:
    return _cell("inline", topic=topic, metric=metric, **keys)


def _mixture() -> list[Check]:
    checks = []
    for split, total in (("Train", "training questions"), ("Dev", "development questions")):
        counts = _cells("4", split=split)
        parts = counts[counts["category"] != "Total"]["number"].sum()
        rule = f"sum of Table 4, {split}"
        checks.append(Check("Table 4", rule, _cell("4", split=split, category="Total"), parts))
        checks.append(Check("§2.1", rule, _inline("mixture", total), parts))
    train = _cells("4", split="Train")
    for metric, pattern in (
        ("one-hop", "^1-hop"), ("two-hop", "^2-hop"), ("three-hop", "^3-hop"),
        ("four-hop", "^4-hop"), ("single-evidence", "single$"), ("conjunctive", "conjunctive$"),
        ("chain", "chain$"), ("wide", "wide$"), ("fan-in", "fan-in$"),
    ):  # fmt: skip
        parts = train[train["category"].str.contains(pattern)]["number"].sum()
        printed = _inline("mixture", metric)
        checks.append(Check("§2.1", f"{metric} rows of Table 4, Train", printed, parts))
    return checks


def _graphs() -> list[Check]:
    counts = _cells("4")
    with_join = counts[counts["category"].str.contains("conjunctive|wide|fan-in")]["number"].sum()
    nodes, conjunctive = (
        _inline("grounding", "graph nodes"),
        _inline("grounding", "conjunctive nodes"),
    )
    records = _inline("grounding", "annotation records")
    return [
        Check(
            "Table 5", "one conjunctive node in each conjunctive, wide and fan-in question of "
            "Table 4", conjunctive, with_join,
        ),
        Check(
            "Table 5", "nodes + conjunctive nodes: two passages for a conjunctive node, one for "
            "any other", records, nodes + conjunctive,
        ),
        Check(
            "Table 5", "records of Table 4, train + dev",
            _cell("5", category="Selected train + development records"),
            counts[counts["category"] == "Total"]["number"].sum(),
        ),
    ]  # fmt: skip


def _pool() -> list[Check]:
    lost = ("failed chunk grounding", "graph shortcuts", "no requested category")
    left = _inline("source pool", "source questions") - sum(_inline("source pool", m) for m in lost)
    seen = [
        _inline("overlap", m, split="dev")
        for m in ("all gold evidence seen in training", "partial evidence overlap")
    ]
    unseen = _inline("overlap", "fully unseen gold evidence")
    dev = _inline("mixture", "development questions")
    return [
        Check("App. B", "source questions - exclusions", _inline("source pool", "eligible"), left),
        Check("App. B", "evidence seen + partial + unseen", dev, sum(seen) + unseen),
        Check(
            "App. A.5", "evidence seen + partial", _inline("overlap", "some shared evidence"),
            sum(seen),
        ),
    ]  # fmt: skip


def _averages() -> list[Check]:
    checks = []
    groups = {"Multi-hop": MULTI_HOP_SETS, "Single-hop": SINGLE_HOP_SETS}
    groups["All"] = (*MULTI_HOP_SETS, *SINGLE_HOP_SETS)
    table = _cells("1").assign(weight=lambda f: f["n"].map(number))
    for method, rows in table.groupby("method", sort=False):
        for group, sets in groups.items():
            part = rows[rows["dataset"].isin(sets)]
            mean = (part["number"] * part["weight"]).sum() / part["weight"].sum()
            printed = _cell("8", method=method, group=group)
            rule = f"micro average of Table 1, {method}"
            checks.append(Check(f"Table 8, {group}", rule, printed, mean, 2 * _HALF))
    for method, rows in _cells("8").groupby("method", sort=False):
        value = rows.set_index("group")["number"]
        weight = rows.set_index("group")["n"].map(number)
        parts = ["Multi-hop", "Single-hop"]
        mean = (value[parts] * weight[parts]).sum() / weight[parts].sum()
        rule = f"weighted groups of Table 8, {method}"
        checks.append(Check("Table 8, All", rule, value["All"], mean, 2 * _HALF))
    return checks


def _left_out() -> list[Check]:
    checks = []
    table = _cells("1").assign(weight=lambda f: f["n"].map(number))
    table = table[table["dataset"] != "Avg"]
    for row in _cells("9").to_dict("records"):
        ours, reference = row["contrast"].split(" - ")
        rest = table[table["dataset"] != row["omitted_dataset"]]
        means = {}
        for method in (ours, reference):
            part = rest[rest["method"] == method]
            means[method] = (part["number"] * part["weight"]).sum() / part["weight"].sum()
        rule = f"Table 1 without {row['omitted_dataset']}, {row['contrast']}"
        gap = means[ours] - means[reference]
        checks.append(Check("Table 9", rule, row["number"], gap, 3 * _HALF))
    return checks


def _gaps() -> list[Check]:
    def gap(ours: str, reference: str, group: str = "All") -> float:
        return _cell("8", method=ours, group=group) - _cell("8", method=reference, group=group)

    pairs = [
        ("average F1 gain over OO", "gain", "Cov-local", ("Cov-local", "OO", "All")),
        ("multi-hop F1 gain over OO", "gain", "Cov-local", ("Cov-local", "OO", "Multi-hop")),
    ]
    for signal in ("Cov", "AM"):
        local, moved, flat = (f"{signal}-{way}" for way in ("local", "permute", "flat-only"))
        pairs += [
            ("aligned minus permuted average F1", "alignment", signal, (local, moved, "All")),
            ("aligned minus permuted, multi-hop", "alignment", signal, (local, moved, "Multi-hop")),
            (
                "aligned minus permuted, single-hop", "alignment", signal,
                (local, moved, "Single-hop"),
            ),
            ("all minus no-flat", "outcome groups", signal, (local, f"{signal}-no-flat", "All")),
            ("all minus flat-only", "outcome groups", signal, (local, flat, "All")),
        ]  # fmt: skip
    return [
        Check(
            f"text, {method}: {metric}", f"Table 8, {ours} - {reference}, {group}",
            _inline(topic, metric, method=method), gap(ours, reference, group), 3 * _HALF,
        )
        for metric, topic, method, (ours, reference, group) in pairs
    ]  # fmt: skip


def _rates() -> list[Check]:
    """A printed percentage of n must be that of a whole number."""
    checks = []
    for row in _cells("3").to_dict("records"):
        n = number(row["n"])
        whole = 100 * round(row["number"] * n / 100) / n
        where = f"Table 3, alpha {row['alpha']}, {row['signal']}"
        rule = f"nearest whole count of {n:.0f}, {row['metric'].lower()}"
        checks.append(Check(where, rule, row["number"], whole, _HALF))
    return checks
