"""Run directories: runs/<profile>/<stage>/<key>/, complete or not there at all.

A stage works in a hidden folder beside its run directory and renames it when everything is
written.  What tells a complete run is ``manifest.json``, the last file written: it holds the
hash of the params, of every input and of every output, and no times, so that two runs with
the same results have the same manifest.

    runs/tiny/grpo/search_r1/          complete
        manifest.json  params.yaml  inputs.json  notebook.ipynb  run.log  <outputs>
    runs/tiny/grpo/.search_r1.work/    being written, or left by a killed run
    runs/tiny/grpo/.search_r1.lock     held by the process that writes it
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .errors import WorkbenchError

MANIFEST = "manifest.json"
NOTEBOOK = "notebook.ipynb"
LOG = "run.log"
SCHEMA_VERSION = 1
_IDENTITY = ".identity"
Opened = Literal["started", "resumed", "done"]
_VOLATILE = {MANIFEST, NOTEBOOK, LOG, _IDENTITY}
_TIMES = {"timings.jsonl"}  # seconds: no two runs have the same


def project_root() -> Path:
    """The checkout this package belongs to, whatever the working directory.

    Raises
    ------
    WorkbenchError
        the package is installed away from its checkout and no folder from the working
        directory upwards is one.
    """
    for folder in (Path(__file__).resolve().parents[2], Path.cwd(), *Path.cwd().parents):
        if (folder / "params" / "profiles").is_dir():
            return folder
    raise WorkbenchError(
        "no params/profiles found around the package or the working directory",
        where=Path.cwd().name,
        fix="start from a checkout of the workbench (pip install --editable .)",
    )


def runs_root() -> Path:
    """Where complete runs are read from: ``runs/`` of the checkout."""
    return project_root() / "runs"


def writing_root() -> Path:
    """Where runs are written: ``runs/``, or the folder named by ``WORKBENCH_SCRATCH``.

    nbval executes the notebooks with a scratch folder, so that a check never replaces results.
    """
    scratch = os.environ.get("WORKBENCH_SCRATCH")
    return project_root() / scratch if scratch else runs_root()


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
    """The manifest of a complete run directory, or None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except json.JSONDecodeError as error:
        raise WorkbenchError(
            f"not JSON: {error}", where=shown(folder / MANIFEST), fix="delete the folder and rerun"
        ) from None
    if manifest.get("schema") != SCHEMA_VERSION:
        raise WorkbenchError(
            f"manifest schema {manifest.get('schema')!r}, this version reads {SCHEMA_VERSION}",
            where=shown(folder / MANIFEST),
            fix="delete the folder and rerun",
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


def shown(path: Path) -> str:
    """A path for messages and records: relative to the checkout where possible."""
    try:
        return str(Path(path).resolve().relative_to(project_root()))
    except ValueError:
        return str(path)


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

    @property
    def final(self) -> Path:
        return self.root / self.profile / self.stage / self.key

    @property
    def path(self) -> Path:
        return self.final.with_name(f".{self.key}.work")

    def input_hashes(self) -> dict[str, str]:
        """SHA-256 by input name."""
        for name, path in self.inputs.items():
            if not (path / MANIFEST if path.is_dir() else path).is_file():
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
        hashes = self.input_hashes()
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
        """Hash the outputs, write the manifest, rename; the complete run directory."""
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
            "inputs": self.input_hashes(),
            "outputs": {name: file_hash(self.path / name) for name in written},
        }
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
