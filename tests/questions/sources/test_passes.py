"""The passes over KILT and the dump: what lands in the work file, resuming, bounded memory."""

import json
import tracemalloc

import pytest

from workbench.errors import WorkbenchError
from workbench.questions.sources import passes
from workbench.questions.sources.passes import Members, read_dump, read_pages
from workbench.questions.sources.work import Work

ITEM = "<http://www.wikidata.org/entity/{}>"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


def _page(number, qid=None, title=None, **more):
    info = {"wikidata_id": f"Q{qid}"} if qid else {}
    title = title or f"Page {number}"
    record = {
        "wikipedia_id": str(number), "wikipedia_title": title, "text": [title, "x"],
        "anchors": [], "wikidata_info": info, **more,
    }  # fmt: skip
    return json.dumps(record)


def _fact(s, p, o):
    value = ITEM.format(f"Q{o}") if o else "_:genid1"
    return f"{ITEM.format(f'Q{s}')} <http://www.wikidata.org/prop/direct/P{p}> {value} ."


def _label(entity, text, language="en"):
    return f'{ITEM.format(entity)} {LABEL} "{text}"@{language} .'


@pytest.fixture
def work(tmp_path):
    with Work(tmp_path / "work.sqlite") as opened:
        yield opened


def _rows(work, query):
    return work.db.execute(query).fetchall()


def test_members():
    members = Members([3, 800, 64])
    assert [n for n in range(1000) if n in members] == [3, 64, 800]
    assert 3 not in Members([])


def test_pages_and_what_is_refused_of_them(work, write, tmp_path):
    lines = [_page(1, 10), "{broken", _page(2), _page(1, 11), "", '{"wikipedia_id": "9"}']
    done = read_pages(work, write(tmp_path / "k.json", lines), 2)
    assert (done.done, done.line, done.broken) == (True, 6, None)
    assert _rows(work, "SELECT page, qid, line, title FROM pages") == [
        (1, 10, 1, "Page 1"), (2, None, 3, "Page 2"),
    ]  # fmt: skip
    assert [r[:4] for r in work.refusals()] == [
        ("pages", 2, "", "not JSON"),
        ("pages", 4, "1", "a page of this id came before"),
        ("pages", 6, "9", "no wikipedia_title"),
    ]


def _dump(work, write, tmp_path, lines, shard=100, name="t.nt"):
    if not work.get("pass:pages"):
        pages = [_page(1, 10), _page(2, 20), _page(3, 30)]
        read_pages(work, write(tmp_path / "k.json", pages), 100)
    return read_dump(work, write(tmp_path / name, lines), "en", shard)


DUMP = [
    _label("Q10", "ten"), _label("Q10", "zehn", "de"), _fact(10, 1, 20), _fact(10, 1, 99),
    _fact(10, 2, None),
    _label("Q99", "no page"), _fact(99, 1, 10), _fact(99, 1, 20), _fact(99, 1, 30),
    _fact(20, 2, 30), _label("P1", "first"), _label("Q20", "twenty"),
]  # fmt: skip


@pytest.mark.parametrize("shard", [1, 3, 100])
def test_facts_of_entities_with_a_page_and_counts_over_the_whole_dump(work, write, tmp_path, shard):
    _dump(work, write, tmp_path, DUMP, shard)
    facts = _rows(work, "SELECT s, p, max(o, 0) FROM facts ORDER BY s, p, o")
    assert facts == [(10, 1, 20), (10, 1, 99), (10, 2, 0), (20, 2, 30)]
    properties = _rows(work, "SELECT * FROM properties ORDER BY pid")
    assert properties == [(1, "first", 2, 5), (2, None, 2, 2)]
    assert _rows(work, "SELECT qid, label FROM terms") == [(10, "ten"), (20, "twenty")]


def test_lines_that_are_no_triples_are_counted_with_their_numbers(work, write, tmp_path):
    lines = [DUMP[0], "garbage", *DUMP[1:4], '<http://x> <http://y> "open', DUMP[4]]
    done = _dump(work, write, tmp_path, lines)
    assert (done.line, done.broken) == (7, None)
    assert [r[:2] + r[3:4] for r in work.refusals()] == [
        ("dump", 2, "not N-Triples: no valid subject"),
        ("dump", 6, "not N-Triples: no valid object"),
    ]
    assert len(_rows(work, "SELECT * FROM facts")) == 3


