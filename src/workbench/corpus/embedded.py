"""The corpus that ships with the workbench: public-domain World Factbook pages."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Collection
from pathlib import Path

from ..errors import WorkbenchError
from .records import Page

EMBEDDED = Path(__file__).resolve().parents[3] / "data" / "factbook"


def load_pages(folder: Path | str = EMBEDDED) -> list[Page]:
    """Read the embedded pages, ordered by page id, and check them against their provenance.

    Raises
    ------
    WorkbenchError
        a file is missing, cannot be read, or its hash is not the recorded one.
    """
    folder = Path(folder)
    source, provenance = folder / "pages.jsonl.gz", folder / "PROVENANCE.json"
    for path in (source, provenance):
        if not path.is_file():
            raise WorkbenchError(
                "the embedded corpus is missing",
                where=path,
                fix="restore data/factbook from version control, or rebuild it with "
                "python -m workbench.corpus.factbook",
            )
    try:
        lines = gzip.decompress(source.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise WorkbenchError(
            f"not a whole gzip file: {error}", where=source, fix="restore it from version control"
        ) from error
    try:
        expected = json.loads(provenance.read_text(encoding="utf-8"))["sha256_of_lines"]
    except (ValueError, KeyError, TypeError) as error:
        raise WorkbenchError(
            f"no provenance with a sha256_of_lines: {error!r}",
            where=provenance,
            fix="restore it from version control",
        ) from error
    found = hashlib.sha256(lines).hexdigest()
    if found != expected:
        raise WorkbenchError(
            f"the pages hash to {found[:12]}, their provenance says {expected[:12]}",
            where=source,
            fix="restore both files from version control",
        )
    records = [json.loads(line) for line in lines.decode("utf-8").split("\n") if line]
    return [Page(r["page_id"], r["title"], tuple(r["text"])) for r in records]


def field_of(paragraph: str) -> str:
    """The field label of a paragraph: ``"Capital"`` of ``"Capital: Algiers"``."""
    return paragraph.split(": ", 1)[0]


def section_of(paragraph: str) -> str | None:
    """The name in a section marker, or None for an ordinary paragraph."""
    if paragraph.startswith("Section::::"):
        return paragraph.removeprefix("Section::::").rstrip(".")
    return None


def select_fields(pages: list[Page], fields: Collection[str]) -> list[Page]:
    """Pages reduced to the named fields; pages and sections left empty disappear.

    Paragraph indices are those of the reduced pages, so select before chunking and before
    reading relations.  An unknown field name is an error, not an empty corpus.
    """
    wanted = set(fields)
    known = {field_of(t) for p in pages for t in p.text[1:] if section_of(t) is None}
    if unknown := sorted(wanted - known):
        raise WorkbenchError(
            f"no paragraph has the field {unknown[0]!r}",
            where="corpus.fields",
            fix="take the label before the first colon of a paragraph",
        )
    return [page for p in pages if len((page := _reduce(p, wanted)).text) > 1]


def _reduce(page: Page, wanted: set[str]) -> Page:
    text, marker = [page.title], None
    for paragraph in page.text[1:]:
        if section_of(paragraph) is not None:
            marker = paragraph
        elif field_of(paragraph) in wanted:
            if marker is not None:
                text.append(marker)
                marker = None
            text.append(paragraph)
    return Page(page.page_id, page.title, tuple(text))
