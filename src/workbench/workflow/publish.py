"""Copy outputs of a complete run to where they are committed: figures/, data/policy/."""

from __future__ import annotations

import json
import shutil

from ..errors import WorkbenchError
from ..params import load_profile
from ..runs import changed_outputs, file_hash, project_root, runs_root, shown
from .notebook import require
from .stages import MAIN, stage

PROVENANCE = "PROVENANCE.json"


def publish(profile_name: str, stage_name: str) -> list[str]:
    """Replace a stage's committed folders by its outputs; the folders.

    Beside the files stands ``PROVENANCE.json``: profile, stage and the hash of the run's
    manifest, which holds the hashes of every param and input.

    Raises
    ------
    WorkbenchError
        the stage commits nothing, or its run is not complete or was changed since.
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
    record = {"profile": profile.name, "stage": entry.name, "manifest_sha256": file_hash(run)}
    targets = []
    for source, committed in entry.commits:
        target = project_root() / committed
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(run / source, target, ignore=shutil.ignore_patterns(".snakemake*"))
        (target / PROVENANCE).write_text(json.dumps(record, indent=1) + "\n")
        targets.append(shown(target))
    return targets
