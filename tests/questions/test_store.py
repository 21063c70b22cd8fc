"""Question graphs on disk and what is refused, with file and line."""

import json
from dataclasses import asdict, replace

import pytest

from workbench.errors import WorkbenchError
from workbench.questions.graph import Evidence, Item, Node
from workbench.questions.store import load_items, load_usable, save_items

ROOT = Node("v1", "Who?", ("Åse",), (Evidence("p", 2, ((3, 6), (9, 12))),), (), "p.capital")
END = Node("v2", "Of #1?", ("Oslo", "Christiania"), (Evidence("q", 1, ((0, 4),)),), ("v1",))
ITEMS = [
    Item(
        "2:b",
        "Of whom?",
        END.answers,
        "2-hop, chain",
        (ROOT, END),
        "test",
        4,
        True,
        meta={"k": [1]},
    ),  # fmt: skip
    Item("1:a", "Who\u2028said “hi”?", ("Åse",), "1-hop, single", (ROOT,), "train", roots="named"),
    Item("0:free", "No graph?", ("yes",), "1-hop, single", (), "calibration"),
]


def _write(path, *changes, item=ITEMS[1]):
    """A good line, then the item with each change to its dictionary."""
    lines = [json.dumps(asdict(ITEMS[0]))]
    for change in changes:
        raw = asdict(item)
        change(raw)
        lines.append(json.dumps(raw))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_round_trip_keeps_order_and_types(tmp_path):
    path = tmp_path / "new" / "items.jsonl"
    save_items(path, iter(ITEMS))
    assert load_items(path) == ITEMS
    assert load_items(str(path), split="train") == ITEMS[1:2]
    assert load_items(path, split="validation") == []
    assert [p.name for p in path.parent.iterdir()] == ["items.jsonl"]
    assert "Åse" in path.read_text(encoding="utf-8")


def test_saved_bytes_are_reproducible(tmp_path):
    for name in "ab":
        save_items(tmp_path / name, ITEMS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_bare_string_is_one_answer(tmp_path):
    def bare(raw):
        raw["answers"] = raw["nodes"][0]["answers"] = "Oslo"

    item = load_items(_write(tmp_path / "i", bare))[1]
    assert item.answers == item.nodes[0].answers == ("Oslo",)


def test_roots_are_described_where_a_line_does_not_say(tmp_path):
    save_items(tmp_path / "i", ITEMS)
    assert [i.roots for i in load_items(tmp_path / "i")] == ["described", "named", "described"]
    item = load_items(_write(tmp_path / "j", lambda raw: raw.pop("roots")))[1]
    assert item == replace(ITEMS[1], roots="described")


def test_blank_lines_are_skipped_and_keep_the_count(tmp_path):
    path = tmp_path / "items.jsonl"
    good = json.dumps(asdict(ITEMS[0]))
    path.write_text(f"\n{good}\n  \n")
    assert load_items(path) == ITEMS[:1]
    path.write_text(f"\n{good}\n\n{{\n")
    with pytest.raises(WorkbenchError, match=r"items\.jsonl:4: not a question graph"):
        load_items(path)


def _set(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(raw):
        for key in keys:
            raw = raw[key]
        raw[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("question", " "), "item 1:a: an empty question"),
        (_set("question", 7), "item 1:a: the question or an answer is not text"),
        (_set("answers", []), "item 1:a: no answer"),
        (_set("answers", ["Oslo", " "]), "item 1:a: an empty answer"),
        (_set("answers", ""), "item 1:a: an empty answer"),
        (_set("answers", [1914]), "not text -- write years and numbers as strings"),
        (_set("answers", None), "not a question graph"),
        (_set("split", "dev"), r"item 1:a: unknown split \('dev'\) -- one of .*'calibration'"),
        (_set("roots", "hidden"), r"item 1:a: unknown roots \('hidden'\) -- one of .*'named'"),
        (_set("item_id", ["1:a"]), "an id that is not text"),
        (_set("colour", "red"), "not a question graph.*colour"),
        (_set("nodes", "v1"), "not a question graph"),
        (_set("nodes", 0, "node_id", 1), "item 1:a: an id that is not text"),
        (_set("nodes", 0, "question", ""), "item 1:a, node v1: an empty question"),
        (_set("nodes", 0, "answers", []), "item 1:a, node v1: no answer"),
        (_set("nodes", 0, "evidence", []), "item 1:a, node v1: a node without evidence"),
        (_set("nodes", 0, "evidence", 0, "mentions", []), "node v1: evidence without a mention"),
        (_set("nodes", 0, "evidence", 0, "mentions", [3]), "not a question graph"),
        (_set("nodes", 0, "evidence", 0, "mentions", [[6, 3]]), "a span outside its passage"),
        (_set("nodes", 0, "evidence", 0, "page_id", ""), "node v1: evidence without a passage"),
        (_set("nodes", 0, "prerequisites", ["v9"]), r"node v1: a missing prerequisite \(v9\)"),
        (_set("nodes", 0, "prerequisites", ["v1"]), "item 1:a: a cycle of prerequisites"),
        (lambda raw: raw.pop("question"), "not a question graph.*question"),
        (lambda raw: raw["nodes"][0].pop("evidence"), "not a question graph.*evidence"),
    ],
)
def test_a_bad_item_is_named_with_its_line(tmp_path, change, message):
    with pytest.raises(WorkbenchError, match=rf"items\.jsonl:2: .*{message}"):
        load_items(_write(tmp_path / "items.jsonl", change))


