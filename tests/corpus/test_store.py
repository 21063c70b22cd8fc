"""Chunks on disk: what comes back, what the hash covers, what is refused."""

import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from workbench.corpus.records import Chunk, Extent
from workbench.corpus.store import (
    ChunkWriter,
    corpus_hash,
    load_corpus,
    read_batches,
    save_corpus,
)
from workbench.errors import WorkbenchError

CHUNKS = [
    Chunk("a#0", "a", "Åland", "x y\nz 😀", (Extent(1, 0, 3), Extent(2, 4, 7))),
    Chunk("a#1", "a", "Åland", "<answer>Oslo</answer>", (Extent(2, 8, 29),)),
    Chunk("7", "7", "no extents", "", ()),
]


def test_round_trip(tmp_path):
    path = tmp_path / "new" / "corpus.parquet"
    saved = save_corpus(path, CHUNKS)
    loaded = load_corpus(str(path))
    assert loaded == saved
    assert loaded.chunks == CHUNKS
    assert loaded.by_id["a#1"] is loaded.chunks[1]
    assert [p.name for p in path.parent.iterdir()] == ["corpus.parquet"]


def _changes():
    first = CHUNKS[0]
    yield [CHUNKS[1], CHUNKS[0], CHUNKS[2]]
    yield CHUNKS[:2]
    for changed in (
        replace(first, chunk_id="a#9"),
        replace(first, page_id="b"),
        replace(first, title="Aland"),
        replace(first, text="x y z 😀"),
        replace(first, extents=(Extent(1, 0, 3), Extent(2, 4, 8))),
        replace(first, extents=(Extent(1, 0, 3),)),
    ):
        yield [changed, *CHUNKS[1:]]


def test_the_hash_covers_order_and_every_part_of_a_chunk():
    hashes = [corpus_hash(chunks) for chunks in _changes()]
    assert len({corpus_hash(CHUNKS), *hashes}) == len(hashes) + 1
    assert corpus_hash(list(CHUNKS)) == corpus_hash(CHUNKS)


def test_a_corpus_needs_chunks_with_ids_of_their_own(tmp_path):
    with pytest.raises(WorkbenchError, match="without chunks.*corpus.fields"):
        save_corpus(tmp_path / "c.parquet", [])
    with pytest.raises(WorkbenchError, match="two chunks have the id 'a#0'"):
        save_corpus(tmp_path / "c.parquet", [*CHUNKS, CHUNKS[0]])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_corpus_says_what_makes_one(tmp_path):
    with pytest.raises(WorkbenchError, match="no corpus here -- run the notebook"):
        load_corpus(tmp_path / "none.parquet")


@pytest.mark.parametrize("keep", [0, 3, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path, keep):
    path = tmp_path / "c.parquet"
    save_corpus(path, CHUNKS)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if keep < 1 else keep])
    with pytest.raises(WorkbenchError, match=re.escape(str(path)) + ": not a whole Parquet file"):
        load_corpus(path)


@pytest.mark.parametrize(("schema", "shown"), [("2", "'2'"), (None, "None")])
def test_another_schema_version_is_refused(tmp_path, schema, shown):
    path = tmp_path / "c.parquet"
    save_corpus(path, CHUNKS)
    metadata = {} if schema is None else {"schema": schema}
    pq.write_table(pq.read_table(path).replace_schema_metadata(metadata), path)
    with pytest.raises(WorkbenchError, match=f"corpus schema {shown}, this version reads '1'"):
        load_corpus(path)


def test_content_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "c.parquet"
    save_corpus(path, CHUNKS)
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 2).replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(WorkbenchError, match="does not match its recorded hash"):
        load_corpus(path)


def test_a_corpus_written_piece_by_piece_is_the_same(tmp_path):
    with ChunkWriter(tmp_path / "new" / "c.parquet") as writer:
        writer.write(CHUNKS[:1])
        writer.write(CHUNKS[1:])
    whole = save_corpus(tmp_path / "whole.parquet", CHUNKS)
    assert load_corpus(writer.path) == whole
    assert (writer.rows, writer.sha256) == (3, corpus_hash(CHUNKS))
    assert [c for batch in read_batches(writer.path, rows=2) for c in batch] == CHUNKS


def test_a_corpus_whose_writing_fails_is_not_there(tmp_path):
    with pytest.raises(KeyError), ChunkWriter(tmp_path / "c.parquet") as writer:
        writer.write(CHUNKS)
        raise KeyError
    assert list(tmp_path.iterdir()) == []
