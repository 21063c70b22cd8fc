"""Which questions are asked: so many of each structure and of what the base policy knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import WorkbenchError
from ..questions.categories import CATEGORIES, SINGLE
from ..questions.graph import Item
from ..seeding import generator

MEMORISED = 16  # exposures from which on a fact counts as memorised
SEEN = "1-hop, seen"
STRATA = ("1-hop, unseen", "1-hop, memorised", "1-hop, described", *CATEGORIES[1:])


def stratum(item: Item) -> str:
    """The category; named one-hop questions by what the base policy knows, the described apart.

    "1-hop, unseen" for facts that the base policy was never told without their passage,
    "1-hop, memorised" for those it was told often, "1-hop, seen" in between.
    """
    if item.category != SINGLE:
        return item.category
    if item.roots == "described":
        return "1-hop, described"
    if not item.exposures:
        return "1-hop, unseen"
    return "1-hop, memorised" if item.exposures >= MEMORISED else SEEN


def stratified(
    items: Sequence[Item],
    count: int | None,
    seed: int = 0,
    shares: Mapping[str, float] | None = None,
) -> list[Item]:
    """``count`` items in equal parts from all strata, or in parts as ``shares`` say.

    Facts seen a few times are left out, so that few questions still compare the two extremes.
    A stratum with too few items gives all it has and the others fill up.  A larger ``count``
    contains the items of a smaller one as far as the parts allow.  ``count`` None gives all
    items, those in between included.  In order of their ids.

    Parameters
    ----------
    shares : stratum -> its part; strata that are not named are left out.

    Raises
    ------
    WorkbenchError : a share of an unknown stratum, or one that is not positive.
    """
    for name, part in (shares or {}).items():
        if name not in STRATA or part <= 0:
            raise WorkbenchError(
                f"no such share: {name!r}: {part}",
                where="shares of questions",
                fix=f"positive numbers for any of {'; '.join(STRATA)}",
            )
    if count is None:
        return sorted(items, key=lambda item: item.item_id)
    pools: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.item_id):
        name = stratum(item)
        if name != SEEN and (shares is None or name in shares):
            pools.setdefault(name, []).append(item)
    parts = {name: (shares or {}).get(name, 1.0) for name in pools}
    chosen: list[Item] = []
    shortest_first = sorted(pools, key=lambda name: (len(pools[name]) / parts[name], name))
    for place, name in enumerate(shortest_first):
        left = sum(parts[other] for other in shortest_first[place:])
        quota = -int(-(count - len(chosen)) * parts[name] // left)
        order = generator("stratified questions", seed, name).permutation(len(pools[name]))
        chosen += [pools[name][row] for row in order[:quota]]
    return sorted(chosen, key=lambda item: item.item_id)
