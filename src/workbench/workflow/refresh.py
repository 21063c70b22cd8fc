"""Keep the outputs of an executed notebook in the committed one.

The smoke profile is what the notebooks' defaults say, so its executed notebooks hold the
outputs that a reader gets.  Outputs are matched by cell id; everything that belongs to one
machine or one execution is left out or refused.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat

from ..errors import WorkbenchError
from ..params import Profile, load_profile
from ..runs import NOTEBOOK, runs_root, shown
from .stages import MAIN, STAGES, Stage

PROFILE = "smoke"
_MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:home|root|Users|tmp|var|opt|usr|mnt|work)/[\w.\-/]+")


def refresh_notebooks() -> list[str]:
    """Update every notebook whose stage was run with the smoke profile; their paths.

    Raises
    ------
    WorkbenchError
        an executed notebook is missing or has other code, or an output holds an error,
        stderr text or a path of the machine.
    """
    profile = load_profile(PROFILE)
    return [
        shown(refresh(entry.path, executed_path(entry, profile)))
        for entry in STAGES
        if entry.name in profile.stages
    ]


def executed_path(entry: Stage, profile: Profile) -> Path:
    """The executed notebook whose parameters are the notebook's defaults."""
    key = parameter_defaults(entry.path).get("condition", MAIN) if entry.per_condition else MAIN
    entry.check_key(profile, key)
    return runs_root() / profile.name / entry.name / key / NOTEBOOK


def parameter_defaults(notebook: Path) -> dict:
    """Names and values assigned in the cell tagged ``parameters``."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if "parameters" in cell.metadata.get("tags", ()):
            tree = ast.parse(cell.source)
            return {
                node.targets[0].id: ast.literal_eval(node.value)
                for node in tree.body
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            }
    raise WorkbenchError("no cell has the tag 'parameters'", where=shown(notebook))


def refresh(committed: Path, executed: Path) -> Path:
    """Write the outputs of ``executed`` into ``committed``."""
    if not executed.is_file():
        raise WorkbenchError(
            "no executed notebook", where=shown(executed), fix=f"make reproduce PROFILE={PROFILE}"
        )
    ours = nbformat.read(committed, as_version=4)
    theirs = {cell.id: cell for cell in nbformat.read(executed, as_version=4).cells}
    count = 0
    for cell in ours.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k == "tags" and v}
        if cell.cell_type != "code":
            continue
        other = theirs.get(cell.id)
        if other is None or other.source != cell.source:
            raise WorkbenchError(
                f"the cell {cell.id!r} is not the one that was executed",
                where=shown(committed),
                fix=f"make reproduce PROFILE={PROFILE}",
            )
        count += 1
        cell.execution_count = count
        cell.outputs = [_clean(output, count, committed) for output in other.outputs]
    ours.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(ours, committed)
    return committed


def _clean(output, count: int, notebook: Path):
    where = f"{shown(notebook)}, cell [{count}]"
    if output.output_type == "error" or output.get("name") == "stderr":
        raise WorkbenchError(
            "an output is an error or text on stderr", where=where, fix="mend the cell's noise"
        )
    texts = [output.text] if "text" in output else list(output.get("data", {}).values())
    for text in texts:
        if isinstance(text, str) and (found := _MACHINE_PATH.search(text)):
            raise WorkbenchError(f"a path of this machine: {found.group()}", where=where)
    if output.output_type == "execute_result":
        output.execution_count = count
    output.pop("metadata", None)
    if output.output_type != "stream":
        output.metadata = {}
    return output
