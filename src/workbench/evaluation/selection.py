"""Which questions are asked: balanced over hops and over what the base policy has memorised."""

from __future__ import annotations

from collections.abc import Sequence

from ..questions.graph import Item
from ..seeding import generator

MEMORISED = 16  # exposures from which on a fact counts as memorised


def stratum(item: Item) -> str:
    """ "1-hop, unseen", "2-hop, memorised", ...; "1-hop, seen" for exposures in between."""
    seen = "unseen" if not item.exposures else "seen"
    return f"{item.hops}-hop, {'memorised' if item.exposures >= MEMORISED else seen}"


def stratified(items: Sequence[Item], count: int | None, seed: int = 0) -> list[Item]:
    """``count`` items in equal parts from the unseen and the memorised, by number of hops.

    Facts seen a few times are left out, so that few questions still compare the two extremes.
    A stratum with too few items gives all it has and the others fill up.  A larger ``count``
    contains the items of a smaller one as far as the equal parts allow.  ``count`` None gives
    all items, those in between included.  In order of their ids.
    """
    if count is None:
        return sorted(items, key=lambda item: item.item_id)
    pools: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.item_id):
        if item.exposures == 0 or item.exposures >= MEMORISED:
            pools.setdefault(stratum(item), []).append(item)
    chosen: list[Item] = []
    smallest_first = sorted(pools, key=lambda name: (len(pools[name]), name))
    for place, name in enumerate(smallest_first):
        pool = pools[name]
        share = -(-(count - len(chosen)) // (len(smallest_first) - place))
        order = generator("stratified questions", seed, name).permutation(len(pool))
        chosen += [pool[row] for row in order[:share]]
    return sorted(chosen, key=lambda item: item.item_id)
