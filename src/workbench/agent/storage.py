"""Trajectories on disk: Parquet with a versioned schema, exact both ways.

Version 2, one row per trajectory: the fields of ``Trajectory`` by name, arrays as lists,
``topk_ids`` and ``topk_logprobs`` flattened with their width in ``topk``, searches as a list
of structs.  The version stands in the file's metadata under ``workbench.trajectories``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import WorkbenchError
from .trajectory import SearchRecord, Trajectory

VERSION = "2"
_KEY = b"workbench.trajectories"
_GROUP = 1024  # trajectories per row group
_SPAN = pa.list_(pa.int32())
_TEXTS = pa.list_(pa.string())
_SEARCH = pa.struct(
    {
        "query": pa.string(),
        "turn": pa.int32(),
        "query_span": _SPAN,
        "payload_span": _SPAN,
        "observation_span": _SPAN,
        "chunk_ids": _TEXTS,
        "scores": pa.list_(pa.float64()),
        "titles": _TEXTS,
        "texts": _TEXTS,
        "ignored_queries": _TEXTS,
        "observation_cut": pa.bool_(),
        "tool": pa.string(),
    }
)
_SCALARS = {
    "item_id": pa.string(),
    "group": pa.string(),
    "sample": pa.int32(),
    "seed": pa.int64(),
    "answer": pa.string(),
    "commit_index": pa.int32(),
    "valid": pa.bool_(),
    "invalid_reason": pa.string(),
    "truncated": pa.bool_(),
    "turns": pa.int32(),
    "invalid_actions": pa.int32(),
    "seconds": pa.float64(),
}
_ARRAYS = {
    "tokens": (pa.int32(), np.int32),
    "segments": (pa.uint8(), np.uint8),
    "logprobs": (pa.float32(), np.float32),
    "topk_ids": (pa.int32(), np.int32),
    "topk_logprobs": (pa.float32(), np.float32),
}
SCHEMA = pa.schema(
    [
        *_SCALARS.items(),
        *((name, pa.list_(arrow)) for name, (arrow, _) in _ARRAYS.items()),
        ("topk", pa.int32()),
        ("answer_span", _SPAN),
        ("searches", pa.list_(_SEARCH)),
    ],
    metadata={_KEY: VERSION.encode()},
)


def save_trajectories(path: str | Path, trajectories: Sequence[Trajectory]) -> Path:
    """Write ``trajectories``; the file appears under its name only when it is whole."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with pq.ParquetWriter(
            partial, SCHEMA, compression="zstd", write_page_checksum=True
        ) as writer:
            for start in range(0, max(len(trajectories), 1), _GROUP):
                writer.write_table(_table(trajectories[start : start + _GROUP]))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def load_trajectories(path: str | Path) -> list[Trajectory]:
    """Read what ``save_trajectories`` wrote, equal in every value and dtype.

    Raises
    ------
    WorkbenchError
        no such file, not Parquet or damaged, another schema version, a column missing or of
        another type, or arrays of a row that do not belong together.
    """
    path = Path(path)
    table = _read(path)
    rows = table.select([*_SCALARS, "topk", "answer_span", "searches"]).to_pylist()
    arrays = {name: _split(table[name], dtype) for name, (_, dtype) in _ARRAYS.items()}
    trajectories = []
    for index, row in enumerate(rows):
        width = row.pop("topk")
        row |= {name: values[index] for name, values in arrays.items()}
        length = len(row["tokens"])
        sizes = [len(row[n]) for n in ("segments", "logprobs")] + [
            len(row[n]) // max(width, 1) for n in ("topk_ids", "topk_logprobs") if width
        ]
        if any(size != length for size in sizes):
            raise WorkbenchError(
                f"trajectory {index} has {length} tokens but arrays of {sizes}",
                where=path,
                fix="write the file anew",
            )
        for name in ("topk_ids", "topk_logprobs"):
            row[name] = row[name].reshape(length, width)
        if row["answer_span"] is not None:
            row["answer_span"] = tuple(row["answer_span"])
        row["searches"] = [_search_record(s) for s in row["searches"]]
        trajectories.append(Trajectory(**row))
    return trajectories


def _table(trajectories: Sequence[Trajectory]) -> pa.Table:
    columns = {name: [getattr(t, name) for t in trajectories] for name in _SCALARS}
    for name, (arrow, dtype) in _ARRAYS.items():
        arrays = [np.ascontiguousarray(getattr(t, name), dtype).ravel() for t in trajectories]
        offsets = pa.array(np.cumsum([0, *map(len, arrays)]), pa.int32())
        values = np.concatenate(arrays) if arrays else np.empty(0, dtype)
        columns[name] = pa.ListArray.from_arrays(offsets, pa.array(values, arrow))
    columns["topk"] = [t.topk_ids.shape[1] for t in trajectories]
    columns["answer_span"] = [t.answer_span for t in trajectories]
    columns["searches"] = [[_search_row(s) for s in t.searches] for t in trajectories]
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _read(path: Path) -> pa.Table:
    if not path.is_file():
        raise WorkbenchError("no such file", where=path, fix="roll out first")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            version = (schema.metadata or {}).get(_KEY)
            if version != VERSION.encode():
                found = "no version" if version is None else f"version {version.decode()!r}"
                raise WorkbenchError(
                    f"trajectories with {found}, this code reads version {VERSION!r}",
                    where=path,
                    fix="roll out again, or use the version of the code that wrote the file",
                )
            for field in SCHEMA:
                place = schema.get_field_index(field.name)
                if place < 0:
                    raise WorkbenchError(f"column {field.name!r} is missing", where=path)
                if schema.field(place).type != field.type:
                    raise WorkbenchError(
                        f"column {field.name!r} is {schema.field(place).type}, "
                        f"expected {field.type}",
                        where=path,
                    )
            return file.read()
    except (pa.ArrowException, OSError) as error:
        raise WorkbenchError(
            f"not a readable Parquet file ({error})", where=path, fix="write the file anew"
        ) from error


def _split(column: pa.ChunkedArray, dtype: type) -> list[np.ndarray]:
    """The lists of a column as arrays of their own."""
    return [
        np.array(values.values.to_numpy(zero_copy_only=False), dtype)
        for chunk in column.chunks
        for values in chunk
    ]


def _search_row(search: SearchRecord) -> dict:
    return {field.name: getattr(search, field.name) for field in fields(SearchRecord)}


def _search_record(row: dict) -> SearchRecord:
    spans = {k: tuple(v) for k, v in row.items() if k.endswith("_span")}
    return SearchRecord(**(row | spans))
