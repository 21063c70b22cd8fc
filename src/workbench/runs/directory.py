"""Run directories being written: locked, resumable, renamed when everything is there."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import WorkbenchError
from .places import shown, writing_root
from .records import (
    MANIFEST,
    SCHEMA_VERSION,
    file_hash,
    is_complete,
    read_manifest,
    stable_hash,
)

NOTEBOOK = "notebook.ipynb"
LOG = "run.log"
_IDENTITY = ".identity"
_VOLATILE = {MANIFEST, NOTEBOOK, LOG, _IDENTITY}
_TIMES = {"timings.jsonl"}  # seconds: no two runs have the same
Opened = Literal["started", "resumed", "done"]


@dataclass
class RunDirectory:
    """A run being written. ``path`` is the folder to write to, ``final`` where it will be.

    ``params`` is the resolved settings that the stage uses; ``inputs`` names what it reads.
    """

    profile: str
    stage: str
    key: str
    params: Mapping
    inputs: Mapping[str, Path]
    root: Path
    _lock: int | None = None
    _hashes: dict[str, str] | None = None

    @property
    def final(self) -> Path:
        return self.root / self.profile / self.stage / self.key

    @property
    def path(self) -> Path:
        return self.final.with_name(f".{self.key}.work")

    def input_hashes(self) -> dict[str, str]:
        """SHA-256 by input name, now."""
        for name, path in self.inputs.items():
            if not _exists(path):
                raise WorkbenchError(
                    f"the input {name!r} is missing", where=shown(path), fix="make it first"
                )
        return {name: file_hash(path) for name, path in self.inputs.items()}

    def open(self, *, resume: bool = False, wait: bool = False) -> Opened:
        """Lock and prepare the work folder.

        With ``resume`` the work folder of a killed run with the same params and inputs is
        kept ("resumed"), otherwise it is emptied ("started").  ``wait`` waits for another
        writer instead of raising; what that one finished meanwhile from the same params and
        inputs is taken over ("done", nothing is left to write).
        """
        import yaml

        self.path.parent.mkdir(parents=True, exist_ok=True)
        waited = self._acquire(wait)
        self._hashes = hashes = self.input_hashes()
        if waited and self._is_done(hashes):
            return "done"
        identity = stable_hash({"params": self.params, "inputs": hashes})
        identity_file = self.path / _IDENTITY
        if resume and identity_file.is_file() and identity_file.read_text() == identity:
            self.log("resumed")
            return "resumed"
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()
        dumped = yaml.safe_dump(dict(self.params), sort_keys=False, allow_unicode=True)
        (self.path / "params.yaml").write_text(dumped)
        records = [
            {"name": name, "path": shown(self.inputs[name]), "sha256": sha}
            for name, sha in hashes.items()
        ]
        (self.path / "inputs.json").write_text(json.dumps(records, indent=1) + "\n")
        identity_file.write_text(identity)
        self.log("started")
        return "started"

    def log(self, event: str) -> None:
        """Append a line with the time to the run's log."""
        with (self.path / LOG).open("a") as stream:
            stream.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {event}\n")

    def commit(self) -> Path:
        """Hash the outputs, write the manifest, rename; the complete run directory.

        An input that is not what it was when the run was opened makes it stale: a warning
        names it, and the manifest lists it beside the hashes of what the run started from.
        """
        hashes = self._hashes or self.input_hashes()
        changed = [
            name
            for name, path in self.inputs.items()
            if not _exists(path) or file_hash(path) != hashes[name]
        ]
        if changed:
            self.log(f"stale: changed meanwhile: {', '.join(changed)}")
            warnings.warn(
                f"{shown(self.final)}: changed while this run was made: {', '.join(changed)}"
                " -- the run is kept as stale, and `workbench reproduce` makes it again",
                stacklevel=2,
            )
        self.log("complete")
        written = sorted(
            path.relative_to(self.path).as_posix()
            for path in self.path.rglob("*")
            if path.is_file()
            and path.name not in _TIMES
            and path.relative_to(self.path).as_posix() not in _VOLATILE
        )
        manifest = {
            "schema": SCHEMA_VERSION,
            "profile": self.profile,
            "stage": self.stage,
            "key": self.key,
            "params": stable_hash(self.params),
            "inputs": hashes,
            "outputs": {name: file_hash(self.path / name) for name in written},
        }
        if changed:
            manifest["changed_inputs"] = changed
        (self.path / _IDENTITY).unlink()
        part = self.path / (MANIFEST + ".part")
        with part.open("w") as stream:
            stream.write(json.dumps(manifest, indent=1) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        part.rename(self.path / MANIFEST)
        old = self.final.with_name(f".{self.key}.old")
        shutil.rmtree(old, ignore_errors=True)
        if self.final.exists():
            self.final.rename(old)
        self.path.rename(self.final)
        shutil.rmtree(old, ignore_errors=True)
        self.close()
        return self.final

    def close(self) -> None:
        """Let another process write this run. The work folder stays, for a resume."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _is_done(self, hashes: Mapping[str, str]) -> bool:
        done = read_manifest(self.final) if is_complete(self.final) else None
        return done is not None and (done["params"], done["inputs"]) == (
            stable_hash(self.params),
            hashes,
        )

    def _acquire(self, wait: bool) -> bool:
        """Take the lock; True when another process had to be waited for."""
        path = self.final.with_name(f".{self.key}.lock")
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        waited = False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 32, 0).decode() or "?"
            if not wait:
                self.close()
                raise WorkbenchError(
                    f"process {holder} is writing this run",
                    where=shown(self.final),
                    fix="wait for it, or stop it",
                ) from None
            print(f"{shown(self.final)}: waiting for process {holder}, which writes it", flush=True)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            waited = True
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        return waited


@contextmanager
def run_directory(
    profile: str,
    stage: str,
    key: str,
    params: Mapping,
    inputs: Mapping[str, Path],
    *,
    resume: bool = False,
    root: Path | None = None,
) -> Iterator[RunDirectory]:
    """Write a run directory in a ``with`` block; it appears when the block ends well.

    After an exception or a kill the work folder stays aside: the next run of the same
    identity continues from it with ``resume=True`` and starts afresh otherwise.

    Raises
    ------
    WorkbenchError
        an input is missing, or another process is writing the same run.
    """
    run = RunDirectory(profile, stage, key, params, inputs, root or writing_root())
    try:
        run.open(resume=resume)
        yield run
        run.commit()
    finally:
        run.close()


def _exists(path: Path) -> bool:
    """Whether an input is there: a file, or a complete run directory."""
    return (path / MANIFEST if path.is_dir() else path).is_file()
