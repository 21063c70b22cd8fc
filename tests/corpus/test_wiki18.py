"""The wiki-18 reader: titles in quotes, blank and broken lines."""

import gzip
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.corpus.records import Chunk, Extent
from workbench.corpus.wiki18 import Wiki18Reader, split_contents
from workbench.errors import WorkbenchError


def row(identifier, contents):
    return json.dumps({"id": identifier, "contents": contents})


def write(path, *lines):
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_quoted_title_and_its_text(tmp_path):
    text = "Evan Morris was a lobbyist.\nHe died."
    path = write(tmp_path / "wiki.jsonl", row("7", f'"Evan Morris"\n{text}'))
    assert list(Wiki18Reader(path)) == [
        Chunk("7", "7", "Evan Morris", text, (Extent(1, 0, len(text)),))
    ]


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"Evan Morris"\nEvan Morris was', "Evan Morris", "Evan Morris was"),
        ("Evan Morris\nwas", "Evan Morris", "was"),
        ("Evan Morris", "Evan Morris", ""),
        ('"Evan Morris"', "Evan Morris", ""),
        ('""Heroes" (album)"\nby Bowie', '"Heroes" (album)', "by Bowie"),
        ('He said "no"\ntext', 'He said "no"', "text"),
        ('"Heroes" (album)\nby Bowie', '"Heroes" (album)', "by Bowie"),
        ('"\ntext', '"', "text"),
        ('""\ntext', "", "text"),
        ("", "", ""),
        ('"A"\n\nB\n"C"', "A", '\nB\n"C"'),
    ],
)
def test_titles(contents, title, text):
    assert split_contents(contents) == (title, text)


@given(title=st.text().filter(lambda t: "\n" not in t and t == t.strip()), text=st.text())
def test_a_title_in_quotes_comes_back(title, text):
    assert split_contents(f'"{title}"\n{text}') == (title, text)


def test_blank_lines_are_skipped_counted_and_warned_about(tmp_path):
    path = write(tmp_path / "wiki.jsonl", row("0", '"A"\na'), "", row("1", '"B"\nb'), "  ", "")
    reader = Wiki18Reader(path)
    with pytest.warns(UserWarning, match=r"wiki.jsonl: skipped 2 blank line\(s\): 2, 4"):
        titles = [c.title for c in reader]
    assert titles == ["A", "B"]
    assert reader.rows == 2 and reader.blank_lines == [2, 4]
    with pytest.warns(UserWarning):
        assert len(list(reader)) == 2  # a second pass counts anew
    assert reader.blank_lines == [2, 4]


def test_a_final_line_break_is_no_blank_line(tmp_path):
    path = write(tmp_path / "wiki.jsonl", row("0", '"A"\na'), "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(Wiki18Reader(path))) == 1


def test_lines_are_read_one_at_a_time(tmp_path):
    path = write(tmp_path / "wiki.jsonl", row("0", '"A"\na'), "{broken")
    chunks = iter(Wiki18Reader(path))
    assert next(chunks).title == "A"
    with pytest.raises(WorkbenchError, match="wiki.jsonl:2.*not JSON"):
        next(chunks)


def test_integer_ids_become_text(tmp_path):
    path = write(tmp_path / "wiki.jsonl", row(12, '"A"\na'))
    assert [c.chunk_id for c in Wiki18Reader(path)] == ["12"]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b'{"id": "1", "contents": "\\"A\\"', "not JSON"),
        (b'{"id": "1", "contents": "\xff"}', "not JSON"),
        (b'["id"]', "a list, not an object"),
        (b'{"contents": "A"}', "id is None"),
        (b'{"id": true, "contents": "A"}', "id is True"),
        (b'{"id": "1"}', "contents is None"),
        (b'{"id": "1", "contents": ["A"]}', "contents is"),
    ],
)
def test_a_bad_line_is_named_with_file_and_number(line, named, tmp_path):
    path = tmp_path / "wiki.jsonl"
    path.write_bytes(row("0", '"A"\na').encode() + b"\n\n" + line + b"\n")
    with pytest.raises(WorkbenchError, match=rf"wiki\.jsonl:3: {named}"):
        list(Wiki18Reader(path))


def test_gzip_whole_and_broken_off(tmp_path):
    path = tmp_path / "wiki.jsonl.gz"
    lines = "\n".join(row(str(i), f'"T{i}"\ntext {i * 7919}') for i in range(300)).encode()
    path.write_bytes(gzip.compress(lines))
    assert [c.title for c in Wiki18Reader(path)][-1] == "T299"
    path.write_bytes(gzip.compress(lines)[:-200])
    with pytest.raises(WorkbenchError, match="breaks off or is corrupt after line"):
        list(Wiki18Reader(path))
    path.write_bytes(b"no gzip")
    with pytest.raises(WorkbenchError, match="corrupt after line 0"):
        list(Wiki18Reader(path))


def test_no_file(tmp_path):
    with pytest.raises(WorkbenchError, match="no wiki-18 file here"):
        Wiki18Reader(tmp_path / "none.jsonl")
