"""What a notebook sees of the workflow: ``open_run`` at its start, ``run.finish()`` at its end.

    run = open_run("questions", profile, overrides)
    corpus = load_corpus(run.input("corpus") / "corpus.parquet")
    save_items(run.path / "items.jsonl", build_items(pages, run.settings.questions).items)
    run.finish()

Under ``workbench reproduce`` the notebook writes into the folder that the driver opened; in
JupyterLab it opens the run itself, and ``finish`` puts the result where the next notebooks
find it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import WorkbenchError
from ..methods.registry import Condition, load_condition
from ..params import Profile, load_profile
from ..runs import (
    RunDirectory,
    changed_outputs,
    is_complete,
    project_root,
    shown,
    writing_root,
)
from .environment import apply
from .stages import MAIN, Stage, stage

WORK_FOLDER = "WORKBENCH_WORK"


class Parts:
    """The declared parts of a profile, as attributes; the others are refused."""

    def __init__(self, settings: object, allowed: Sequence[str], stage_name: str):
        self._settings, self._allowed, self._stage = settings, tuple(allowed), stage_name

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._allowed:
            return getattr(self._settings, name)
        inner = [a.split(".", 1)[1] for a in self._allowed if a.startswith(name + ".")]
        if inner:
            return Parts(getattr(self._settings, name), inner, self._stage)
        raise WorkbenchError(
            f"the stage {self._stage!r} does not declare that it uses {name!r}",
            where="workflow/stages.py",
            fix=f"add it to 'parts' (declared: {', '.join(self._allowed)})",
        )

    def __repr__(self) -> str:
        lines = (f"{name} = {getattr(self, name)!r}" for name in self._allowed if "." not in name)
        return "\n".join(lines)


@dataclass
class Run:
    """One execution of a notebook.

    Attributes
    ----------
    profile, key : which profile, and "main" or the condition.
    settings : the parts of the profile that the stage declares.
    path : folder to write outputs into; in a stage that resumes, what a killed run left
        there is still there.
    """

    stage: Stage
    profile: Profile
    key: str
    settings: Parts
    path: Path
    _directory: RunDirectory | None

    @property
    def condition(self) -> Condition:
        """The entry of params/conditions, in a stage with one run per condition."""
        if not self.stage.per_condition:
            raise WorkbenchError(f"the stage {self.stage.name!r} has no condition")
        return load_condition(self.key)

    def input(self, stage_name: str, key: str = MAIN) -> Path:
        """Folder of a complete run of an upstream stage.

        Raises
        ------
        WorkbenchError
            the stage is not declared as upstream, or the run is not complete.
        """
        return self._complete(f"{stage_name}/{key}")

    def inputs(self, stage_name: str) -> dict[str, Path]:
        """Folder by condition of an upstream stage with one run per condition."""
        keys = stage(stage_name).keys(self.profile)
        return {key: self._complete(f"{stage_name}/{key}") for key in keys}

    def reads(self, stage_name: str) -> bool:
        """Whether this run reads a stage that is optional, or wanted by some methods only."""
        available = self.stage.upstream_runs(self.profile, self.key)
        return any(name.startswith(f"{stage_name}/") for name in available)

    def finish(self) -> None:
        """Everything is written: the run becomes complete."""
        if self._directory is not None:
            self._directory.commit()
            self.path = self._directory.final
            self._directory = None
        print(f"{self.stage.name}/{self.key} of profile {self.profile.name} is complete")

    def _complete(self, name: str) -> Path:
        available = self.stage.upstream_runs(self.profile, self.key)
        if name not in available:
            raise WorkbenchError(
                f"the stage {self.stage.name!r} does not declare that it reads {name!r}",
                where="workflow/stages.py",
                fix=f"add it to 'upstream' (declared: {', '.join(available) or 'none'})",
            )
        return require(available[name], self.profile.name)

    def __repr__(self) -> str:
        return f"{self.stage.name}/{self.key} of profile {self.profile.name}"


def require(folder: Path, profile_name: str, unchanged: bool = False) -> Path:
    """``folder`` if it holds a complete run, else an error that says how to make it.

    ``unchanged`` also compares every output with its recorded hash.
    """
    if not is_complete(folder):
        raise WorkbenchError(
            "this run is missing or not complete",
            where=shown(folder),
            fix=f"make reproduce PROFILE={profile_name}, or run the notebooks before this one",
        )
    if unchanged and (changed := changed_outputs(folder)):
        raise WorkbenchError(
            f"{', '.join(changed)}: not what the run wrote",
            where=shown(folder),
            fix=f"delete this folder, then make reproduce PROFILE={profile_name}",
        )
    return folder


def open_run(stage_name: str, profile: str, overrides: Sequence[str] = (), key: str = MAIN) -> Run:
    """Start a notebook's run.

    Parameters
    ----------
    stage_name : its entry in the stage table.
    profile : a profile's name or path; ``overrides`` as in ``load_profile``.
    key : the condition, in a stage with one run per condition.

    Raises
    ------
    WorkbenchError
        faults in the profile, an upstream run that is missing or was changed since, another
        process that is writing the same run.
    """
    entry = stage(stage_name)
    loaded = load_profile(profile, overrides)
    entry.check_key(loaded, key)
    apply(loaded.machine)
    settings = Parts(entry.seen_by(loaded, key), entry.parts_of(loaded, key), entry.name)
    if work := os.environ.get(WORK_FOLDER):
        return Run(entry, loaded, key, settings, project_root() / work, None)
    for folder in entry.upstream_runs(loaded, key).values():
        require(folder, loaded.name, unchanged=True)
    directory = RunDirectory(
        loaded.name, entry.name, key, entry.params(loaded, key), entry.inputs(loaded, key),
        writing_root(),
    )  # fmt: skip
    directory.open(resume=entry.resume)
    return Run(entry, loaded, key, settings, directory.path, directory)