def test_a_cycle_is_named(tmp_path):
    change = _set("nodes", 0, "prerequisites", ["v2"])
    with pytest.raises(WorkbenchError, match=r":2: item 2:c: a cycle of prerequisites"):
        load_items(_write(tmp_path / "i", change, item=replace(ITEMS[0], item_id="2:c")))


def test_an_id_that_occurs_twice_is_named(tmp_path):
    path = _write(tmp_path / "i", lambda raw: None, lambda raw: None)
    with pytest.raises(WorkbenchError, match="i:3: item 1:a is on line 2 already"):
        load_items(path)


@pytest.mark.parametrize("line", [b"{", b"[]", b"5", b'"text"', b"null", b'{"nodes": "\xff"}'])
def test_a_line_that_is_no_item_is_named(tmp_path, line):
    path = tmp_path / "items.jsonl"
    path.write_bytes(json.dumps(asdict(ITEMS[0])).encode() + b"\n" + line + b"\n")
    with pytest.raises(WorkbenchError, match=r"items\.jsonl:2: not a question graph"):
        load_items(path)


def test_a_bad_line_is_found_whatever_split_is_asked_for(tmp_path):
    path = _write(tmp_path / "i", _set("answers", []))
    with pytest.raises(WorkbenchError, match="i:2"):
        load_items(path, split="test")


def test_a_missing_file_and_an_unknown_split(tmp_path):
    with pytest.raises(WorkbenchError, match="no questions here -- run the notebook"):
        load_items(tmp_path / "none.jsonl")
    save_items(tmp_path / "i", ITEMS)
    with pytest.raises(WorkbenchError, match="unknown split 'dev' -- one of .*'calibration'"):
        load_items(tmp_path / "i", split="dev")


def test_a_file_is_parted_into_usable_items_and_refused_ids(tmp_path):
    path = tmp_path / "items.jsonl"
    good = [json.dumps(asdict(item)) for item in ITEMS]
    empty = json.dumps(asdict(replace(ITEMS[1], item_id="1:e", answers=())))
    lines = [good[0], "", "{", empty, good[1], good[1], good[2], good[2][:50]]
    path.write_text("\n".join(lines) + "\n")
    kept, refused = load_usable(path)
    assert kept == ITEMS
    assert refused.pop("no answer") == ["1:e"] and refused.pop("two items of one id") == ["1:a"]
    ((reason, ids),) = refused.items()
    assert "not a question graph" in reason and ids == ["line 3", "line 8"]
    with pytest.raises(WorkbenchError, match="no such file"):
        load_usable(tmp_path / "none.jsonl")
