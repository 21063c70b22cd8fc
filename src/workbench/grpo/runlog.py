"""The run's log: one JSON line a step, cut back to the checkpoint when a run resumes.

``metrics.jsonl`` holds what the run computed and is the same for the same params;
``timings.jsonl`` holds seconds and so differs from run to run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..errors import WorkbenchError

METRICS, TIMINGS = "metrics.jsonl", "timings.jsonl"
_ANEW = "delete the run folder and train again"


class RunLog:
    """Appends lines to the two files of a run folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def append(self, step: int, metrics: dict, timings: dict) -> None:
        """Write one line to each file."""
        for name, values in ((METRICS, metrics), (TIMINGS, timings)):
            with (self.folder / name).open("a") as stream:
                stream.write(json.dumps({"step": step, **values}) + "\n")

    def sizes(self) -> dict[str, int]:
        """Bytes of each file, on disk."""
        sizes = {}
        for name in (METRICS, TIMINGS):
            with (self.folder / name).open("a") as stream:
                os.fsync(stream.fileno())
            sizes[name] = (self.folder / name).stat().st_size
        return sizes

    def cut(self, sizes: dict[str, int]) -> None:
        """Cut each file back to ``sizes`` (0 for one not named).

        Raises
        ------
        WorkbenchError : a file is shorter than that.
        """
        for name in (METRICS, TIMINGS):
            path = self.folder / name
            with path.open("ab") as stream:
                if stream.tell() < sizes.get(name, 0):
                    raise WorkbenchError(
                        "the log is shorter than its checkpoint says",
                        where=path,
                        fix=_ANEW,
                    )
                stream.truncate(sizes.get(name, 0))


def read_log(folder: Path) -> list[dict]:
    """The lines of a run, metrics and timings merged, in order of step.

    Raises
    ------
    WorkbenchError : a file is missing or damaged, or the two do not belong together.
    """
    metrics, timings = (_read_lines(Path(folder) / name) for name in (METRICS, TIMINGS))
    if [row["step"] for row in metrics] != [row["step"] for row in timings]:
        raise WorkbenchError(
            f"{METRICS} has {len(metrics)} lines and {TIMINGS} {len(timings)}, or other steps",
            where=folder,
            fix=_ANEW,
        )
    return [one | other for one, other in zip(metrics, timings, strict=True)]


def _read_lines(path: Path) -> list[dict]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise WorkbenchError("no run log here", where=path, fix="train this seed first") from None
    except UnicodeDecodeError as error:
        raise WorkbenchError(f"not text: {error.reason}", where=path, fix=_ANEW) from None
    rows = []
    for number, line in enumerate(lines, start=1):
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise WorkbenchError(f"not JSON: {error}", where=where, fix=_ANEW) from None
        if not isinstance(row, dict) or not isinstance(row.get("step"), int):
            raise WorkbenchError("not a line of a run log: no step", where=where, fix=_ANEW)
        if rows and row["step"] <= rows[-1]["step"]:
            raise WorkbenchError(
                f"step {row['step']} after step {rows[-1]['step']}", where=where, fix=_ANEW
            )
        rows.append(row)
    if not rows:
        raise WorkbenchError("the run log is empty", where=path, fix=_ANEW)
    return rows
