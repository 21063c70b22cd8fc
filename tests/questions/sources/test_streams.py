"""Lines of compressed files: the same as of plain ones, and what is kept of a broken file."""

import bz2
import gzip

import pytest

from workbench.errors import WorkbenchError
from workbench.questions.sources.streams import Lines, identity

LINES = [f"line {n} {'x' * (n % 97)} ä\n".encode() for n in range(1, 2001)]
DATA = b"".join(LINES)


@pytest.fixture(params=["f.txt", "f.gz", "f.bz2"])
def path(request, tmp_path):
    pack = {"f.gz": gzip.compress, "f.bz2": bz2.compress}.get(request.param, bytes)
    half = len(b"".join(LINES[:1200]))
    target = tmp_path / request.param
    target.write_bytes(pack(DATA[:half]) + pack(DATA[half:]))  # two streams, as pbzip2 writes
    return target


def test_every_line_with_its_number(path):
    lines = Lines(path)
    assert list(lines) == list(enumerate(LINES, start=1))
    assert (lines.number, lines.broken) == (2000, None)


@pytest.mark.parametrize("start", [1, 1999, 2000, 3000])
def test_lines_before_the_start_are_passed_over(path, start):
    assert list(Lines(path, start)) == list(enumerate(LINES, start=1))[start:]


@pytest.mark.parametrize("name", ["f.gz", "f.bz2"])
def test_what_stands_before_a_break_is_kept_and_the_line_is_named(tmp_path, name):
    pack = gzip.compress if name == "f.gz" else bz2.compress
    first, second = pack(b"".join(LINES[:1200])), pack(b"".join(LINES[1200:]))
    cut = tmp_path / name
    cut.write_bytes(first + second[: len(second) // 2])
    lines = Lines(cut)
    given = list(lines)
    assert 1200 <= len(given) < 2000
    assert given == list(enumerate(LINES, start=1))[: len(given)]
    assert lines.broken.startswith(f"breaks off or is corrupt after line {len(given)}: ")


@pytest.mark.parametrize("name", ["f.gz", "f.bz2"])
def test_damaged_bytes_end_the_file_there(tmp_path, name):
    pack = gzip.compress if name == "f.gz" else bz2.compress
    first, second = pack(b"".join(LINES[:1200])), bytearray(pack(b"".join(LINES[1200:])))
    second[len(second) // 2 :] = bytes(len(second) - len(second) // 2)
    path = tmp_path / name
    path.write_bytes(first + second)
    lines = Lines(path)
    given = list(lines)
    assert given == list(enumerate(LINES, start=1))[: len(given)] and len(given) >= 1200
    assert f"after line {len(given)}" in lines.broken


def test_the_last_line_needs_no_end(tmp_path):
    (tmp_path / "f").write_bytes(b"a\nb")
    assert list(Lines(tmp_path / "f")) == [(1, b"a\n"), (2, b"b")]


def test_a_missing_file(tmp_path):
    with pytest.raises(WorkbenchError, match="none.nt: no such file"):
        Lines(tmp_path / "none.nt")


def test_identity(tmp_path):
    (tmp_path / "f.nt").write_bytes(b"abc")
    assert identity(tmp_path / "f.nt") == {"name": "f.nt", "bytes": 3}
