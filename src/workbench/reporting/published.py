"""Published values: what the three papers print, with paper and table.

The data are the CSV files in the folder ``published`` beside this module; its README says
where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..errors import WorkbenchError

FOLDER = Path(__file__).parent / "published"
NOT_PUBLISHED = ("", "n/a")


@dataclass(frozen=True, slots=True)
class Paper:
    """``short`` is how tables cite it; ``corpus`` and ``budget`` are its training setting."""

    short: str
    title: str
    arxiv: str
    corpus: str
    budget: str


PAPERS = {
    "search_g1": Paper(
        "S1",
        "Search-G1: Grounded Search Agents via Representation-Based Intrinsic Rewards",
        "2608.07531",
        "Wikipedia 2018, E5-base-v2",
        "batch 128 x 5 rollouts, 4 runs",
    ),
    "rgv": Paper(
        "S2",
        "Beyond Confidence: Test-Time Scaling for Multi-Turn Search Agents via Retrieval Grounding",
        "2608.24024",
        "fixed corpus or open web",
        "no training, 8 rollouts",
    ),
    "retrieval_credit": Paper(
        "S3",
        "Beyond Outcome Rewards: Constructing and Assigning Retrieval Credit for Search Agents",
        "2610.10179",
        "KILT Wikipedia 2019, E5-base-v2",
        "batch 128 x 5 rollouts, number of runs not stated",
    ),
}


@dataclass(frozen=True, slots=True)
class Published:
    """One printed cell: ``printed`` as text, ``value`` as a number in ``unit``.

    ``value`` is a fraction where the paper prints percent or percentage points, NaN where it
    prints nothing.
    """

    printed: str
    value: float
    source: str
    model: str = ""
    sd: float = float("nan")


def tables(paper: str) -> list[str]:
    """Names of a paper's tables: "1", "A12", "figures", "inline", ..."""
    return sorted(p.stem.removeprefix("table_") for p in _folder(paper).glob("*.csv"))


def published(paper: str, table: str) -> pd.DataFrame:
    """A printed table in long form, every cell text exactly as printed.

    Parameters
    ----------
    paper : "search_g1", "rgv" or "retrieval_credit".
    table : "1", "A12", "figures", ... as listed by ``tables``.
    """
    folder = _folder(paper)
    for name in (f"table_{table}.csv", f"{table}.csv"):
        if (folder / name).is_file():
            return pd.read_csv(folder / name, dtype=str, keep_default_na=False)
    raise WorkbenchError(
        f"{PAPERS[paper].short} has no table {table!r} here", fix=f"one of {tables(paper)}"
    )


def number(text: str) -> float:
    """A printed number: sign, leading point, thousands commas; NaN for "" and "n/a"."""
    if text.strip() in NOT_PUBLISHED:
        return float("nan")
    try:
        return float(text.strip().replace(",", "").replace("−", "-"))
    except ValueError:
        raise WorkbenchError(
            f"the printed cell {text!r} is not one number",
            fix="read it as text with published()",
        ) from None


def published_cell(paper: str, table: str, **keys: str) -> Published | None:
    """The one cell whose columns equal ``keys``; None when the paper prints no such cell.

    Raises
    ------
    WorkbenchError : an unknown column, or keys that fit several cells.
    """
    frame = published(paper, table)
    for column, wanted in keys.items():
        if column not in frame.columns:
            raise WorkbenchError(
                f"table {table} of {paper} has no column {column!r}",
                fix=f"columns are {list(frame.columns)}",
            )
        frame = frame[frame[column] == wanted]
    if len(frame) > 1:
        raise WorkbenchError(
            f"{len(frame)} cells of table {table} of {paper} fit {keys}",
            fix="name more of its columns",
        )
    if frame.empty or frame.iloc[0]["value"] in NOT_PUBLISHED:
        return None
    row = frame.iloc[0]
    scale = 0.01 if row.get("unit", "") in ("percent", "points") else 1.0
    place = ", ".join(row[c] for c in ("dataset", "method") if row.get(c))
    return Published(
        printed=row["value"],
        value=scale * number(row["value"]),
        source=f"{PAPERS[paper].short} Table {table}" + (f", {place}" if place else ""),
        model=row.get("model", ""),
        sd=scale * number(row.get("sd", "")),
    )


def _folder(paper: str) -> Path:
    if paper not in PAPERS:
        raise WorkbenchError(f"no published values of {paper!r}", fix=f"one of {list(PAPERS)}")
    return FOLDER / paper
