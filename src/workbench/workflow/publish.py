"""Copy outputs of a complete run to where they are committed: figures/, data/policy/."""

from __future__ import annotations

import json
import shutil

from ..errors import WorkbenchError
from ..params import load_profile
from ..runs import (
    changed_inputs,
    changed_outputs,
    file_hash,
    outputs,
    project_root,
    runs_root,
    shown,
)
from .notebook import require
from .stages import MAIN, stage


def publish(profile_name: str, stage_name: str) -> list[str]:
    """Put a stage's committed outputs in place; the folders they went to.

    Beside the files stands ``<stage>.provenance.json``: the profile, the hash of the run's
    manifest (which holds the hashes of every param and input), and the files.  Files that an
    earlier publication put there are replaced or removed, others are left alone.

    Raises
    ------
    WorkbenchError
        the stage commits nothing, or its run is not complete, stale or was changed since.
    """
    profile, entry = load_profile(profile_name), stage(stage_name)
    if not entry.commits:
        raise WorkbenchError(
            f"nothing of the stage {stage_name!r} is committed", where="workflow/stages.py"
        )
    run = require(runs_root() / profile.name / entry.name / MAIN, profile.name)
    if changed := changed_outputs(run):
        raise WorkbenchError(
            f"{changed[0]} is not what the run wrote", where=shown(run), fix="delete the run"
        )
    if stale := changed_inputs(run):
        raise WorkbenchError(
            f"{stale[0]} changed while this run was made",
            where=shown(run),
            fix=f"make reproduce PROFILE={profile.name}",
        )
    for source, committed in entry.commits:
        target = project_root() / committed.format(profile=profile.name)
        target.mkdir(parents=True, exist_ok=True)
        record = target / f"{entry.name}.provenance.json"
        if record.is_file():
            for name in json.loads(record.read_text())["files"]:
                (target / name).unlink(missing_ok=True)
        names = [n.removeprefix(source + "/") for n in outputs(run) if n.startswith(source + "/")]
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(run / source / name, target / name)
        provenance = {"profile": profile.name, "manifest_sha256": file_hash(run), "files": names}
        record.write_text(json.dumps(provenance, indent=1) + "\n")
    return [committed.format(profile=profile.name) for _, committed in entry.commits]