def test_a_dump_that_breaks_off_inside_a_line_goes_on_when_it_is_longer(work, write, tmp_path):
    whole = "".join(line + "\n" for line in DUMP)
    path = tmp_path / "t.nt"
    cut = whole.index(DUMP[3]) + 90
    _dump(work, write, tmp_path, [])  # an empty dump is read to its end
    work.forget("dump", "facts")
    path.write_text(whole[:cut])
    first = read_dump(work, path, "en", 100)
    assert first.done and first.line == 3
    assert first.broken.startswith("breaks off inside line 4: not N-Triples: no valid object")
    assert read_dump(work, path, "en", 100) == first
    path.write_text(whole)
    second = read_dump(work, path, "en", 100)
    assert (second.line, second.broken) == (12, None)
    assert len(_rows(work, "SELECT * FROM facts")) == 4 and not list(work.refusals())


def test_what_stands_before_a_broken_stream_is_kept(work, write, tmp_path):
    packed = write(tmp_path / "whole.nt.bz2", DUMP).read_bytes()
    (tmp_path / "t.nt.bz2").write_bytes(packed[:-30])
    read_pages(work, write(tmp_path / "k.json", [_page(1, 10)]), 100)
    done = read_dump(work, tmp_path / "t.nt.bz2", "en", 100)
    assert "after line" in done.broken and 0 < done.line < len(DUMP)
    assert (10, 1, 20) in _rows(work, "SELECT * FROM facts")


def test_another_file_or_language_is_refused(work, write, tmp_path):
    _dump(work, write, tmp_path, DUMP)
    with pytest.raises(WorkbenchError, match="the pass over dump was begun with"):
        read_dump(work, tmp_path / "t.nt", "de", 100)
    with pytest.raises(WorkbenchError, match="take another --out"):
        _dump(work, write, tmp_path, DUMP[:5])
    with pytest.raises(WorkbenchError, match="the pass over dump was begun with"):
        _dump(work, write, tmp_path, DUMP, name="u.nt")


def test_a_file_that_is_no_work_file_is_refused(tmp_path):
    (tmp_path / "w").write_bytes(b"text " * 100)
    with pytest.raises(WorkbenchError, match="not a work file.*delete it"):
        Work(tmp_path / "w")
    with Work(tmp_path / "v") as work:
        work.put("schema", 0)
        work.db.commit()
    with pytest.raises(WorkbenchError, match="work file of version 0"):
        Work(tmp_path / "v")


@pytest.mark.parametrize("stop", [4, 8, 11])
def test_a_pass_that_dies_goes_on_after_its_last_shard(work, write, tmp_path, monkeypatch, stop):
    _dump(work, write, tmp_path, DUMP, 1)
    unbroken = {t: _rows(work, f"SELECT * FROM {t}") for t in ("facts", "terms", "properties")}
    path = tmp_path / "other.sqlite"
    parse = passes.parse_line
    count = iter(range(1, 100))

    def dying(line, language):
        if next(count) == stop:
            raise KeyboardInterrupt
        return parse(line, language)

    monkeypatch.setattr(passes, "parse_line", dying)
    with Work(path) as other, pytest.raises(KeyboardInterrupt):
        _dump(other, write, tmp_path, DUMP, 1)
    monkeypatch.setattr(passes, "parse_line", parse)
    with Work(path) as other:
        begun = other.get("pass:dump")
        assert (begun or {"line": 0})["line"] == {4: 0, 8: 5, 11: 10}[stop]
        _dump(other, write, tmp_path, DUMP, 1)
        assert {t: _rows(other, f"SELECT * FROM {t}") for t in unbroken} == unbroken


def test_a_dump_of_fifty_thousand_lines_needs_no_more_memory_than_what_is_held(
    work, tmp_path, monkeypatch
):
    monkeypatch.setattr(passes._Dump, "HELD", 500)
    path = tmp_path / "long.nt"
    pages = tmp_path / "k.json"
    pages.write_text("".join(_page(n, n) + "\n" for n in range(1, 5_001)))
    read_pages(work, pages, 1_000)
    with path.open("w") as out:
        for number in range(1, 5_001):
            lines = [_label(f"Q{number}", f"entity {number} " + "x" * 100)]
            lines += [_fact(number, p, number + p) for p in range(1, 10)]
            out.writelines(line + "\n" for line in lines)
    assert path.stat().st_size > 6e6
    tracemalloc.start()
    done = read_dump(work, path, "en", 1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert done.line == 50_000 and peak < 1.5e6
    assert _rows(work, "SELECT count(*) FROM facts") == [(45_000,)]
