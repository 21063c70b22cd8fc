"""Refits beside the training: a process of its own for each calibration round (S1 §3.2, §7.2.1).

    <folder>/round-0003/
        task.json                 what to calibrate; there as a whole or not at all, with
        adapter/ or model/        the policy as it was: with LoRA its adapter alone
        evaluator.safetensors     the result, renamed into place when both heads are done
        report.json               costs and validation AUCs
        failed.json               why there is no result: the old evaluator stays in force
        log.txt                   what the process said

A process that was killed leaves neither result; then ``failed.json`` is written for it.  All
that a round depends on is in its task, so a round that is run again gives the same evaluator.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from ..agent.config import AgentConfig
from ..config import Settings
from ..engines.base import Choice
from ..errors import WorkbenchError
from ..retrieval.config import RetrievalConfig
from .calibration import calibration_items, fit, measure_targets
from .config import CalibrationConfig
from .evaluator import Evaluator, load_evaluator
from .probes import Unfit

TASK, ADAPTER, MODEL = "task.json", "adapter", "model"
RESULT = "evaluator.safetensors"
REPORT, FAILED, LOG = "report.json", "failed.json", "log.txt"
_POLL = 0.05  # seconds


class RefitTask(Settings):
    """All that a calibration round needs to be run anywhere: paths and settings.

    ``policy`` is the base policy's folder or hub id, ``questions`` a file of items, of which
    M of those in ``item_ids`` are used; ``number`` is the round, ``seed`` names its draws.
    """

    policy: str
    corpus: str
    index: str
    questions: str
    item_ids: tuple[str, ...]
    retrieval: RetrievalConfig
    agent: AgentConfig
    closed_book: AgentConfig
    calibration: CalibrationConfig
    device: str = "cpu"
    dtype: Choice = "float32"
    threads: int = 1
    seed: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """No new evaluator, and why."""

    reason: str


@dataclass
class Refits:
    """The rounds of one training run.

    Parameters
    ----------
    folder : where rounds lie; shared by all workers.
    task : what they have in common.
    first : whether this worker starts the processes; the others wait for their files.
    last : the last update of the training; None does not say.
    """

    folder: Path
    task: RefitTask
    first: bool = True
    last: int | None = None
    _running: dict[int, subprocess.Popen] = field(default_factory=dict)

    def with_questions(self, factor: float) -> Refits:
        """The same rounds over ``factor`` times as many questions, two at least."""
        calibration = self.task.calibration
        questions = max(2, round(factor * calibration.questions))
        changed = calibration.model_copy(update={"questions": questions})
        task = self.task.model_copy(update={"calibration": changed})
        return Refits(self.folder, task, self.first, self.last)

    def worthwhile(self, step: int) -> bool:
        """Whether a round that starts after ``step`` updates can still score a rollout."""
        return self.last is None or step + (self.task.calibration.lag or 0) < self.last

    def round(self, number: int) -> Path:
        """The folder of a round."""
        return Path(self.folder) / f"round-{number:04d}"

    def prepare(self, number: int, model: object) -> None:
        """Write the task of a round with the policy as it is now; one that is there is replaced."""
        if not self.first:
            return
        place = self.round(number)
        part = place.with_name(f".{place.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        model.save_pretrained(part / (ADAPTER if hasattr(model, "peft_config") else MODEL))
        task = self.task.model_copy(update={"number": number})
        (part / TASK).write_text(task.model_dump_json(indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)

    def start(self, number: int) -> None:
        """Run a prepared round in the background, unless its result is there already.

        Raises
        ------
        WorkbenchError : the round was not prepared.
        """
        place = self.round(number)
        if not self.first or self.ready(number):
            return
        if not (place / TASK).is_file():
            raise WorkbenchError(
                "the task of this calibration round is gone",
                where=place,
                fix="delete the training run's folder and train anew",
            )
        threads = {f"{name}_NUM_THREADS": str(self.task.threads) for name in ("OMP", "MKL")}
        with (place / LOG).open("ab") as log:
            self._running[number] = subprocess.Popen(
                [sys.executable, "-m", "workbench.readouts.refit", str(place)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | threads,
            )

    def ready(self, number: int) -> bool:
        """Whether a round has ended, well or not; never waits."""
        place = self.round(number)
        if (place / RESULT).is_file() or (place / FAILED).is_file():
            return True
        process = self._running.get(number)
        if process is None or process.poll() is None:
            return False
        if not (place / RESULT).is_file():
            _fail(place, f"the refit ended with status {process.returncode}: {_last_line(place)}")
        return True

    def collect(self, number: int, model: object) -> Evaluator | Failure:
        """Wait for a round and take its evaluator for ``model``, or the reason for none.

        Raises
        ------
        WorkbenchError : the round was not started here, or its evaluator cannot be read.
        """
        while not self.ready(number):
            if self.first and number not in self._running:
                raise WorkbenchError(
                    "nobody runs this calibration round",
                    where=self.round(number),
                    fix="start(number) first",
                )
            time.sleep(_POLL)
        self._running.pop(number, None)
        place = self.round(number)
        if (place / RESULT).is_file():
            return load_evaluator(place / RESULT, model)
        return Failure(json.loads((place / FAILED).read_text(encoding="utf-8"))["reason"])

    def close(self) -> None:
        """End the processes that still run; their rounds have no result."""
        for process in self._running.values():
            process.kill()
            process.wait()
        self._running.clear()

    def report(self, number: int) -> dict:
        """What a round cost; empty when it failed."""
        path = self.round(number) / REPORT
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def run_round(place: Path) -> None:
    """Run the task in ``place``, in this process; a policy that cannot be read is a failure."""
    import torch

    from ..corpus.store import load_corpus
    from ..engines.transformers_engine import TransformersEngine
    from ..policy.store import load_policy
    from ..questions.store import load_items
    from ..retrieval.searcher import load_searcher

    task = RefitTask.model_validate_json((place / TASK).read_text(encoding="utf-8"))
    torch.set_num_threads(task.threads)
    started = time.perf_counter()
    model, tokenizer = load_policy(task.policy)
    full = (place / MODEL).is_dir()
    if full:
        model = type(model).from_pretrained(place / MODEL).eval()
    else:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, place / ADAPTER).eval()
    model.to(task.device)
    corpus = load_corpus(task.corpus)
    searcher = load_searcher(task.index, corpus, task.retrieval)
    known = {item.item_id: item for item in load_items(task.questions)}
    items = calibration_items([known[name] for name in task.item_ids], task.calibration, task.seed)
    engine = TransformersEngine(model, tokenizer, dtype=task.dtype)
    targets = measure_targets(
        engine, model, searcher, items, task.agent, task.closed_book, task.calibration,
        task.seed, task.number,
    )  # fmt: skip
    fitting = time.perf_counter()
    try:
        found = fit(targets, model, task.calibration, task.seed, full)
    except Unfit as reason:
        _fail(place, str(reason))
        return
    cost = targets.cost | {
        "seconds_fit": time.perf_counter() - fitting,
        "seconds": time.perf_counter() - started,
    }
    found.evaluator.notes["number"] = task.number
    report = {"cost": cost, "heads": found.evaluator.notes}
    _write(place / REPORT, json.dumps(report, indent=1) + "\n")
    found.evaluator.save(place / RESULT)


def _fail(place: Path, reason: str) -> None:
    _write(place / FAILED, json.dumps({"reason": reason}) + "\n")


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def _last_line(place: Path) -> str:
    lines = (place / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"


if __name__ == "__main__":
    run_round(Path(sys.argv[1]))
