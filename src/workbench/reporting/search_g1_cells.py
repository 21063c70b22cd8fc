"""What the tables of the Search-G1 study share: row names, cells that say why, S1's columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from ..methods.registry import load_condition
from .comparisons import Setting, paper_setting, setting_difference
from .published import Published, published, published_cell
from .study import interval_of
from .tables import NOT_PUBLISHED, Cell, Column

PAPER = "search_g1"
MODELS = {"3B": "Qwen2.5-3B-Instruct", "7B": "Qwen2.5-7B-Instruct"}
WIKI, NQ = "2WikiMultiHopQA", "NQ"
# Condition -> S1's name for it; untrained ones first.
METHODS = {
    "closed_book": "Base",
    "base": "Prompted Search",
    "search_r1": "Search-R1",
    "search_g1": "Search-G1",
}
UNTRAINED = {
    "closed_book": "Base (base policy, closed book)",
    "base": "Prompted Search (base policy)",
}
NOT_TRAINED = "not trained in this profile"
NOT_ASKED = "not asked in this profile"
NOT_IN_S1 = "not in S1"
_NOTHING = {
    "tc": "nothing correct to classify",
    "tc_searched": "no classified answer",
    "d_inv": "no classified answer",
    "d_inv_all": "no correct searched rollout",
    "unclassified": "no correct searched rollout",
    "em_per_search": "nobody searched",
    "support": "no correct searched answer",
    "kappa": "undefined: a label is constant",
}


def label(condition: str) -> str:
    """The name of a row: the label in params/conditions, S1's name for an untrained policy."""
    return UNTRAINED.get(condition) or load_condition(condition).label


def cells(
    frame: pd.DataFrame,
    *keys: str,
    words: Mapping[str, str] = {},  # noqa: B006
) -> Callable[..., Cell]:
    """A function from the values of ``keys`` to a cell: an interval, or why there is none.

    The first key is the condition, the last one the metric.  ``words`` say by metric why a
    value is NaN, beyond what is known here.
    """
    records = {tuple(r[k] for k in keys): r for r in frame.to_dict("records")}
    known = {key[0] for key in records}

    def cell(*key: str) -> Cell:
        if key[0] not in known:
            return NOT_ASKED if key[0] in UNTRAINED else NOT_TRAINED
        record = records.get(key)
        if record is None or math.isnan(record["value"]):
            return (_NOTHING | dict(words)).get(key[-1], "nothing to measure")
        return interval_of(record)

    return cell


def theirs(
    table: str, metrics: Mapping[str, str], models: Mapping[str, str] = MODELS, **keys: str
) -> dict[str, Published | None]:
    """S1's cells of one row, by the column keys of ``their_columns``.

    ``metrics`` are our keys with S1's names.
    """
    return {
        f"S1 {size} {key}": published_cell(PAPER, table, model=model, metric=metric, **keys)
        for size, model in models.items()
        for key, metric in metrics.items()
    }


def their_columns(
    titles: Mapping[str, str], digits: int = 3, models: Iterable[str] = MODELS,
    absent: str = NOT_PUBLISHED,
) -> list[Column]:  # fmt: skip
    """Columns of S1's values: for each model one for each of ``titles`` (key -> title)."""
    return [
        Column(f"S1 {size} {key}", f"S1 {size}: {title}", digits, absent)
        for size in models
        for key, title in titles.items()
    ]


def setting_note(setting: Setting, about: str, models: Iterable[str] = MODELS) -> str:
    """What differs between S1's results and ours, for captions; ``about`` names S1's data."""
    cell = published_cell(
        PAPER, "4", model=MODELS["3B"], variant="Full Search-G1", metric="EM"
    )  # fmt: skip
    difference = setting_difference(setting, paper_setting(PAPER, cell))
    if set(models) == set(MODELS):
        difference = difference.replace(MODELS["3B"], " (3B) or ".join(MODELS.values()) + " (7B)")
    return (
        f"Ours: model {setting.model}; corpus {setting.corpus}; budget {setting.budget}. "
        f"S1: {difference}; {about}. Levels do not compare across settings, directions may."
    )


def over(frame: pd.DataFrame) -> str:
    """What the bootstrap of a frame of intervals resampled."""
    several = len(frame) and frame["seeds"].max() > 1
    return "training seeds, then questions" if several else "questions"


def shown(frame: pd.DataFrame) -> str:
    """What a cell of ours is, for captions."""
    return f"mean [95 % bootstrap interval over {over(frame)}] (questions that count, x seeds)"


def untrained_note(conditions: Iterable[str], present: Iterable[str]) -> str:
    """A sentence on the conditions that were not trained, "" if all were."""
    have = set(present)
    missing = [label(c) for c in conditions if c not in have and c not in UNTRAINED]
    return f"Not trained in this profile: {', '.join(missing)}." if missing else ""


def printed_range(metric: str, **keys: str) -> str:
    """S1's figure text ``"0.466 to 0.487"``: its least and its greatest value."""
    ends = [
        published_cell(PAPER, "figures", metric=metric, bound=bound, **keys)
        for bound in ("min", "max")
    ]
    return " to ".join(f"{end.value:.3f}" for end in ends)


def printed(table: str, **keys: str) -> pd.DataFrame:
    """Rows of a table of S1 as text, where a cell is no single number."""
    frame = published(PAPER, table)
    for column, wanted in keys.items():
        frame = frame[frame[column] == wanted]
    return frame
