"""The manifest of trained results (S1 §7.2.2): which files stand behind a row of a table.

method -> model -> data set -> seed -> checkpoint hash -> prediction-file hash -> commit of the
code that aggregated them.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas as pd

from ..errors import WorkbenchError
from .files import replace_file


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One trained run. Hashes are SHA-256 in hex; ``commit`` is "unknown" outside git."""

    method: str
    model: str
    dataset: str
    seed: int
    checkpoint_sha256: str
    predictions_sha256: str
    commit: str


def content_hash(path: Path | str) -> str:
    """SHA-256 of a file, or of a folder: over the names and contents of all files in it.

    Raises
    ------
    WorkbenchError : nothing there, or a folder without files.
    """
    path = Path(path)
    if path.is_file():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    inside = {p.relative_to(path).as_posix(): p for p in path.rglob("*") if p.is_file()}
    if not inside:
        raise WorkbenchError("nothing here to put into the manifest", where=path.name)
    digest = hashlib.sha256()
    for name in sorted(inside):
        digest.update(f"{name}\0{content_hash(inside[name])}\n".encode())
    return digest.hexdigest()


def code_commit(folder: Path | str) -> str:
    """Commit of the checkout around ``folder``, "+modified" with uncommitted changes to
    tracked files; "unknown" where there is no git or no commit."""
    run = {"cwd": folder, "capture_output": True, "text": True}
    try:
        head = subprocess.run(["git", "rev-parse", "--verify", "HEAD"], **run)
        if head.returncode:
            return "unknown"
        status = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], **run)
    except FileNotFoundError:
        return "unknown"
    return head.stdout.strip() + ("+modified" if status.stdout.strip() else "")


def manifest_row(
    method: str,
    model: str,
    dataset: str,
    seed: int,
    checkpoint: Path | str,
    predictions: Path | str,
    commit: str,
) -> ManifestRow:
    """Hash the files of one trained run."""
    hashes = content_hash(checkpoint), content_hash(predictions)
    return ManifestRow(method, model, dataset, seed, *hashes, commit)


def save_manifest(path: Path | str, rows: Iterable[ManifestRow]) -> Path:
    """Write the rows as CSV, sorted by method, model, data set and seed."""
    names = [f.name for f in fields(ManifestRow)]
    frame = pd.DataFrame([asdict(r) for r in rows], columns=names).sort_values(names[:4])
    return replace_file(path, frame.to_csv(index=False, lineterminator="\n"))
