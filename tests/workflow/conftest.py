"""A small project with a graph of three quick stages, run by the real machinery.

    first (corpus) -> second (questions; once per condition) -> third (seeds)
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

from workbench.runs import project_root

TABLE = """

STAGES = (
    Stage("first", "1_first", parts=("corpus",), files=("data/*.txt",)),
    Stage("second", "2_second", parts=("questions",), upstream=("first",), per_condition=True,
          resume=True),
    Stage("third", "3_third", parts=("seeds",), upstream=("second",), figures=True,
          commits=(("figures", "kept"),)),
)
"""

PROFILE = """
description: three quick stages
stages: [first, second, third]
conditions: [red, blue]
seeds: [1]
grpo: {steps: 1}
"""

CELLS = {
    "1_first": [
        "from pathlib import Path\nfrom workbench.errors import WorkbenchError\n"
        "text = Path('../data/a.txt').read_text()\n"
        "(run.path / 'out.txt').write_text(f'{text} {run.settings.corpus.chunks.words}')",
    ],
    "2_second": [
        "import os, time\nfrom pathlib import Path\nfrom workbench import seeding\n"
        "checkpoint = run.path / 'checkpoint'\nresumed = checkpoint.exists()\n"
        "checkpoint.write_text('half')",
        "if Path(f'../fail-{run.key}').exists():\n    raise RuntimeError('told to fail')",
        "while Path(f'../hang-{run.key}').exists():\n    time.sleep(0.1)",
        "name = run.condition.name\n"
        "up = (run.input('first') / 'out.txt').read_text()\n"
        "(run.path / 'out.txt').write_text(f'{up} {name} resumed={resumed}')",
    ],
    "3_third": [
        "(run.path / 'figures').mkdir()\n"
        "(run.path / 'figures' / 'all.svg').write_text('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')\n"
        "(run.path / 'out.txt').write_text('\\n'.join(\n"
        "    (folder / 'out.txt').read_text() for folder in run.inputs('second').values()))",
    ],
}


@dataclass
class SmallProject:
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(self.root / "src"), "HOME": str(self.root)}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "workbench.cli", *arguments]

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        done = subprocess.run(
            self.command(*arguments), cwd=self.root, env=self.environment, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def would_run(self, *arguments: str) -> set[str]:
        """Names of the runs that a dry run announces."""
        output = self.run("reproduce", "-p", "three", "-n", *arguments)
        lines = (output.stdout + output.stderr).splitlines()
        return {line.split(": ")[1] for line in lines if line.startswith("Job ") and "/" in line}

    def folder(self, name: str) -> Path:
        return self.root / "runs" / "three" / name


def make(root: Path) -> SmallProject:
    package = project_root() / "src" / "workbench"
    shutil.copytree(package, root / "src" / "workbench", ignore=shutil.ignore_patterns("__pyc*"))
    shutil.copy(project_root() / "Snakefile", root)
    table = root / "src" / "workbench" / "workflow" / "stages.py"
    table.write_text(table.read_text() + TABLE)
    for folder in ("params/profiles", "params/conditions", "notebooks", "data"):
        (root / folder).mkdir(parents=True)
    (root / "params" / "profiles" / "three.yaml").write_text(PROFILE)
    for condition, method in (("red", "outcome_f1"), ("blue", "search_r1")):
        (root / "params" / "conditions" / f"{condition}.yaml").write_text(
            f"label: {condition.title()}\nmethod: {method}\npaper: none\n"
        )
    (root / "data" / "a.txt").write_text("a")
    for name, cells in CELLS.items():
        stage = name.split("_")[1]
        key = ", condition" if stage == "second" else ""
        condition = "\ncondition = 'red'" if key else ""
        book = nbformat.v4.new_notebook()
        first = nbformat.v4.new_code_cell(f"profile = 'three'\noverrides = []{condition}")
        first.metadata["tags"] = ["parameters"]
        opening = (
            "from workbench.workflow import open_run\n"
            f"run = open_run({stage!r}, profile, overrides{key})"
        )
        book.cells = [
            first,
            *map(nbformat.v4.new_code_cell, [opening, *cells, "run.finish()"]),
        ]
        nbformat.write(book, root / "notebooks" / f"{name}.ipynb")
    return SmallProject(root)


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> SmallProject:
    """The small project after one complete run; tests leave it as it is."""
    project = make(tmp_path_factory.mktemp("finished"))
    project.run("reproduce", "-p", "three", "--cores", "2")
    return project


@pytest.fixture
def copied(finished, tmp_path) -> SmallProject:
    """A copy of it with the same times and Snakemake records, to change."""
    shutil.copytree(finished.root, tmp_path / "project")
    return SmallProject(tmp_path / "project")
