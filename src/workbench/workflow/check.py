"""Check the committed notebooks with nbval: they run, and marked outputs are as committed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from ..params import load_profile
from ..runs import project_root
from .environment import batch_variables, machine_variables
from .refresh import PROFILE

SCRATCH = "build/nbval"


def check_notebooks(paths: Sequence[str] = ()) -> int:
    """Run nbval over notebooks (default: all); pytest's exit status.

    The notebooks read the runs of the smoke profile, which must be complete, and write to
    ``build/nbval``, so that a check never replaces a result.  Outputs are compared in cells
    tagged ``nbval-check-output``, after ``tests/notebooks/sanitize.cfg``.
    """
    root = project_root()
    shutil.rmtree(root / SCRATCH, ignore_errors=True)
    command = [
        sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env",
        "--nbval-cell-timeout", "900", "--nbval-sanitize-with", "tests/notebooks/sanitize.cfg",
        "-p", "no:cacheprovider", *(paths or ["notebooks"]),
    ]  # fmt: skip
    machine = load_profile(PROFILE).machine
    environment = os.environ | machine_variables(machine) | batch_variables()
    environment["WORKBENCH_SCRATCH"] = SCRATCH
    return subprocess.run(command, cwd=root, env=environment, check=False).returncode
