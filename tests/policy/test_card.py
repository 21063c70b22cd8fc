"""The card's table on made-up measurements, and which questions it asks."""

import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from workbench.inference.bootstrap import BootstrapConfig
from workbench.policy.card import TARGETS, Card, choose, kind_of, summary
from workbench.questions.graph import Item


def _frame(rows):
    """Rows of (question, hops, exposures, em, direct, valid)."""
    columns = ["item_id", "hops", "exposures", "em", "direct", "valid"]
    frame = pd.DataFrame(rows, columns=columns)
    frame[["em", "direct", "valid"]] = frame[["em", "direct", "valid"]].astype(float)
    return frame.assign(group=frame["item_id"], searched=1.0 - frame["direct"], seed=0)


@pytest.fixture
def card():
    closed = [(f"u{i}", 1, 0, i < 1, 1, 1) for i in range(20)]  # unseen: 1 of 20
    closed += [(f"m{i}", 1, 8, 1, 1, 1) for i in range(5)]
    closed += [(f"k{i}", 1, 64, i < 8, 1, 1) for i in range(10)]  # seen 64 times: 8 of 10
    searched = [(f"s{i}", 1, 0, i < 15, 0, 1) for i in range(20)]  # .75
    searched += [(f"c{i}", 2, 0, i < 5, 0, 1) for i in range(10)]  # .50
    greedy = [(f"s{i}", 1, 0, i < 6, 0, i < 9) for i in range(10)]  # valid .9, EM .6
    sampled = [("a", 1, 0, e, d, 1) for e, d in ((1, 1), (0, 1), (1, 0), (1, 0))]  # mixed, both
    sampled += [("b", 1, 0, 1, 0, 1)] * 4  # all right
    sampled += [("c", 2, 0, 0, 1, 0)] * 4  # all wrong, direct only
    sampled += [("d", 2, 0, e, 0, 1) for e in (1, 0, 0, 0)]  # mixed
    deletion = _frame([(f"s{i}", 1, 0, 1, 0, 1) for i in range(8)])
    deletion["changed"] = [1.0, 0, 0, 0, 1, 0, 0, 0]
    frames = [_frame(rows) for rows in (closed, searched, greedy, sampled)]
    frames[1]["kind"] = frames[1]["hops"].map({1: "1-hop", 2: "2-hop"})
    return Card(*frames, deletion, [])


def test_the_table_says_what_was_measured(card):
    table = summary(card, BootstrapConfig(draws=200)).set_index("measure")
    expected = {
        "valid, greedy": (0.9, 10, False),
        "valid, temperature 1": (0.75, 4, False),
        "searched EM, 1-hop": (0.75, 20, True),
        "searched EM, 2-hop": (0.5, 10, False),
        "closed-book EM, unseen facts": (0.05, 20, True),
        "closed-book EM, facts seen 64 times": (0.8, 10, False),
        "EM, greedy": (0.6, 10, None),
        "EM, temperature 1": (0.5, 4, None),
        "answered without search, temperature 1": (0.375, 4, None),
        "answer changes under evidence deletion": (0.25, 8, True),
        "groups of five mixed in correctness": (0.5, 4, True),
        "groups with direct and searched rollouts": (0.25, 4, None),
    }
    assert set(table.index) == set(expected)
    for name, (value, n, met) in expected.items():
        row = table.loc[name]
        assert row["value"] == pytest.approx(value), name
        assert (row["n"], row["met"]) == (n, met), name
        assert row["low"] <= value <= row["high"], name
        assert (row["wanted"] != "") == (name in TARGETS)
    assert table.loc["closed-book EM, unseen facts", "wanted"] == "0.00 to 0.10"


@pytest.mark.parametrize(
    ("name", "right", "n"),
    [
        ("answer changes under evidence deletion", 2, 8),
        ("groups of five mixed in correctness", 2, 4),
        ("groups with direct and searched rollouts", 1, 4),
    ],
)
def test_shares_have_wilson_intervals(card, name, right, n):
    row = summary(card, BootstrapConfig(draws=200)).set_index("measure").loc[name]
    low, high = proportion_confint(right, n, method="wilson")
    assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_a_measure_without_questions_is_left_out(card):
    card.searched = card.searched[card.searched["hops"] == 1]
    card.deletion = card.deletion.iloc[:0]
    names = set(summary(card, BootstrapConfig(draws=200))["measure"])
    assert "searched EM, 1-hop" in names
    assert not names & {"searched EM, 2-hop", "answer changes under evidence deletion"}


CATEGORY = {"1-hop": "1-hop, single", "2-hop": "2-hop, chain", "3-hop": "3-hop-2, fan-in"}


def _item(name, kind, roots="named"):
    return Item(name, "?", ("x",), CATEGORY.get(kind, kind), (), "test", roots=roots)


def test_the_kinds_of_questions():
    kinds = {
        ("1-hop, single", "named"): "1-hop", ("1-hop, single", "described"): "described",
        ("1-hop, conjunctive", "named"): "conjunctive", ("2-hop, wide", "named"): "conjunctive",
        ("2-hop, chain", "described"): "2-hop", ("3-hop-1, wide", "described"): "3-hop",
        ("4-hop-2, fan-in", "named"): "4-hop",
    }  # fmt: skip
    assert {key: kind_of(_item("i", *key)) for key in kinds} == kinds


def test_questions_are_chosen_by_name_whatever_their_order():
    items = [_item(f"{h}:{i:02}", h) for h in ("1-hop", "2-hop") for i in range(30)]
    chosen = choose(items, "1-hop", 10, "card", 0)
    assert len(chosen) == len({i.item_id for i in chosen}) == 10
    assert all(i.category == CATEGORY["1-hop"] for i in chosen)
    assert [i.item_id for i in chosen] == sorted(i.item_id for i in chosen)
    assert choose(items[::-1], "1-hop", 10, "card", 0) == chosen
    assert choose(items, "1-hop", 10, "card", 1) != chosen
    assert choose(items, "1-hop", 10, "other", 0) != chosen
    assert choose(items, "2-hop", 99, "card", 0) == items[30:]
    assert choose(items, "3-hop", 5, "card", 0) == []
