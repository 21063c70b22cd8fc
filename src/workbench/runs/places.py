"""Where runs are, and how paths are shown."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import WorkbenchError


def project_root() -> Path:
    """The checkout this package belongs to, whatever the working directory.

    Raises
    ------
    WorkbenchError
        the package is installed away from its checkout and no folder from the working
        directory upwards is one.
    """
    for folder in (Path(__file__).resolve().parents[3], Path.cwd(), *Path.cwd().parents):
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


def shown(path: Path) -> str:
    """A path for messages and records: relative to the checkout where possible."""
    try:
        return str(Path(path).resolve().relative_to(project_root()))
    except ValueError:
        return str(path)
