"""Which questions are asked."""

from collections import Counter

import pytest

from workbench.evaluation.selection import stratified, stratum
from workbench.questions.graph import Item, Node

SIZES = {(1, 0): 40, (1, 4): 30, (1, 16): 20, (2, 0): 40, (2, 1): 9, (2, 64): 3}


@pytest.fixture
def items():
    made = []
    for (hops, exposures), size in SIZES.items():
        nodes = tuple(Node(f"v{i}", "?", ("x",), ()) for i in range(hops))
        made += [
            Item(f"{hops}-{exposures}-{i}", "?", ("x",), "c", nodes, "test", exposures)
            for i in range(size)
        ]
    return made


def test_equal_parts_and_a_short_stratum_is_made_up_for(items):
    chosen = stratified(items, 43)
    assert Counter(map(stratum, chosen)) == {
        "2-hop, memorised": 3, "1-hop, memorised": 14, "1-hop, unseen": 13, "2-hop, unseen": 13,
    }  # fmt: skip
    assert [i.item_id for i in chosen] == sorted({i.item_id for i in chosen})


def test_the_draw_depends_on_ids_and_seed_alone(items):
    chosen = stratified(items, 12)
    assert stratified(items[::-1], 12) == chosen
    assert stratified(items, 12, seed=1) != chosen


def test_all_means_all_and_too_many_means_what_there_is(items):
    assert len(stratified(items, None)) == len(items)
    assert len(stratified(items, 1000)) == 103, "those in between are left out"
