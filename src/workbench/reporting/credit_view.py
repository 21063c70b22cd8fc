"""Credit made visible: one group's rollouts with the advantage of every token, as a web page.

``telling_group`` picks the group, ``group_credit`` collects what is shown, ``credit_page`` writes
a self-contained page; ``credit_strips`` draws the same as a picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from ..agent.trajectory import Trajectory
from ..corpus.records import Chunk
from ..errors import WorkbenchError
from ..methods.advantages import group_rows
from ..methods.base import Method
from ..methods.coverage import CoverageReader
from ..methods.local_credit import disabled_reason
from ..methods.retrieval_local import RetrievalLocal
from ..methods.signals import TRAINING_DIGITS, build_signal, retrieval_events
from ..methods.token_credit import token_credit
from ..questions.graph import Item
from .credit_page import PAGE
from .files import replace_file
from .numbers import decimal
from .style import display

NOTHING_NEW = "covers nothing new"
DIVERGING = "PuOr_r"  # colour-blind safe: purple below 0, orange above
_LIGHT = 0.78  # of the colour map's reach, so that text stays readable on it


def telling_group(
    items: Sequence[Item],
    trajectories: Sequence[Trajectory],
    aligned: RetrievalLocal,
    permuted: RetrievalLocal,
) -> list[int]:
    """Rows of the first group in which permuting turns praise of a search into blame.

    Groups of questions with several nodes come first, then those with one.  If there is no such
    group, of the first in which permuting moves any credit, else of the first with any local
    credit.  Either way its rollouts have different events at some search step.

    Parameters
    ----------
    items : ``items[i]`` is the question of ``trajectories[i]``.

    Raises
    ------
    WorkbenchError : no search of any group has local credit.
    """
    outcome = aligned.score(items, trajectories).parts["outcome"]
    ours, moved = (m.masses(items, trajectories, outcome) for m in (aligned, permuted))
    groups = group_rows([trajectory.group for trajectory in trajectories])
    groups.sort(key=lambda rows: len(items[rows[0]].nodes) == 1)
    tellings = (
        lambda own, other: own * other < 0,
        lambda own, other: own != other,
        lambda own, other: own != 0,
    )
    for telling in tellings:
        for rows in groups:
            if any(telling(ours[row], moved[row]).any() for row in rows):
                return [int(row) for row in rows]
    raise WorkbenchError(
        "no search of any group has local credit",
        where=f"{len(trajectories)} rollouts",
        fix="give more groups, or rollouts at a higher temperature",
    )


@dataclass(frozen=True)
class GroupCredit:
    """One group under several methods.

    Attributes
    ----------
    item, trajectories : the question and its rollouts.
    tokens : frame of ``methods.token_credit``; method is the condition's name.
    searches : rollout, search, query, titles, covers (ids of the nodes that this search newly
        covers), event (e_t of ``signal``, as in training), and per method the advantage on the
        executed query's tokens.
    outside : rollout, outcome, why its local term is disabled ("" if not), and per method the
        advantage on the tokens outside queries.
    """

    item: Item
    trajectories: Sequence[Trajectory]
    tokens: pd.DataFrame
    searches: pd.DataFrame
    outside: pd.DataFrame

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(self.tokens["method"]))

    @property
    def bound(self) -> float:
        """The largest size of an advantage, at least 0.01: the reach of the colours."""
        return max(float(self.tokens["advantage"].abs().max()), 0.01)


def group_credit(
    item: Item,
    trajectories: Sequence[Trajectory],
    methods: Mapping[str, Method],
    tokenizer: object,
    chunks: Mapping[str, Chunk],
    signal: str = "cov",
) -> GroupCredit:
    """Advantages, events and newly covered nodes of a group.

    Parameters
    ----------
    trajectories : all rollouts of the group: standardisation compares what is given.
    methods : method by condition.
    chunks : the corpus that was searched, by id.
    signal : whose events are shown.
    """
    items = [item] * len(trajectories)
    tokens = token_credit(items, trajectories, methods, tokenizer)
    events = retrieval_events(build_signal(signal, chunks), items, trajectories, TRAINING_DIGITS)
    reader, searches, outside = CoverageReader(chunks), [], []
    for row, trajectory in enumerate(trajectories):
        given = tokens[tokens["rollout"] == row]
        before: frozenset[str] = frozenset()
        for number, state in enumerate(reader.states(item, trajectory)):
            record = trajectory.searches[number]
            at = given[given["position"] == record.query_span[0]]
            searches.append(
                {
                    "rollout": row,
                    "search": number,
                    "query": record.query,
                    "titles": list(record.titles),
                    "covers": sorted(state.covered - before),
                    "event": float(events[row][number]),
                    **dict(zip(at["method"], at["advantage"])),
                }
            )
            before = state.covered
        rest = given[given["segment"].isin(("reasoning", "answer"))].groupby("method", sort=False)
        outside.append(
            {
                "rollout": row,
                "outcome": float(given["outcome"].iloc[0]),
                "disabled": disabled_reason(trajectory, events[row]),
                **rest["advantage"].first().to_dict(),
            }
        )
    columns = ["rollout", "search", "query", "titles", "covers", "event", *methods]
    frame = pd.DataFrame(searches, columns=columns)
    return GroupCredit(item, trajectories, tokens, frame, pd.DataFrame(outside))


def colour_of(advantage: float, bound: float) -> str:
    """Background for an advantage: white at 0, ever stronger to ``bound`` either way."""
    share = float(np.clip(advantage / bound, -1, 1)) if bound else 0.0
    return mpl.colors.to_hex(mpl.colormaps[DIVERGING](0.5 + 0.5 * _LIGHT * share))


def ink_on(colour: str) -> str:
    """Black or white, whichever has more contrast on a background (always above 4.5 to 1)."""
    linear = [c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4
              for c in mpl.colors.to_rgb(colour)]  # fmt: skip
    return "#000000" if np.dot(linear, (0.2126, 0.7152, 0.0722)) > 0.179 else "#ffffff"


def credit_page(credit: GroupCredit, note: str = "") -> str:
    """A self-contained HTML page: methods side by side, tokens coloured, numbers in tooltips.

    Prompts are left out (they get no credit) and observations are boxes that name what was
    retrieved, what it covers and the event.
    """
    from jinja2 import Environment

    rollouts = [_rollout(credit, row) for row in range(len(credit.trajectories))]
    stops = np.linspace(-1, 1, 9) * credit.bound
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(PAGE)
    return page.render(
        item=credit.item,
        note=note,
        methods=[display(name) for name in credit.methods],
        rollouts=rollouts,
        legend=[_shade(stop, credit.bound) for stop in stops],
    )


def save_credit_page(path: Path | str, credit: GroupCredit, note: str = "") -> Path:
    """Write ``credit_page``, complete or not at all."""
    return replace_file(path, credit_page(credit, note))


def signed(value: float, digits: int = 2) -> str:
    """``+0.53``; no sign where it rounds to zero."""
    return decimal(value, digits, signed=True)


def _rollout(credit: GroupCredit, row: int) -> dict:
    trajectory = credit.trajectories[row]
    searches = credit.searches[credit.searches["rollout"] == row].to_dict("records")
    outside = credit.outside.iloc[row]
    given = credit.tokens[credit.tokens["rollout"] == row]
    return {
        "number": row + 1,
        "answer": trajectory.answer if trajectory.answer is not None else "no answer",
        "outcome": decimal(outside["outcome"], 2),
        "disabled": outside["disabled"].replace("_", " "),
        "searches": [
            search
            | {
                "number": search["search"] + 1,
                "event": decimal(search["event"], 4),
                "given": [_shade(search[name], credit.bound) for name in credit.methods],
            }
            for search in searches
        ],
        "outside": [_shade(outside.get(name, 0.0), credit.bound) for name in credit.methods],
        "columns": [
            {
                "name": display(name),
                "reward": decimal(float(part["reward"].iloc[0]), 3),
                "pieces": _pieces(part, searches, credit.bound),
            }
            for name, part in given.groupby("method", sort=False)
        ],
    }


def _shade(value: float, bound: float) -> dict[str, str]:
    colour = colour_of(value, bound)
    return {"text": signed(value), "style": f"background:{colour};color:{ink_on(colour)}"}


def _pieces(tokens: pd.DataFrame, searches: Sequence[Mapping], bound: float) -> list[dict]:
    """Tokens as the page shows them; each observation is one box."""
    pieces: list[dict] = []
    boxed: set[int] = set()
    for token in tokens.itertuples():
        if token.segment in ("prompt", "padding"):
            continue
        if token.segment == "observation":
            if token.search >= 0 and token.search not in boxed:
                boxed.add(token.search)
                pieces.append({"box": _box(searches[token.search])})
            continue
        where = f"{token.segment} of search {token.search + 1}"
        pieces.append(
            {
                "text": token.text,
                "segment": token.segment,
                "style": _shade(token.advantage, bound)["style"],
                "title": f"A = {signed(token.advantage, 3)}, "
                + (where if token.search >= 0 else token.segment),
            }
        )
    return pieces


def _box(search: Mapping) -> dict:
    counts = Counter(search["titles"])
    titles = [title + (f" ({n})" if n > 1 else "") for title, n in counts.items()]
    return {
        "event": decimal(search["event"], 4),
        "covers": f"covers {', '.join(search['covers'])}" if search["covers"] else NOTHING_NEW,
        "titles": "; ".join(titles) or "nothing",
    }
