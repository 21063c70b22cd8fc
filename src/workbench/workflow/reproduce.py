"""Run the notebook graph with Snakemake: one command, resumable after any kill."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..errors import WorkbenchError
from ..params import Profile, load_profile
from ..runs import MANIFEST, changed_inputs, project_root, runs_root, shown
from .stages import check_profile, stage


def reproduce(
    profile_name: str,
    *,
    cores: int = 2,
    overrides: Sequence[str] = (),
    stages: Sequence[str] = (),
    extra: Sequence[str] = (),
) -> int:
    """Bring the runs of a profile up to date; Snakemake's exit status.

    A run whose inputs changed while it was made is made again: Snakemake compares files with
    what they were at the end of a run and would not see it.

    Parameters
    ----------
    cores : notebooks side by side, each with the profile's threads.
    stages : make these only (and what they need) instead of the profile's stages.
    extra : further Snakemake arguments (``["--dry-run"]``, ``["--executor", "slurm"]``).

    Raises
    ------
    WorkbenchError
        faults in the profile or the overrides, an unknown stage or condition, or another
        ``reproduce`` of the same profile that is still running.
    """
    profile = load_profile(profile_name, overrides)
    check_profile(profile)
    targets = [
        f"runs/{profile.name}/{name}/{key}/{MANIFEST}"
        for name in stages
        for key in stage(name).keys(profile)
    ]
    command = [
        *snakemake(profile_name, overrides), "--cores", str(cores), "--keep-going",
        "--rerun-incomplete", "--nolock", "--rerun-triggers", "mtime", "params", "input",
        "--scheduler", "greedy", *extra, *_forced(profile, stages), *targets,
    ]  # fmt: skip
    with _only_one(profile) as lock:
        return subprocess.run(command, cwd=project_root(), pass_fds=[lock], check=False).returncode


def report(profile_name: str, target: str, overrides: Sequence[str] = ()) -> int:
    """Write Snakemake's HTML report of a finished profile to ``target``."""
    load_profile(profile_name, overrides)
    command = [*snakemake(profile_name, overrides), "--report", target, "--nolock"]
    return subprocess.run(command, cwd=project_root(), check=False).returncode


def snakemake(profile_name: str, overrides: Sequence[str]) -> list[str]:
    """The Snakemake command for a profile, without targets."""
    return [
        sys.executable, "-m", "snakemake", "--snakefile", str(project_root() / "Snakefile"),
        "--config", f"profile={profile_name}", f"overrides={json.dumps(list(overrides))}",
    ]  # fmt: skip


def _forced(profile: Profile, stages: Sequence[str]) -> list[str]:
    """Arguments that make stale runs of these stages, and of what they need, run again."""
    stale, needed = [], []
    pending = list(stages or profile.stages)
    while pending:
        if (name := pending.pop()) not in needed:
            needed.append(name)
            entry = stage(name)
            pending += [up for key in entry.keys(profile) for up in entry.upstream_of(profile, key)]
    for name in needed:
        for key in stage(name).keys(profile):
            folder = runs_root() / profile.name / name / key
            if changed := changed_inputs(folder):
                print(f"{shown(folder)}: made again, changed meanwhile: {', '.join(changed)}")
                stale.append(f"runs/{profile.name}/{name}/{key}/{MANIFEST}")
    return ["--forcerun", *stale, "--"] if stale else []


@contextmanager
def _only_one(profile: Profile) -> Iterator[int]:
    """Hold the profile's lock.

    It belongs to the open file, which Snakemake inherits: whatever is killed, the lock goes
    exactly when the last process of the graph is gone, so nothing ever has to be unlocked.
    """
    path = runs_root() / profile.name / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkbenchError(
                f"the profile {profile.name!r} is being reproduced already",
                where=f"runs/{profile.name}",
                fix="wait for it, or stop it",
            ) from None
        yield stream.fileno()
