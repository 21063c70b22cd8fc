"""What rollouts retrieved: states by hand, and denominators that keep everything."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from workbench.corpus.records import Chunk, Extent
from workbench.errors import WorkbenchError
from workbench.evaluation.evidence import (
    EVIDENCE,
    EvidenceReader,
    coverage_histogram,
    coverage_level,
    kept_counts,
    score_by_coverage,
)
from workbench.inference.bootstrap import BootstrapConfig
from workbench.questions.graph import Evidence, Item, Node

CONFIG = BootstrapConfig(draws=200)
# One paragraph a page; the mention of page p2 runs over the end of its chunk.
CHUNKS = {
    f"p{n}": Chunk(f"p{n}", f"p{n}", f"Page {n}", f"text {n}", (Extent(1, 0, 20),))
    for n in range(1, 5)
}


def graph(item_id="q", **fields):
    """v1 -> v2 -> v3; v2's mention is cut by its chunk."""
    spans = {1: (0, 5), 2: (15, 25), 3: (3, 9)}
    nodes = tuple(
        Node(f"v{n}", "?", ("x",), (Evidence(f"p{n}", 1, (spans[n],)),), (f"v{n - 1}",)[: n - 1])
        for n in (1, 2, 3)
    )
    return Item(item_id, "Q?", ("Bamako",), "3-hop-1, chain", nodes, "test", **fields)


@pytest.fixture
def searching(make_trajectory):
    """A rollout whose searches return the pages given: ``searching("12", "3")``."""

    def make(*pages, item_id="q", cut=(), texts="", **changes):
        made = make_trajectory(item_id, searches=len(pages), **changes)
        made.searches = [
            replace(
                search,
                chunk_ids=[f"p{n}" for n in found],
                titles=[f"Page {n}" for n in found],
                texts=[texts or f"text {n}" for n in found],
                scores=[1.0] * len(found),
                observation_cut=turn in cut,
            )
            for turn, (search, found) in enumerate(zip(made.searches, pages))
        ]
        return made

    return make


def read(*trajectories, items=None, expected=None):
    return EvidenceReader(CHUNKS).read(items or [graph()], trajectories, expected)


def test_potentials_at_the_end_are_exact(searching):
    row = read(searching("1", "3")).iloc[0]
    assert (row["cov"], row["cov_dep"]) == (2 / 3, 1 / 3)
    assert (row["no_evidence"], row["all_evidence"], row["am"]) == (0, 0, 0)
    assert (row["cov_above"], row["delayed"], row["searches"]) == (1, 0, 2)


def test_late_unlocking_is_seen_though_all_is_unlocked_in_the_end(searching):
    late, orderly = read(searching("3", "2", "1"), searching("1", "2", "3")).to_dict("records")
    assert late["cov"] == late["cov_dep"] == orderly["cov_dep"] == late["all_evidence"] == 1
    assert (late["cov_above"], late["delayed"]) == (1, 1)
    assert (orderly["cov_above"], orderly["delayed"]) == (0, 0)


def test_evidence_of_one_search_is_not_late(searching):
    assert read(searching("123")).iloc[0]["delayed"] == 0


def test_whole_mentions_would_cost_what_depends_on_them(searching):
    rows = read(searching("12"), searching("1"), searching("2"))
    # the last covers v2, but its closure is empty with or without the whole mention
    assert rows["mention_cut"].tolist() == [1, 0, 0]


def test_a_cut_observation_counts_as_search_and_covers_nothing(searching):
    row = read(searching("1", "2", cut={1})).iloc[0]
    assert (row["cov"], row["searches"], row["cut_observations"]) == (1 / 3, 2, 1)


def test_answer_match_is_apart_from_coverage(searching):
    row = read(searching("4", texts="the capital, Bamako.")).iloc[0]
    assert (row["am"], row["cov"]) == (1, 0)


def test_lost_and_unanswered_rollouts_stay_in_the_denominator(searching):
    gone = graph("r")
    frame = read(
        searching("123"), searching("1", answer=None, truncated=True), items=[graph(), gone],
        expected=2,
    )  # fmt: skip
    assert len(frame) == 4 and frame["cov"].tolist() == [1, 1 / 3, 0, 0]
    assert not frame[list(EVIDENCE)].isna().any(axis=None)
    assert kept_counts(frame.assign(condition="oo")).to_dict("records") == [
        {"condition": "oo", "rollouts": 4, "lost": 2, "no_answer": 3, "truncated": 1, "cut": 0}
    ]
    histogram = coverage_histogram(frame.assign(condition="oo"), seed=None, config=CONFIG)
    shares = dict(zip(histogram["level"], histogram["value"]))
    assert shares == pytest.approx({0.0: 0.5, 0.3333: 0.25, 1.0: 0.25})
    assert set(histogram["n"]) == {2}


def test_a_question_without_graph_has_no_coverage(make_item, make_trajectory):
    with pytest.raises(WorkbenchError, match="no graph"):
        EvidenceReader(CHUNKS).read([make_item()], [make_trajectory(searches=1)])


def test_equal_shares_are_one_level():
    assert set(coverage_level(np.array([1 / 3, 2 / 6, 0.1 + 0.2 + 1 / 30]))) == {0.3333}


@pytest.fixture
def frame():
    rows = [
        ("oo", 0, "a", 0.0, 0.0), ("oo", 0, "b", 1.0, 1.0), ("oo", 1, "a", 1.0, 0.5),
        ("oo", 1, "b", 1.0, 0.0), ("cov_local", 0, "a", 0.5, 1.0), ("cov_local", 0, "b", 1.0, 1.0),
        ("cov_local", 1, "a", 0.5, 0.0), ("cov_local", 1, "b", 1.0, 1.0),
    ]  # fmt: skip
    columns = ["condition", "training_seed", "item_id", "cov", "f1"]
    return pd.DataFrame(rows, columns=columns)


def test_every_level_is_in_every_group_and_shares_sum_to_one(frame):
    table = coverage_histogram(frame, config=CONFIG)
    assert table.groupby("condition")["value"].sum().tolist() == pytest.approx([1, 1])
    wide = table.pivot(index="condition", columns="level", values="value")
    assert wide.loc["oo"].tolist() == [0.25, 0.0, 0.75]
    assert wide.loc["cov_local"].tolist() == [0.0, 0.5, 0.5]
    assert set(table["seeds"]) == {2}


def test_scores_at_a_level_are_averaged_by_question(frame):
    table = score_by_coverage(frame, config=CONFIG).set_index(["condition", "level"])
    row = table.loc[("oo", 1.0)]
    # question a: 0.5 (one rollout); question b: the mean of 1 and 0
    assert (row["value"], row["n"], row["rollouts"]) == (0.5, 2, 3)
    assert table.loc[("cov_local", 0.5), "value"] == 0.5
    assert ("oo", 0.5) not in table.index
