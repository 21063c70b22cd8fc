"""Chunks on disk: one Parquet file whose content hash ties indices and records to it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import WorkbenchError
from .records import Chunk, Extent

SCHEMA_VERSION = "1"
COLUMNS = ("chunk_id", "page_id", "title", "text", "extents")


@dataclass(frozen=True)
class Corpus:
    """Chunks in row order and the SHA-256 over their ids, titles, texts and extents."""

    chunks: list[Chunk]
    sha256: str

    @cached_property
    def by_id(self) -> dict[str, Chunk]:
        """Chunk by ``chunk_id``."""
        return {c.chunk_id: c for c in self.chunks}


def corpus_hash(chunks: list[Chunk]) -> str:
    """Content hash; order counts, because an index refers to rows."""
    digest = hashlib.sha256()
    _hash_into(digest, chunks)
    return digest.hexdigest()


def _hash_into(digest, chunks: Iterable[Chunk]) -> None:
    for c in chunks:
        extents = [(e.paragraph, e.start, e.end) for e in c.extents]
        digest.update(json.dumps([c.chunk_id, c.page_id, c.title, c.text, extents]).encode())


class ChunkWriter:
    """Writes a corpus piece by piece, so that it need not fit into memory.

    A context manager: at its end the file, with the hash over everything written, takes its
    name; after an exception there is none.  That no two chunks have one id is for the caller
    to see to.  ``rows`` counts the chunks.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.rows = 0
        self._part = self.path.with_name(self.path.name + ".part")
        self._digest = hashlib.sha256()

    def __enter__(self) -> ChunkWriter:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = pa.string()
        fields = {name: text for name in COLUMNS[:-1]}
        fields[COLUMNS[-1]] = pa.list_(pa.list_(pa.int64()))
        self._schema = pa.schema(fields, metadata={"schema": SCHEMA_VERSION})
        self._writer = pq.ParquetWriter(self._part, self._schema, compression="zstd")
        return self

    def write(self, chunks: Sequence[Chunk]) -> None:
        """Append chunks; each call makes at least one row group."""
        import pyarrow as pa

        extents = [[[e.paragraph, e.start, e.end] for e in c.extents] for c in chunks]
        columns = [[getattr(c, name) for c in chunks] for name in COLUMNS[:-1]]
        self._writer.write_table(pa.table([*columns, extents], schema=self._schema))
        _hash_into(self._digest, chunks)
        self.rows += len(chunks)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._writer.add_key_value_metadata({"sha256": self.sha256})
        self._writer.close()
        if kind is None:
            os.replace(self._part, self.path)
        else:
            self._part.unlink(missing_ok=True)

    @property
    def sha256(self) -> str:
        """The hash over what has been written so far."""
        return self._digest.hexdigest()


def save_corpus(path: Path | str, chunks: list[Chunk]) -> Corpus:
    """Write the chunks as Parquet (complete or not at all) and return the corpus.

    Raises
    ------
    WorkbenchError
        there is no chunk, or two chunks have one id.
    """
    if not chunks:
        raise WorkbenchError("a corpus without chunks", where=path, fix="check corpus.fields")
    twice, number = Counter(c.chunk_id for c in chunks).most_common(1)[0]
    if number > 1:
        raise WorkbenchError(
            f"two chunks have the id {twice!r}", where=path, fix="give every chunk its own id"
        )
    with ChunkWriter(path) as writer:
        writer.write(chunks)
    return Corpus(list(chunks), writer.sha256)


def read_batches(path: Path | str, rows: int = 10_000) -> Iterator[list[Chunk]]:
    """The chunks of a file, some at a time and unchecked."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(rows, columns=list(COLUMNS)):
        yield _chunks(batch)


def _chunks(table) -> list[Chunk]:
    columns = [table[name].to_pylist() for name in COLUMNS]
    return [Chunk(i, p, t, x, tuple(Extent(*e) for e in es)) for i, p, t, x, es in zip(*columns)]


def load_corpus(path: Path | str) -> Corpus:
    """Read a corpus and check its schema version and content hash.

    Raises
    ------
    WorkbenchError
        the file is missing, is not whole, has another schema version or other content.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.is_file():
        raise WorkbenchError(
            "no corpus here", where=path, fix="run the notebook 01_corpus_and_index"
        )
    try:
        table, raw = pq.read_table(path), pq.read_metadata(path).metadata
    except (pa.ArrowInvalid, OSError) as error:
        raise WorkbenchError(
            f"not a whole Parquet file: {error}", where=path, fix="delete it and build it again"
        ) from error
    metadata = {k.decode(): v.decode() for k, v in (raw or {}).items()}
    if metadata.get("schema") != SCHEMA_VERSION:
        raise WorkbenchError(
            f"corpus schema {metadata.get('schema')!r}, this version reads {SCHEMA_VERSION!r}",
            where=path,
            fix="build the corpus again",
        )
    chunks = _chunks(table)
    found = corpus_hash(chunks)
    if found != metadata.get("sha256"):
        raise WorkbenchError("the content does not match its recorded hash", where=path)
    return Corpus(chunks, found)
