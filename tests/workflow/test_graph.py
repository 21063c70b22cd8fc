"""What reruns, what resumes, and what a failure leaves."""

import json
import os
import signal
import subprocess
import sys
import time

from workbench.runs import NOTEBOOK, changed_inputs, file_hash

ALL = {"first/main", "second/red", "second/blue", "third/main"}


def test_finished_graph_is_up_to_date(finished):
    assert finished.would_run() == set()
    text = (finished.folder("third/main") / "out.txt").read_text()
    assert text == "a 100 red resumed=False\na 100 blue resumed=False"
    for name in ALL:
        log = (finished.folder(name) / "run.log").read_text()
        assert "started" in log and "complete" in log
        assert (finished.folder(name) / NOTEBOOK).is_file()
        assert finished.folder(name).with_suffix(".ipynb").is_file()


def test_publish_copies_complete_and_unchanged_outputs(copied):
    kept = copied.root / "kept"
    kept.mkdir()
    for name, text in (
        ("own.txt", "stays"),
        ("old.svg", "from an earlier publication"),
        ("third.provenance.json", json.dumps({"files": ["old.svg"]})),
    ):
        (kept / name).write_text(text)
    copied.run("publish", "third", "--profile", "three")
    names = sorted(path.name for path in kept.iterdir())
    assert names == ["all.svg", "own.txt", "third.provenance.json"]
    record = json.loads((kept / "third.provenance.json").read_text())
    assert record["manifest_sha256"] == file_hash(copied.folder("third/main"))
    (copied.folder("third/main") / "figures" / "all.svg").write_text("changed")
    for stage, say in (("first", "nothing of the stage"), ("third", "is not what the run wrote")):
        done = copied.run("publish", stage, "--profile", "three", check=False)
        assert done.returncode == 1 and say in done.stderr


def test_an_upstream_output_that_was_damaged_is_refused(copied):
    path = copied.folder("second/blue") / "out.txt"
    path.write_text(path.read_text()[:-1])
    done = subprocess.run(
        [sys.executable, "-m", "workbench.workflow.execute", "three", "third", "main"],
        cwd=copied.root, env=copied.environment, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr == (
        "error: runs/three/second/blue: out.txt: not what the run wrote -- delete this folder, "
        "then make reproduce PROFILE=three\n"
    )


def test_report_holds_the_figures(copied):
    copied.run("report", "--profile", "three")
    report = (copied.root / "build" / "report-three.html").read_text()
    assert "all.svg" in report and "third" in report


def test_a_param_reruns_what_depends_on_it(finished):
    assert finished.would_run("--set", "corpus.chunks.words=9") == ALL
    assert finished.would_run("--set", "questions.seed=5") == ALL - {"first/main"}
    assert finished.would_run("--set", "seeds=[2]") == {"third/main"}
    assert finished.would_run("--set", "machine.threads=2") == set()


def test_a_source_a_data_file_and_a_condition_rerun_what_depends_on_them(copied):
    package = copied.root / "src" / "workbench"
    for path in (package / "seeding.py", package / "errors.py", copied.root / "data" / "a.txt"):
        os.utime(path)
    assert copied.would_run() == set(), "touched, but with the same content"

    def edited(*edits):
        before = {path: path.read_text() for path, _ in edits}
        for path, text in edits:
            path.write_text(before[path] + text)
        found = copied.would_run()
        for path, text in before.items():
            path.write_text(text)
        return found

    red = copied.root / "params" / "conditions" / "red.yaml"
    machinery = (package / "runs" / "records.py", "\nX = 1\n")
    assert edited(machinery, (red, "published: {model: none}\n")) == set()
    assert edited((red, "settings: {delta: 1.0e-5}\n")) == {"second/red", "third/main"}
    method = (package / "methods" / "outcome_f1.py", "\nX = 1\n")
    assert edited(method) == {"second/red", "third/main"}, "only red names this method"
    assert edited((package / "seeding.py", "\nX = 1\n")) == ALL - {"first/main"}
    assert edited((copied.root / "data" / "a.txt", "b")) == ALL


def test_code_cells_rerun_a_notebook_but_kept_outputs_do_not(copied):
    path = copied.root / "notebooks" / "3_third.ipynb"
    book = json.loads(path.read_text())
    book["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "hi"}]
    path.write_text(json.dumps(book))
    assert copied.would_run() == set()
    book["cells"][1]["source"] += "\nx = 1"
    path.write_text(json.dumps(book))
    assert copied.would_run() == {"third/main"}


def test_failure_then_kill_then_resume(copied):
    """Red fails and blue hangs until everything is killed; the next run continues both."""
    for name in ("fail-red", "hang-blue"):
        (copied.root / name).touch()
    arguments = ("reproduce", "-p", "three", "--set", "questions.seed=5", "--cores", "2")
    output = copied.root / "output.txt"
    with output.open("w") as stream:
        process = subprocess.Popen(
            copied.command(*arguments), cwd=copied.root, env=copied.environment,
            start_new_session=True, stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
    checkpoint = copied.folder("second/.blue.work/checkpoint")
    deadline = time.monotonic() + 300
    while not checkpoint.exists() or "told to fail" not in output.read_text():
        assert time.monotonic() < deadline and process.poll() is None, output.read_text()
        time.sleep(0.1)
    assert "RuntimeError: told to fail" in output.read_text()
    assert "see runs/three/second/red.ipynb" in output.read_text()
    assert "told to fail" in copied.folder("second/red.ipynb").read_text()

    again = copied.run("reproduce", "-p", "three", check=False)
    assert again.returncode == 1 and "is being reproduced already" in again.stderr
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for condition in ("red", "blue"):
        assert not (copied.folder(f"second/{condition}") / "manifest.json").exists()

    for name in ("fail-red", "hang-blue"):
        (copied.root / name).unlink()
    copied.run(*arguments)
    text = (copied.folder("third/main") / "out.txt").read_text()
    assert text == "a 100 red resumed=True\na 100 blue resumed=True"
    assert copied.would_run("--set", "questions.seed=5") == set()


def test_a_run_whose_source_was_edited_meanwhile_is_made_again(copied):
    """The edit lands while the notebook runs; without it Snakemake would find nothing to do."""
    (copied.root / "hang-red").touch()
    overrides = ("--set", "questions.seed=5", "--set", "conditions=[red]", "--stage", "second")
    arguments = ("reproduce", "-p", "three", *overrides)
    output = copied.root / "output.txt"
    with output.open("w") as stream:
        process = subprocess.Popen(
            copied.command(*arguments), cwd=copied.root, env=copied.environment,
            stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
    checkpoint = copied.folder("second/.red.work/checkpoint")
    deadline = time.monotonic() + 300
    while not checkpoint.exists():
        assert time.monotonic() < deadline and process.poll() is None, output.read_text()
        time.sleep(0.1)
    module = copied.root / "src" / "workbench" / "seeding.py"
    module.write_text(module.read_text() + "\nX = 1\n")
    (copied.root / "hang-red").unlink()
    assert process.wait() == 0, output.read_text()
    name = "src/workbench/seeding.py"
    assert changed_inputs(copied.folder("second/red")) == [name]
    assert f"changed while this run was made: {name}" in output.read_text()
    again = copied.run(*arguments)
    assert f"second/red: made again, changed meanwhile: {name}" in again.stdout
    assert changed_inputs(copied.folder("second/red")) == []
    assert copied.would_run(*overrides) == set()
