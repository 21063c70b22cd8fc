"""Chunks on disk: one Parquet file whose content hash ties indices and records to it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import WorkbenchError
from .records import Chunk, Extent

SCHEMA_VERSION = "1"


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
    for c in chunks:
        extents = [(e.paragraph, e.start, e.end) for e in c.extents]
        digest.update(json.dumps([c.chunk_id, c.page_id, c.title, c.text, extents]).encode())
    return digest.hexdigest()


def save_corpus(path: Path | str, chunks: list[Chunk]) -> Corpus:
    """Write the chunks as Parquet (complete or not at all) and return the corpus.

    Raises
    ------
    WorkbenchError
        there is no chunk, or two chunks have one id.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not chunks:
        raise WorkbenchError("a corpus without chunks", where=path, fix="check corpus.fields")
    corpus = Corpus(list(chunks), corpus_hash(chunks))
    if len(corpus.by_id) < len(chunks):
        twice = Counter(c.chunk_id for c in chunks).most_common(1)[0][0]
        raise WorkbenchError(
            f"two chunks have the id {twice!r}", where=path, fix="give every chunk its own id"
        )
    table = pa.table(
        {
            "chunk_id": [c.chunk_id for c in chunks],
            "page_id": [c.page_id for c in chunks],
            "title": [c.title for c in chunks],
            "text": [c.text for c in chunks],
            "extents": [[[e.paragraph, e.start, e.end] for e in c.extents] for c in chunks],
        }
    ).replace_schema_metadata({"schema": SCHEMA_VERSION, "sha256": corpus.sha256})
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    pq.write_table(table, part, compression="zstd")
    os.replace(part, path)
    return corpus


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
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise WorkbenchError(
            f"not a whole Parquet file: {error}", where=path, fix="delete it and build it again"
        ) from error
    metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    if metadata.get("schema") != SCHEMA_VERSION:
        raise WorkbenchError(
            f"corpus schema {metadata.get('schema')!r}, this version reads {SCHEMA_VERSION!r}",
            where=path,
            fix="build the corpus again",
        )
    columns = [table[n].to_pylist() for n in ("chunk_id", "page_id", "title", "text", "extents")]
    chunks = [
        Chunk(i, p, t, x, tuple(Extent(*e) for e in es))
        for i, p, t, x, es in zip(*columns, strict=True)
    ]
    found = corpus_hash(chunks)
    if found != metadata.get("sha256"):
        raise WorkbenchError("the content does not match its recorded hash", where=path)
    return Corpus(chunks, found)
