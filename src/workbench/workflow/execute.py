"""Execute one stage's notebook with papermill into its run directory."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import WorkbenchError, outside_fault
from ..params import load_profile
from ..runs import NOTEBOOK, RunDirectory, runs_root, shown
from .environment import batch_variables, machine_variables
from .notebook import WORK_FOLDER, require
from .stages import MAIN, stage


def executed_notebook(profile_name: str, stage_name: str, key: str) -> Path:
    """Where the notebook being executed is kept, also when it fails or is killed."""
    return runs_root() / profile_name / stage_name / f"{key}.ipynb"


def execute(
    profile_name: str, stage_name: str, key: str = MAIN, overrides: Sequence[str] = ()
) -> Path:
    """Run a stage and return its complete run directory.

    Raises
    ------
    WorkbenchError
        faults in the profile, an upstream run that is missing or was changed since, a cell that
        failed or a kernel that was killed; the executed notebook stays beside the run directory.
    """
    profile = load_profile(profile_name, overrides)
    entry = stage(stage_name)
    entry.check_key(profile, key)
    for folder in entry.upstream_runs(profile, key).values():
        require(folder, profile.name, unchanged=True)
    run = RunDirectory(
        profile.name, entry.name, key, entry.params(profile, key), entry.inputs(profile, key),
        runs_root(),
    )  # fmt: skip
    try:
        if run.open(resume=entry.resume, wait=True) == "done":
            return run.final
        executed = executed_notebook(profile.name, entry.name, key)
        parameters = {"profile": profile_name, "overrides": list(overrides)}
        if entry.per_condition:
            parameters["condition"] = key
        os.environ.update(machine_variables(profile.machine) | batch_variables())
        os.environ[WORK_FOLDER] = str(run.path)
        _papermill(entry.path, executed, parameters)
        shutil.copyfile(executed, run.path / NOTEBOOK)
        return run.commit()
    finally:
        run.close()


def _papermill(source: Path, target: Path, parameters: dict) -> None:
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    try:
        papermill.execute_notebook(
            str(source), str(target), parameters, kernel_name="python3", language="python",
            cwd=str(source.parent), progress_bar=False, extra_arguments=["--log-level=ERROR"],
        )  # fmt: skip
    except PapermillExecutionError as error:
        raise WorkbenchError(
            f"the notebook failed: {error.ename}: {error.evalue}",
            where=f"{shown(source)}, cell [{error.exec_count}]",
            fix=f"see {shown(target)}",
        ) from None
    except DeadKernelError:
        raise WorkbenchError(
            "the notebook's process was killed (out of memory, or from outside)",
            where=f"{shown(source)}, last seen in {shown(target)}",
            fix="free memory or lower the profile's sizes, then give the same command again",
        ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m workbench.workflow.execute PROFILE STAGE KEY [OVERRIDE ...]``."""
    profile, stage_name, key, *overrides = sys.argv[1:] if arguments is None else arguments
    try:
        folder = execute(profile, stage_name, key, overrides)
    except WorkbenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if (told := outside_fault(error, f"runs/{profile}/{stage_name}/{key}")) is None:
            raise
        print(f"error: {told}", file=sys.stderr)
        return 1
    print(shown(folder))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
