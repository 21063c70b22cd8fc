"""Run directories: runs/<profile>/<stage>/<key>/, complete or not there at all.

A stage works in a hidden folder beside its run directory and renames it when everything is
written.  What tells a complete run is ``manifest.json``, the last file written: it holds the
hash of the params, of every input and of every output, and no times, so that two runs with
the same results have the same manifest.  Inputs are hashed when the run starts; what has
changed by its end is listed as ``changed_inputs``, and ``workbench reproduce`` makes such a
stale run again.

    runs/tiny/grpo/search_r1/          complete
        manifest.json  params.yaml  inputs.json  notebook.ipynb  run.log  <outputs>
    runs/tiny/grpo/.search_r1.work/    being written, or left by a killed run
    runs/tiny/grpo/.search_r1.lock     held by the process that writes it
"""

from .directory import LOG, NOTEBOOK, RunDirectory, run_directory
from .places import project_root, runs_root, shown, writing_root
from .records import (
    MANIFEST,
    changed_inputs,
    changed_outputs,
    file_hash,
    is_complete,
    outputs,
    read_manifest,
    stable_hash,
)

__all__ = [
    "LOG",
    "MANIFEST",
    "NOTEBOOK",
    "RunDirectory",
    "changed_inputs",
    "changed_outputs",
    "file_hash",
    "is_complete",
    "outputs",
    "project_root",
    "read_manifest",
    "run_directory",
    "runs_root",
    "shown",
    "stable_hash",
    "writing_root",
]
