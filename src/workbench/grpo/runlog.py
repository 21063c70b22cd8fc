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
                        fix="delete the run folder to start anew",
                    )
                stream.truncate(sizes.get(name, 0))


def read_log(folder: Path) -> list[dict]:
    """The lines of a run, metrics and timings merged, in order of step."""
    rows = []
    with (folder / METRICS).open() as metrics, (folder / TIMINGS).open() as timings:
        for one, other in zip(metrics, timings, strict=True):
            rows.append(json.loads(one) | json.loads(other))
    return rows
