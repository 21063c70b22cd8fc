"""``workbench questions``: building from a shell, and checking an item file."""

import json
from dataclasses import asdict

import pandas as pd
import pytest
from typer.testing import CliRunner

from workbench.cli import app
from workbench.errors import WorkbenchError
from workbench.params.validate import validate
from workbench.params.yamlfile import parse_override, read_yaml
from workbench.questions.categories import CATEGORIES
from workbench.questions.graph import Evidence, Item, Node
from workbench.questions.sources.command import PARAMS
from workbench.questions.sources.settings import SourceConfig
from workbench.questions.store import load_items
from workbench.reporting.published import FOLDER
from workbench.runs import project_root


def _run(*arguments):
    return CliRunner().invoke(app, ["questions", *map(str, arguments)], catch_exceptions=False)


def test_build(files, tmp_path):
    params = tmp_path / "few.yaml"
    params.write_text(
        "counts:\n  train: {'1-hop, single': 3, '4-hop-1, chain': 2}\n"
        "  test: {'2-hop, wide': 900}\n"
    )
    done = _run("build", *files, "--out", tmp_path, "--params", params, "--set", "seed=3")
    assert done.exit_code == 0
    assert "train: 5 questions in 2 categories" in done.output
    assert "excluded graphs: graph shortcut: " in done.output
    assert "short: test, 2-hop, wide, any chunks: " in done.output
    assert {i.split for i in load_items(tmp_path / "items.jsonl")} == {"train", "test"}


def test_the_committed_params_are_the_defaults_and_those_the_paper_s_numbers():
    document = read_yaml(project_root() / PARAMS)
    config = validate(SourceConfig, document)
    assert config == SourceConfig()
    assert sum(config.counts["train"].values()) == 14_000
    assert sum(config.counts["test"].values()) == 1_200
    assert (config.max_objects, config.chunks.words, config.chunks.boundary) == (1.5, 100, "word")
    table = pd.read_csv(FOLDER / "retrieval_credit" / "table_4.csv")
    for split, column in (("train", "Train"), ("test", "Dev")):
        rows = table[(table["split"] == column) & table["category"].isin(CATEGORIES)]
        assert config.counts[split] == dict(zip(rows["category"], rows["value"]))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("counts={train: {'5-hop': 1}}", "no category '5-hop'"),
        ("counts={train: {'1-hop, single': -1}}", "must not be negative"),
        ("counts={dev: {'1-hop, single': 1}}", "counts"),
        ("ignored=[country]", "no property id"),
        ("max_object=1.5", "did you mean 'max_objects'"),
        ("language=English", "language"),
    ],
)
def test_bad_settings_are_refused(override, message):
    document = read_yaml(project_root() / PARAMS).merged(parse_override(override))
    with pytest.raises(WorkbenchError, match=message):
        validate(SourceConfig, document)


def _item(name, **changes):
    evidence = (Evidence("p", 1, ((0, 4),)),)
    first = Node("v1", "Who?", ("Åse",), evidence)
    second = Node("v2", "Of #1?", ("Oslo",), evidence, ("v1",))
    raw = asdict(Item(name, "Of whom?", ("Oslo",), "2-hop, chain", (first, second), "train"))
    node = {**raw["nodes"][0], **changes}
    return {**raw, "nodes": [node, raw["nodes"][1]]}


def test_check_names_every_graph_that_cannot_be_used(tmp_path):
    lines = [
        _item("good"),
        _item("cycle", prerequisites=["v2"]),
        _item("missing", prerequisites=["v7"]),
        _item("span", evidence=[{"page_id": "p", "paragraph": 1, "mentions": [[4, 4]]}]),
        _item("answer", answers=[" "]),
        _item("source", evidence=[]),
        _item("good"),
        {"question": "no graph"},
    ]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "\n{\n")
    done = _run("check", path)
    assert done.exit_code == 1
    told = done.output.splitlines()
    assert told[-1] == "1 of 9 items can be used"
    for name in ("cycle", "missing", "span", "answer", "source", "good", "line 8", "line 10"):
        assert f"  {name}" in told
    path.write_text(json.dumps(lines[0]) + "\n")
    assert _run("check", path).exit_code == 0
    with pytest.raises(WorkbenchError, match="no such file"):
        _run("check", tmp_path / "none.jsonl")
