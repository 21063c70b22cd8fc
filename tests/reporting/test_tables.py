"""Tables: what readers see, what machines read, and never a blank cell."""

import re

import numpy as np
import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.inference import Interval
from workbench.reporting.comparisons import (
    Setting,
    conditions_table,
    setting_difference,
    votes_table,
)
from workbench.reporting.published import Published
from workbench.reporting.tables import Column, Table

TINY = Setting("2 M decoder", "World Factbook, BM25", "60 steps of 16 x 5 rollouts, 3 seeds")
SMALL = Table(
    "small_table",
    "Share of 5 % & more_",
    [
        Column("name", "name"),
        Column("ours", "ours"),
        Column("theirs", "published", absent="not published"),
        Column("count", "tokens", digits=1),
    ],
    [
        {
            "name": "a_b",
            "ours": Interval(0.35, 0.3, 0.4, 200, 3),
            "theirs": Published("0.352", 0.352, "S1 Table 1", sd=0.019),
            "count": 12.25,
        },
        {"name": "c|d", "ours": Interval(0.5, np.nan, np.nan, 1), "theirs": None, "count": 7},
        {"name": "e", "ours": Interval(np.nan, np.nan, np.nan, 0)},
    ],
)


def test_readable_cells():
    assert SMALL.readable().values.tolist() == [
        ["a_b", "0.350 [0.300, 0.400] (200 x 3)", "0.352 (sd 0.019)", "12.2"],
        ["c|d", "0.500 [no interval] (1)", "not published", "7"],
        ["e", "not measured", "not published", "not measured"],
    ]


def test_a_cell_that_rounds_to_zero_has_no_sign():
    table = Table("t", "", [Column("a", "a")], [{"a": Interval(0.014, -1e-17, 0.038, 35, 3)}])
    assert table.readable().values.tolist() == [["0.014 [0.000, 0.038] (35 x 3)"]]


def test_saved_files(tmp_path):
    paths = SMALL.save(tmp_path / "tables")
    assert [p.name for p in paths] == ["small_table.csv", "small_table.md", "small_table.tex"]
    assert sorted(p.name for p in (tmp_path / "tables").iterdir()) == sorted(p.name for p in paths)
    frame = pd.read_csv(paths[0], dtype=str, keep_default_na=False)
    assert frame.loc[0].to_dict() == {
        "name": "a_b", "ours": "0.35", "ours_low": "0.3", "ours_high": "0.4", "ours_n": "200",
        "ours_seeds": "3", "theirs": "0.352", "theirs_sd": "0.019", "theirs_printed": "0.352",
        "count": "12.25",
    }  # fmt: skip
    assert frame.loc[1, ["ours_low", "theirs"]].tolist() == ["not measured", "not published"]
    assert (frame != "").all(axis=None), "no cell is blank"
    before = [p.read_bytes() for p in paths]
    assert [p.read_bytes() for p in SMALL.save(tmp_path / "tables")] == before


def test_markdown_keeps_cells_apart():
    lines = SMALL.markdown().splitlines()
    assert lines[0] == "*Share of 5 % & more_*"
    assert r"c\|d" in SMALL.markdown()
    cells = [len(re.split(r"(?<!\\)\|", line)) for line in lines[2:]]
    assert set(cells) == {6}


def test_latex_is_booktabs_and_escaped():
    text = SMALL.latex()
    for part in (r"\toprule", r"\midrule", r"\bottomrule", r"\label{tab:small_table}", "a\\_b"):
        assert part in text
    assert r"\caption{Share of 5 \% \& more\_}" in text
    assert not re.search(r"(?<!\\)[&%#]\s*(more|\()", text)
    assert text.count(r"\\") == 4, "a header and three rows"


def test_wrong_rows_are_refused():
    with pytest.raises(WorkbenchError, match="table t: row 0 has cells \\['y'\\]"):
        Table("t", "", [Column("x", "x")], [{"y": 1}])
    with pytest.raises(WorkbenchError, match="share a key or title"):
        Table("t", "", [Column("x", "same"), Column("y", "same")], [])


def test_setting_difference_names_theirs_where_it_differs():
    theirs = Setting("3B", TINY.corpus, "128 x 5")
    assert setting_difference(TINY, theirs) == "model: 3B; budget: 128 x 5"
    assert setting_difference(TINY, TINY) == "none"


def test_conditions_beside_published(scores):
    table = conditions_table(scores, TINY)
    shown = table.readable()
    assert (shown != "").all(axis=None)
    row = shown[(shown["condition"] == "search_r1") & (shown["metric"] == "EM")].iloc[0]
    assert row["questions"] == "1-hop, single"
    assert row["ours"] == "0.670 [0.620, 0.720] (200 x 3)"
    assert (row["published"], row["source"]) == ("0.352 (sd 0.019)", "S1 Table 1, NQ, Search-R1")
    assert "model: Qwen2.5-3B-Instruct" in row["difference in setting: theirs"]
    oo = shown[(shown["condition"] == "oo") & (shown["questions"] == "2-hop, chain")]
    assert oo["published"].tolist() == ["not published", "0.573"], "S3 prints F1 only"
    assert "World Factbook" in table.caption
    own = conditions_table(scores.assign(condition="mine"), TINY).readable()
    assert set(own["published"]) == {"not published"}


def test_votes_beside_published(votes):
    shown = votes_table(votes, TINY).readable().set_index("rule")
    assert shown["published"].tolist() == ["0.516", "0.620", "0.711", "0.742"]
    assert shown.loc["majority", "minus majority"] == "reference"
    numbers = votes_table(votes, TINY).numbers().set_index("rule")
    assert numbers.loc["majority", "delta_low"] == "reference"
    assert numbers.loc["rgv", "delta_low"] == pytest.approx(0.01)
    assert shown.loc["rgv", "minus majority"] == "0.030 [0.010, 0.050] (240)"
    assert shown.loc["majority", "share of questions tied"] == "0.11"
    assert shown["source"].iloc[0].startswith("S2 Table 1, BrowseComp-Plus")
