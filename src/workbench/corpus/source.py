"""From the corpus settings of a profile to pages and chunks."""

from __future__ import annotations

from ..config import Settings
from ..errors import WorkbenchError
from ..runs import project_root
from .chunking import ChunkConfig, chunk_pages
from .embedded import load_pages, select_fields
from .records import Chunk, Page
from .store import load_corpus
from .wiki18 import Wiki18Reader

EMBEDDED = "embedded"


class CorpusConfig(Settings):
    """Which pages, which of their fields, and how they are cut.

    ``source`` is "embedded", the path of a ``.parquet`` file of chunks, or that of a wiki-18
    ``.jsonl`` file (relative to the checkout); the chunks of a file are taken as they are.
    ``fields`` keeps only these fields of the embedded pages (all when empty).
    """

    source: str = EMBEDDED
    fields: tuple[str, ...] = ()
    chunks: ChunkConfig = ChunkConfig()


def read_pages(config: CorpusConfig) -> list[Page]:
    """The pages that are chunked and asked about.

    Raises
    ------
    WorkbenchError
        the source has passages and no pages, or a field is unknown.
    """
    if config.source != EMBEDDED:
        raise WorkbenchError(
            "this corpus is a file of passages and has no pages to read relations from",
            where=f"corpus.source: {config.source}",
            fix="name a file of questions in questions.source, or use the embedded corpus",
        )
    pages = load_pages()
    return select_fields(pages, config.fields) if config.fields else pages


def read_chunks(config: CorpusConfig) -> list[Chunk]:
    """The chunks to retrieve from, in corpus order."""
    if config.source == EMBEDDED:
        return chunk_pages(read_pages(config), config.chunks)
    path = project_root() / config.source
    if path.suffix == ".parquet":
        return load_corpus(path).chunks
    return list(Wiki18Reader(path))
