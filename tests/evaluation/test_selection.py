"""Which questions are asked."""

from collections import Counter

import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.selection import stratified, stratum
from workbench.questions.graph import Item, Node

SIZES = {
    ("1-hop, single", "named", 0): 40,
    ("1-hop, single", "named", 4): 30,
    ("1-hop, single", "named", 16): 20,
    ("1-hop, single", "described", 0): 40,
    ("2-hop, chain", "named", 1): 9,
    ("2-hop, chain", "described", 64): 3,
}


@pytest.fixture
def items():
    node = Node("v1", "?", ("x",), ())
    return [
        Item(f"{c}-{r}-{e}-{i}", "?", ("x",), c, (node,), "test", e, roots=r)
        for (c, r, e), size in SIZES.items()
        for i in range(size)
    ]


def test_equal_parts_and_a_short_stratum_is_made_up_for(items):
    chosen = stratified(items, 57)
    assert Counter(map(stratum, chosen)) == {
        "2-hop, chain": 12, "1-hop, memorised": 15, "1-hop, unseen": 15, "1-hop, described": 15,
    }  # fmt: skip
    assert [i.item_id for i in chosen] == sorted({i.item_id for i in chosen})


def test_parts_as_the_shares_say(items):
    shares = {"1-hop, memorised": 2.0, "1-hop, unseen": 1.0, "2-hop, chain": 1.0}
    assert Counter(map(stratum, stratified(items, 40, shares=shares))) == {
        "1-hop, memorised": 20, "1-hop, unseen": 10, "2-hop, chain": 10,
    }  # fmt: skip
    assert Counter(map(stratum, stratified(items, 56, shares=shares))) == {
        "1-hop, memorised": 20, "1-hop, unseen": 24, "2-hop, chain": 12,
    }, "20 memorised and 12 chains are all there are"  # fmt: skip


@pytest.mark.parametrize("shares", [{"9-hop": 1.0}, {"1-hop, unseen": 0.0}])
def test_shares_of_nothing_are_refused(items, shares):
    with pytest.raises(WorkbenchError, match=next(iter(shares))):
        stratified(items, 10, shares=shares)


def test_the_draw_depends_on_ids_and_seed_alone(items):
    chosen = stratified(items, 12)
    assert stratified(items[::-1], 12) == chosen
    assert stratified(items, 12, seed=1) != chosen


def test_all_means_all_and_too_many_means_what_there_is(items):
    assert len(stratified(items, None)) == len(items)
    assert len(stratified(items, 1000)) == 112, "those in between are left out"
