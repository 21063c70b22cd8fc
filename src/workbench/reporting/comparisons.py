"""Our results beside the published ones, with what differs in setting.

The embedded profiles are far from the papers' models and corpora, so a published value stands
beside ours for orientation, and the row says what differs.  The nearest published data set is
NQ for one-hop questions and 2WikiMultiHopQA for two-hop chains.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ..inference.bootstrap import Interval
from .published import PAPERS, Published, published_cell
from .tables import NOT_PUBLISHED, Column, Table

# Condition -> (paper, method) of Table 1 of that paper.  Untrained: "closed_book" answers
# without retrieval, "base" is the same policy with its search tool.
PUBLISHED_METHODS = {
    "closed_book": ("search_g1", "Base"),
    "base": ("search_g1", "Prompted Search"),
    "search_r1": ("search_g1", "Search-R1"),
    "oo": ("retrieval_credit", "OO"),
    "cov_scalar": ("retrieval_credit", "Cov-scalar"),
    "cov_dep_scalar": ("retrieval_credit", "Cov-Dep-scalar"),
    "am_scalar": ("retrieval_credit", "AM-scalar"),
    "cov_local": ("retrieval_credit", "Cov-local"),
    "cov_dep_local": ("retrieval_credit", "Cov-Dep-local"),
    "am_local": ("retrieval_credit", "AM-local"),
    "am_permute": ("retrieval_credit", "AM-permute"),
    "cov_permute": ("retrieval_credit", "Cov-permute"),
    "cov_no_flat": ("retrieval_credit", "Cov-no-flat"),
    "cov_flat_only": ("retrieval_credit", "Cov-flat-only"),
    "am_no_flat": ("retrieval_credit", "AM-no-flat"),
    "am_flat_only": ("retrieval_credit", "AM-flat-only"),
}
PUBLISHED_DATASETS = {"1-hop, single": "NQ", "2-hop, chain": "2WikiMultiHopQA"}
PUBLISHED_METRICS = {"em": "EM", "f1": "F1", "searches": "Search/Q"}
PUBLISHED_MODELS = {
    "search_g1": "Qwen2.5-3B-Instruct",
    "retrieval_credit": "Qwen3-4B-Instruct-2507",
    "rgv": "Tongyi-DeepResearch",
}
PUBLISHED_RULES = {
    "single": "Single Avg.",
    "majority": "Simple Maj.",
    "deepconf": "DeepConf",
    "rgv": "RGV",
    "oracle": "Oracle",
}
METRIC_NAMES = {
    "em": "EM",
    "f1": "F1",
    "inclusion": "inclusion",
    "searches": "searches per question",
    "searched": "searched share",
    "direct": "direct share",
    "valid": "valid share",
    "truncated": "truncated share",
    "generated_tokens": "generated tokens",
    "observation_tokens": "observation tokens",
    "cov": "Cov",
    "cov_dep": "Cov-Dep",
    "am": "answer match",
    "no_evidence": "share without evidence",
    "all_evidence": "share with all evidence",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a result was obtained with; free text, short enough for a table cell."""

    model: str
    corpus: str
    budget: str


def setting_difference(ours: Setting, theirs: Setting) -> str:
    """``model: B; corpus: ...``, theirs in the fields that differ from ours; else "none"."""
    parts = [
        f"{name}: {other}"
        for name in ("model", "corpus", "budget")
        if (other := getattr(theirs, name)) != getattr(ours, name)
    ]
    return "; ".join(parts) or "none"


def paper_setting(paper: str, cell: Published) -> Setting:
    """The setting in which ``cell`` was measured."""
    about = PAPERS[paper]
    return Setting(cell.model, about.corpus, about.budget)


def conditions_table(summary: pd.DataFrame, setting: Setting, name: str = "conditions") -> Table:
    """EM, F1, searches, ... of every condition and question category, beside the papers.

    Parameters
    ----------
    summary : condition, category, metric, value, low, high, n, seeds, as ``summarise`` and
        ``paired.mean_intervals`` give them; one row each.
    """
    rows = []
    for record in summary.to_dict("records"):
        paper, method = PUBLISHED_METHODS.get(record["condition"], (None, None))
        dataset = PUBLISHED_DATASETS.get(record["category"])
        metric = PUBLISHED_METRICS.get(record["metric"])
        cell = None
        if paper and dataset and metric:
            keys = {"model": PUBLISHED_MODELS[paper], "dataset": dataset, "metric": metric}
            cell = published_cell(paper, "1", method=method, **keys)
        rows.append(
            {
                "condition": record["condition"],
                "category": record["category"],
                "metric": METRIC_NAMES.get(record["metric"], record["metric"]),
                "ours": _interval(record),
                **_published_cells(paper, cell, setting),
            }
        )
    caption = (
        "Mean [95 % bootstrap interval over questions] (questions, x training seeds) beside "
        f"published values. {_stated(setting)}"
    )
    heads = [Column("condition", "condition"), Column("category", "questions")]
    return Table(name, caption, [*heads, Column("metric", "metric"), *_COMPARISON], rows)


def votes_table(votes: pd.DataFrame, setting: Setting, name: str = "voting") -> Table:
    """Accuracy of the voting rules beside S2's anchor cell (BrowseComp-Plus, 830 questions).

    Parameters
    ----------
    votes : what ``voting.study.summarise_votes`` returns.
    """
    comparator = votes["comparator"].iloc[0]
    rows = []
    for record in votes.to_dict("records"):
        method = PUBLISHED_RULES.get(record["rule"])
        cell = method and published_cell(
            "rgv",
            "1",
            dataset="BrowseComp-Plus",
            model=PUBLISHED_MODELS["rgv"],
            method=method,
        )
        delta = Interval(
            record["delta"], record["delta_low"], record["delta_high"], int(record["n"])
        )
        rows.append(
            {
                "rule": record["rule"],
                "ours": _interval({**record, "value": record["accuracy"]}),
                "delta": "reference" if record["rule"] == comparator else delta,
                "tied": record["tied"],
                **_published_cells("rgv", cell or None, setting),
            }
        )
    rollouts = votes["rollouts"].iloc[0]
    caption = (
        f"Voting over {rollouts:g} rollouts per question: accuracy (exact match) [95 % bootstrap "
        f"interval over questions] (questions), and the paired difference to {comparator}. "
        f"{_stated(setting)}"
    )
    heads = [Column("rule", "rule")]
    extra = [
        Column("delta", f"minus {comparator}"),
        Column("tied", "share of questions tied", digits=2),
    ]
    return Table(name, caption, [*heads, _COMPARISON[0], *extra, *_COMPARISON[1:]], rows)


_COMPARISON = (
    Column("ours", "ours"),
    Column("published", "published", absent=NOT_PUBLISHED),
    Column("source", "source", absent="none"),
    Column("difference", "difference in setting: theirs", absent="nothing to compare"),
)


def _stated(setting: Setting) -> str:
    return f"Our setting: model {setting.model}; corpus {setting.corpus}; budget {setting.budget}."


def _interval(record: dict) -> Interval:
    seeds = int(record.get("seeds", 1))
    return Interval(record["value"], record["low"], record["high"], int(record["n"]), seeds)


def _published_cells(paper: str | None, cell: Published | None, setting: Setting) -> dict:
    if paper is None or cell is None:
        return {"published": None, "source": None, "difference": None}
    difference = setting_difference(setting, paper_setting(paper, cell))
    return {"published": cell, "source": cell.source, "difference": difference}
