"""Sampling within categories: halves, reserves, shortages."""

from collections import Counter

from workbench.questions.graph import Item
from workbench.questions.sources.mixture import ANY, FIRST, LATER, Shortage, draw_mixture

SINGLE, CHAIN4 = "1-hop, single", "4-hop-1, chain"


def _pool(category, first, later):
    made = [(True, n) for n in range(first)] + [(False, n) for n in range(later)]
    return [(Item(f"{category}:{f}:{n}", "?", ("a",), category, (), "train"), f) for f, n in made]


def _halves(items, split):
    return Counter(i.item_id.split(":")[1] for i in items if i.split == split)


def test_half_has_its_evidence_in_first_chunks():
    counts = {"train": {SINGLE: 10}, "test": {SINGLE: 5}}
    items, short = draw_mixture(_pool(SINGLE, 20, 20), counts, 0)
    assert short == []
    assert _halves(items, "train") == {"True": 5, "False": 5}
    assert _halves(items, "test") == {"True": 3, "False": 2}
    assert [i.item_id for i in items] == sorted({i.item_id for i in items})


def test_other_categories_come_from_their_whole_pool():
    items, short = draw_mixture(_pool(CHAIN4, 30, 0), {"train": {CHAIN4: 30}}, 0)
    assert len(items) == 30 and short == []


def test_a_half_that_is_short_is_filled_up_and_told():
    counts = {"train": {SINGLE: 10}, "test": {SINGLE: 4}}
    items, short = draw_mixture(_pool(SINGLE, 30, 3), counts, 0)
    assert _halves(items, "test") == {"True": 2, "False": 2}
    assert _halves(items, "train") == {"True": 9, "False": 1}
    assert short == [Shortage("train", SINGLE, LATER, 5, 1)]


def test_a_pool_that_is_too_small_is_used_up_and_told():
    items, short = draw_mixture(_pool(SINGLE, 2, 3), {"train": {SINGLE: 10, CHAIN4: 1}}, 0)
    assert len(items) == 5
    assert short == [
        Shortage("train", SINGLE, FIRST, 5, 2),
        Shortage("train", SINGLE, LATER, 5, 3),
        Shortage("train", SINGLE, ANY, 10, 5),
        Shortage("train", CHAIN4, ANY, 1, 0),
    ]


def test_development_questions_are_reserved_first():
    """More training questions change no other split, and the order of the pool changes nothing."""
    pool = _pool(SINGLE, 20, 20)
    few, _ = draw_mixture(pool, {"train": {SINGLE: 4}, "test": {SINGLE: 6}}, 0)
    many, _ = draw_mixture(pool[::-1], {"test": {SINGLE: 6}, "train": {SINGLE: 30}}, 0)
    assert [i for i in few if i.split == "test"] == [i for i in many if i.split == "test"]
    assert {i.item_id for i in few} <= {i.item_id for i in many}
    other, _ = draw_mixture(pool, {"train": {SINGLE: 4}, "test": {SINGLE: 6}}, 1)
    assert other != few
