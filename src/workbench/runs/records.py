"""Hashes, and what a complete run directory says of itself."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ..errors import WorkbenchError
from .places import shown

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1


def file_hash(path: Path) -> str:
    """SHA-256 of a file.

    Of a complete run directory it is that of the manifest; of a notebook, that of its code
    cells, because a notebook also holds outputs and prose, on which no result depends.
    """
    path = path / MANIFEST if path.is_dir() else path
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return stable_hash(["".join(c["source"]) for c in cells if c["cell_type"] == "code"])
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def stable_hash(value: object) -> str:
    """SHA-256 of a JSON-able value; the order of mapping keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_manifest(folder: Path) -> dict | None:
    """The manifest of a complete run directory, or None.

    Raises
    ------
    WorkbenchError
        there is one, but it is damaged or of another version.
    """
    where, fix = shown(folder / MANIFEST), "delete the folder and rerun"
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise WorkbenchError(f"not JSON: {error}", where=where, fix=fix) from None
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA_VERSION:
        raise WorkbenchError(
            f"manifest schema {schema!r}, this version reads {SCHEMA_VERSION}", where=where, fix=fix
        )
    return manifest


def is_complete(folder: Path) -> bool:
    """Whether a run directory was finished and none of its outputs is gone."""
    manifest = read_manifest(folder)
    return manifest is not None and all((folder / name).is_file() for name in manifest["outputs"])


def outputs(folder: Path) -> dict[str, str]:
    """SHA-256 by relative path of what a complete run wrote.

    Raises
    ------
    WorkbenchError
        the run is not complete.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise WorkbenchError("not a complete run", where=shown(folder))
    return manifest["outputs"]


def changed_outputs(folder: Path) -> list[str]:
    """Outputs of a complete run that are missing or no longer have their recorded hash."""
    return [
        name
        for name, expected in outputs(folder).items()
        if not (folder / name).is_file() or file_hash(folder / name) != expected
    ]


def changed_inputs(folder: Path) -> list[str]:
    """Inputs that changed while a complete run was made: it is stale, and this says why."""
    manifest = read_manifest(folder)
    return [] if manifest is None else manifest.get("changed_inputs", [])
