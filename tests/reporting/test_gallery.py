"""The folder of a study's tables and figures, and the tables made for it."""

import json
from xml.etree import ElementTree

import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.grpo.config import GRPOConfig
from workbench.methods.registry import load_condition
from workbench.reporting.figures import vote_figure
from workbench.reporting.gallery import Gallery
from workbench.reporting.manifest import content_hash
from workbench.reporting.study import differences_table, our_setting, settings_table
from workbench.reporting.tables import Column, Table


def test_index_names_every_file_with_its_hash(tmp_path, votes):
    gallery = Gallery(tmp_path, "A <study>")
    gallery.table(Table("scores", "A & B", [Column("x", "x")], [{"x": "<b>"}]))
    gallery.figure(vote_figure(votes), "voting", "Votes")
    gallery.sentences("statements", ["EM < F1"])
    gallery.finish()
    index = json.loads((tmp_path / "index.json").read_text())
    assert [e["name"] for e in index] == ["scores", "voting", "statements"]
    listed = {name: sha for e in index for name, sha in e["files"].items()}
    present = {p.name for p in tmp_path.iterdir()} - {"index.json", "index.html"}
    assert set(listed) == present
    assert all(content_hash(tmp_path / name) == sha for name, sha in listed.items())
    page = (tmp_path / "index.html").read_text()
    assert "A &lt;study&gt;" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert "EM &lt; F1" in page and 'src="voting.svg"' in page
    ElementTree.parse(tmp_path / "voting.svg")
    with pytest.raises(WorkbenchError, match="two entries"):
        gallery.sentences("voting", [])


def test_a_gallery_takes_over_all_that_another_holds(tmp_path, votes):
    one, other = Gallery(tmp_path / "one", "One"), Gallery(tmp_path / "other", "Other")
    one.table(Table("scores", "A & B", [Column("x", "x")], [{"x": "<b>"}]))
    one.figure(vote_figure(votes), "voting", "Votes")
    one.sentences("statements", ["EM < F1"])
    (tmp_path / "one" / "view.html").write_text("<p>view</p>")
    one.page(tmp_path / "one" / "view.html", "view", "A view")
    with pytest.raises(WorkbenchError, match="no finished gallery"):
        other.adopt(tmp_path / "one")
    one.finish()
    other.table(Table("own", "", [Column("x", "x")], [{"x": 1}]))
    assert other.adopt(tmp_path / "one") == ["scores", "voting", "statements", "view"]
    other.finish()
    first, second = (
        json.loads((tmp_path / name / "index.json").read_text()) for name in ("one", "other")
    )
    assert second[1:] == first and second[0]["cells"] == {"head": ["x"], "rows": [["1"]]}
    for entry in first:
        for file in entry["files"]:
            copied = (tmp_path / "other" / file).read_bytes()
            assert copied == (tmp_path / "one" / file).read_bytes()
    page = (tmp_path / "other" / "index.html").read_text()
    assert "<td>&lt;b&gt;</td>" in page and "EM &lt; F1" in page and 'href="view.html"' in page
    (tmp_path / "one" / "statements.md").write_text("changed")
    with pytest.raises(WorkbenchError, match="not what the gallery wrote"):
        Gallery(tmp_path / "third", "Third").adopt(tmp_path / "one")


def test_settings_stand_beside_the_papers_and_own_settings_win():
    grpo = GRPOConfig(steps=5, questions_per_step=16, mini_batch_questions=None)
    table = settings_table([load_condition("search_r1")], grpo, "a model").readable()
    rows = table.set_index("setting")[["ours", "published"]]
    assert rows.loc["batch questions"].tolist() == ["16", "128"]
    assert rows.loc["mini batch questions"].tolist() == ["16", "32"]
    assert rows.loc["reward", "ours"] == "search_r1 (direct_bonus 0.5, delta 1e-06)"
    assert "not a setting here" not in set(rows["ours"])


def test_a_machine_path_never_reaches_a_table():
    grpo = GRPOConfig(steps=5)
    setting = our_setting("/" + "home/me/policy", 2_000_000, "embedded", 9, "bm25", grpo, 3)
    assert setting.model == "policy, 2.0 M parameters"
    assert setting.budget == "batch 128 x 5 rollouts, 5 steps, 3 runs"


def test_differences_say_what_their_interval_shows(differences):
    table = differences_table(differences, ["category"]).readable()
    assert set(table["shown"]) == {"better"}
    wide = differences.assign(low=-0.1)
    assert set(differences_table(wide, ["category"]).readable()["shown"]) == {"no difference shown"}
    assert differences_table(pd.DataFrame(), ["category"]).readable().empty
