"""Kill the training notebook in the middle, run the same command again, compare every byte.

    python tests/workflow/kill_training.py [kernel|everything|interrupt] [steps logged before]

Too long for the suite (it makes corpus and questions first; minutes), so it is run by hand:
it works on a copy of the checkout, kills -9 the notebook's kernel, or the whole process group
with it, or sends what Ctrl-C sends, and then checks that the second run ends in the manifest
of an undisturbed one: the same adapter, log and figures.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "params", "notebooks", "data", "Snakefile")
SETTINGS = (
    "conditions=[search_r1]", "voting.conditions=[search_r1]", "grpo.steps=6",
    "grpo.checkpoint_every=2", "grpo.eval_every=3",
)  # fmt: skip


def copy(target: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        shutil.copytree(source, target / name) if source.is_dir() else shutil.copy(source, target)


def start(root: Path) -> subprocess.Popen:
    overrides = [part for setting in SETTINGS for part in ("--set", setting)]
    arguments = ["reproduce", "-p", "smoke", "--cores", "1", "--stage", "train", *overrides]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "HOME": str(root)}
    with (root / "output.txt").open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "workbench.cli", *arguments], cwd=root, env=environment,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip


def finish(root: Path, run: Path) -> bytes:
    """The manifest of a run that nothing disturbs."""
    if start(root).wait() != 0:
        raise SystemExit((root / "output.txt").read_text())
    return (run / "manifest.json").read_bytes()


def kernels(root: Path) -> list[int]:
    """Notebook kernels that work in the copy."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and b"ipykernel" in (folder / "cmdline").read_bytes():
                if os.readlink(folder / "cwd").startswith(str(root)):
                    found.append(int(folder.name))
        except OSError:
            continue  # it has ended meanwhile, or is somebody else's
    return found


def disturb(root: Path, run: Path, how: str, after: int) -> None:
    """Start the run and end it once ``after`` steps are logged."""
    process = start(root)
    log = run.with_name(f".{run.name}.work") / "seed-0" / "metrics.jsonl"
    while not log.is_file() or log.read_text().count("\n") < after:
        if process.poll() is not None:
            raise SystemExit((root / "output.txt").read_text())
        time.sleep(0.02)
    if how != "kernel":
        killed = signal.SIGINT if how == "interrupt" else signal.SIGKILL
        os.killpg(process.pid, killed)
    for kernel in kernels(root) if how != "interrupt" else ():
        os.kill(kernel, signal.SIGKILL)
    status = process.wait()
    print(f"{how}: ended with {status}, complete: {(run / 'manifest.json').exists()}")


def main(how: str = "kernel", after: str = "4") -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy(root)
        run = root / "runs" / "smoke" / "train" / "search_r1"
        undisturbed = finish(root, run)
        shutil.rmtree(run)
        disturb(root, run, how, int(after))
        resumed = finish(root, run)
        print((run / "run.log").read_text(), end="")
        print("the same bytes" if resumed == undisturbed else "NOT the same bytes")
        raise SystemExit(resumed != undisturbed)


if __name__ == "__main__":
    main(*sys.argv[1:])
