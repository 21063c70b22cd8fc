"""The index folder: built complete or not at all, and bound to its corpus.

``meta.json`` names the schema version, encoder, its settings, the corpus hash, the number of
rows and the dimension; beside it lie the files of bm25s or FAISS.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ..corpus.records import Chunk
from ..corpus.store import Corpus
from ..errors import WorkbenchError
from .config import RetrievalConfig
from .dense import DenseIndex, build_dense
from .encoders import load_encoder
from .sparse import BM25Index, build_bm25

SCHEMA_VERSION = 1
META = "meta.json"
_REBUILD = "build the index again from this corpus with these settings"


def passage_text(chunk: Chunk) -> str:
    """What is indexed of a chunk: its title, a line break, its text."""
    return f"{chunk.title}\n{chunk.text}"


def build_index(
    corpus: Corpus, config: RetrievalConfig, folder: Path | str, *, progress: bool = False
) -> Path:
    """Index ``corpus`` into ``folder`` and return the folder.

    The work happens in a neighbouring temporary folder that takes the name when complete; an
    older index of that name is replaced.

    Raises
    ------
    WorkbenchError
        the corpus is empty, the folder holds something else, or the encoder fails.
    """
    folder = Path(folder)
    if not corpus.chunks:
        raise WorkbenchError("an empty corpus cannot be indexed", where=folder)
    if not _replaceable(folder):
        raise WorkbenchError(
            "there is something here that is not an index", where=folder, fix="name another folder"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
        part = Path(work) / "new"
        part.mkdir()
        texts = [passage_text(c) for c in corpus.chunks]
        if config.encoder == "bm25":
            dimension = build_bm25(texts, config, part)
        else:
            dimension = build_dense(texts, load_encoder(config), part, progress)
        meta = {
            "schema_version": SCHEMA_VERSION,
            "encoder": config.encoder,
            "settings": config.index_settings(),
            "corpus_sha256": corpus.sha256,
            "rows": len(corpus.chunks),
            "dimension": dimension,
        }
        (part / META).write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            folder.rename(Path(work) / "old")
        part.rename(folder)
    return folder


def _replaceable(folder: Path) -> bool:
    """Whether ``folder`` is free, empty or an older index."""
    if not folder.exists():
        return True
    return folder.is_dir() and ((folder / META).is_file() or not any(folder.iterdir()))


def open_index(
    folder: Path | str, corpus: Corpus, config: RetrievalConfig
) -> BM25Index | DenseIndex:
    """Load the index in ``folder`` once it is shown to belong to ``corpus`` and ``config``.

    Raises
    ------
    WorkbenchError
        there is no index, a file is missing or corrupt, or schema version, encoder, its
        settings, corpus hash, number of rows or dimension differ; both values are named.
    """
    folder = Path(folder)
    meta = _read_meta(folder)
    expected = {
        "encoder": config.encoder,
        "settings": config.index_settings(),
        "corpus_sha256": corpus.sha256,
        "rows": len(corpus.chunks),
    }
    differences = [
        f"{key}: index {meta[key]!r}, here {value!r}"
        for key, value in expected.items()
        if meta[key] != value
    ]
    if differences:
        raise WorkbenchError(
            "the index does not belong here: " + "; ".join(differences), where=folder, fix=_REBUILD
        )
    if config.encoder == "bm25":
        index = BM25Index(folder, config)
    else:
        index = DenseIndex(folder, config, load_encoder(config))
    for name, found, wanted in (
        ("rows", index.rows, len(corpus.chunks)),
        ("dimensions", index.dimension, meta["dimension"]),
    ):
        if found != wanted:
            raise WorkbenchError(
                f"the index holds {found} {name}, the corpus and {META} say {wanted}",
                where=folder,
                fix=_REBUILD,
            )
    return index


def _read_meta(folder: Path) -> dict:
    path = folder / META
    if not path.is_file():
        raise WorkbenchError("no index here", where=folder, fix="build it with build_index")
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WorkbenchError(f"not JSON: {error}", where=path, fix=_REBUILD) from error
    version = meta.get("schema_version") if isinstance(meta, dict) else None
    if version != SCHEMA_VERSION:
        raise WorkbenchError(
            f"schema version {version!r}, this workbench reads {SCHEMA_VERSION}",
            where=path,
            fix=_REBUILD,
        )
    missing = {"encoder", "settings", "corpus_sha256", "rows", "dimension"} - meta.keys()
    if missing:
        raise WorkbenchError(f"no entry {sorted(missing)}", where=path, fix=_REBUILD)
    return meta
