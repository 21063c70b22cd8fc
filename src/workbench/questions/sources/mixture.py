"""The mixture of S3 App. B: deterministic within categories, the first four balanced.

Development questions are drawn first and training questions from the remainder.  For
`categories.BALANCED` one half has all gold evidence in the first chunk of each page and the
other needs later chunks, as far as the pool allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...seeding import seed_of
from ..categories import BALANCED, CATEGORIES
from ..graph import Item

ORDER = ("test", "validation", "train")
FIRST, LATER, ANY = "first chunks", "later chunks", "any chunks"


@dataclass(frozen=True)
class Shortage:
    """Fewer questions than wanted: of a half (filled up from the other) or, ``ANY``, at all."""

    split: str
    category: str
    evidence: str
    wanted: int
    found: int


def draw_mixture(
    pool: Iterable[tuple[Item, bool]], counts: Mapping[str, Mapping[str, int]], seed: int
) -> tuple[list[Item], list[Shortage]]:
    """Items in their splits, sorted by id, and what was short.

    Parameters
    ----------
    pool : items, each with whether all of its evidence is in first chunks.
    counts : split -> category -> questions.
    """
    waiting: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for item, first in pool:
        kind = (FIRST if first else LATER) if item.category in BALANCED else ANY
        waiting[item.category, kind].append(item)
    for own in waiting.values():
        own.sort(key=lambda i: seed_of("mixture", seed, i.item_id), reverse=True)
    drawn: list[Item] = []
    short: list[Shortage] = []
    for split in sorted(counts, key=ORDER.index):
        for category in CATEGORIES:
            wanted = counts[split].get(category, 0)
            balanced = category in BALANCED
            halves = (
                {FIRST: wanted - wanted // 2, LATER: wanted // 2} if balanced else {ANY: wanted}
            )
            taken: list[Item] = []
            for kind, number in halves.items():
                own = _pop(waiting[category, kind], number)
                taken += own
                if balanced and len(own) < number:
                    short.append(Shortage(split, category, kind, number, len(own)))
            for kind in halves:
                taken += _pop(waiting[category, kind], wanted - len(taken))
            if len(taken) < wanted:
                short.append(Shortage(split, category, ANY, wanted, len(taken)))
            drawn += [replace(item, split=split) for item in taken]
    return sorted(drawn, key=lambda i: i.item_id), short


def _pop(items: list[Item], number: int) -> list[Item]:
    """Take up to ``number`` items from the end of the list."""
    return [items.pop() for _ in range(min(number, len(items)))]
