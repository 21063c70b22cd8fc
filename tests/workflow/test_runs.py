"""A run directory is complete or not there, whatever kills the process."""

import json
import signal
import subprocess
import sys
import textwrap

import pytest

from workbench.errors import WorkbenchError
from workbench.runs import (
    MANIFEST,
    RunDirectory,
    changed_inputs,
    changed_outputs,
    file_hash,
    is_complete,
    project_root,
    read_manifest,
    run_directory,
    stable_hash,
)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("input")
    return path


def write_run(root, source, params=None, text="result", resume=False):
    with run_directory(
        "p", "s", "k", params or {"a": 1}, {"in": source}, resume=resume, root=root
    ) as run:
        (run.path / "sub").mkdir(exist_ok=True)
        (run.path / "sub" / "out.txt").write_text(text)
    return run.final


def test_complete_run_holds_params_inputs_and_hashes(tmp_path, source):
    final = write_run(tmp_path, source)
    assert final == tmp_path / "p" / "s" / "k"
    assert (final / "params.yaml").read_text() == "a: 1\n"
    (record,) = json.loads((final / "inputs.json").read_text())
    assert record["name"] == "in" and record["sha256"] == file_hash(source)
    manifest = read_manifest(final)
    assert manifest["params"] == stable_hash({"a": 1})
    assert manifest["outputs"]["sub/out.txt"] == file_hash(final / "sub" / "out.txt")
    assert is_complete(final) and changed_outputs(final) == []
    assert [p.name for p in final.parent.iterdir() if p.is_dir()] == ["k"]


def test_equal_runs_have_equal_manifests(tmp_path, source):
    first = (write_run(tmp_path / "1", source) / MANIFEST).read_bytes()
    assert (write_run(tmp_path / "2", source) / MANIFEST).read_bytes() == first
    assert (write_run(tmp_path / "3", source, text="other") / MANIFEST).read_bytes() != first


def test_lost_and_changed_outputs_are_seen(tmp_path, source):
    final = write_run(tmp_path, source)
    (final / "sub" / "out.txt").write_text("tampered")
    assert is_complete(final) and changed_outputs(final) == ["sub/out.txt"]
    (final / "sub" / "out.txt").unlink()
    assert not is_complete(final) and changed_outputs(final) == ["sub/out.txt"]
    with pytest.raises(WorkbenchError, match="not a complete run"):
        changed_outputs(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["{", "[]", "\x00", '{"schema": 99, "outputs": {}}'])
def test_broken_manifest_is_an_error(tmp_path, source, text):
    final = write_run(tmp_path, source)
    (final / MANIFEST).write_text(text)
    with pytest.raises(WorkbenchError, match="delete the folder and rerun"):
        is_complete(final)


def test_exception_leaves_nothing_complete_and_the_old_run_in_place(tmp_path, source):
    with pytest.raises(ZeroDivisionError):
        with run_directory("p", "s", "k", {}, {"in": source}, root=tmp_path) as run:
            1 / 0  # noqa: B018
    assert not run.final.exists() and not is_complete(run.path)
    write_run(tmp_path, source, text="old")
    with pytest.raises(ZeroDivisionError):
        with run_directory("p", "s", "k", {}, {"in": source}, root=tmp_path) as run:
            1 / 0  # noqa: B018
    assert (run.final / "sub" / "out.txt").read_text() == "old" and is_complete(run.final)


def test_missing_input_is_named(tmp_path, source):
    with pytest.raises(WorkbenchError, match="'in' is missing"):
        write_run(tmp_path, tmp_path / "none.txt")
    (tmp_path / "upstream").mkdir()
    with pytest.raises(WorkbenchError, match="'in' is missing"):
        write_run(tmp_path, tmp_path / "upstream")


def test_notebook_hash_sees_code_only(tmp_path):
    def notebook(code, prose="text", outputs=()):
        cells = [
            {"cell_type": "markdown", "source": [prose]},
            {"cell_type": "code", "source": [code], "outputs": list(outputs)},
        ]
        path = tmp_path / "n.ipynb"
        path.write_text(json.dumps({"cells": cells}))
        return file_hash(path)

    assert notebook("a = 1") == notebook("a = 1", "other", [{"text": "x"}]) != notebook("a = 2")


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from workbench.runs import run_directory

    root, source, step = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    renames = 0
    original = Path.rename

    def rename(self, target):
        global renames
        renames += 1
        if renames == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, target)

    Path.rename = rename
    with run_directory("p", "s", "k", {"a": 1}, {"in": source}, resume=True, root=root) as run:
        (run.path / "sub").mkdir()
        (run.path / "sub" / "out.txt").write_text("new")
        (run.path / "checkpoint").write_text("half")
        if step == 0:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_at(step, root, source):
    code = [sys.executable, "-c", textwrap.dedent(KILLED), str(root), str(source), str(step)]
    assert subprocess.run(code, check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_sigkill_at_every_step(tmp_path, source, step, before):
    """Steps: in the body, before the manifest's rename, and before each rename of a folder."""
    if before is None and step == 3:
        step = 2  # without an old run there is no third rename
    if before:
        write_run(tmp_path, source, text=before)
    kill_at(step, tmp_path, source)
    final = tmp_path / "p" / "s" / "k"
    if final.exists():
        assert before and is_complete(final) and not changed_outputs(final)
        assert (final / "sub" / "out.txt").read_text() == before
    assert is_complete(write_run(tmp_path, source, text="again"))
    assert (final / "sub" / "out.txt").read_text() == "again"
    assert [p.name for p in final.parent.iterdir() if p.is_dir()] == ["k"]


def test_resume_keeps_the_work_of_the_same_identity_only(tmp_path, source):
    run = RunDirectory("p", "s", "k", {"a": 1}, {"in": source}, tmp_path)

    def reopen(resume=True, **changes):
        other = RunDirectory(
            "p", "s", "k", changes.get("params", {"a": 1}), {"in": source}, tmp_path
        )
        state = other.open(resume=resume)
        other.close()
        return state, (run.path / "checkpoint").exists()

    kill_at(0, tmp_path, source)
    assert reopen() == ("resumed", True)
    assert reopen(params={"a": 2}) == ("started", False)
    kill_at(0, tmp_path, source)
    source.write_text("changed")
    assert reopen() == ("started", False)
    kill_at(0, tmp_path, source)
    assert reopen(resume=False) == ("started", False)


@pytest.mark.parametrize("how", ["edited", "removed", "edited and put back"])
def test_an_input_changed_during_the_run_makes_it_stale(tmp_path, source, how):
    run = RunDirectory("p", "s", "k", {}, {"in": source, "other": tmp_path / "o"}, tmp_path)
    (tmp_path / "o").write_text("stays")
    run.open()
    before = file_hash(source)
    (run.path / "out.txt").write_text("from the old input")
    source.unlink() if how == "removed" else source.write_text("edited")
    if how == "edited and put back":
        source.write_text("input")
        final = run.commit()
        assert changed_inputs(final) == [] and "changed_inputs" not in read_manifest(final)
        return
    with pytest.warns(UserWarning, match="changed while this run was made: in -- .*reproduce"):
        final = run.commit()
    assert is_complete(final) and changed_inputs(final) == ["in"]
    assert read_manifest(final)["inputs"]["in"] == before, "what the run started from"
    assert "stale: changed meanwhile: in" in (final / "run.log").read_text()


def test_a_stale_run_is_not_taken_over_by_a_waiting_writer(tmp_path, source):
    first = RunDirectory("p", "s", "k", {}, {"in": source}, tmp_path)
    first.open()
    source.write_text("edited")
    with pytest.warns(UserWarning):
        first.commit()
    second = RunDirectory("p", "s", "k", {}, {"in": source}, tmp_path)
    assert not second._is_done(second.input_hashes())


def test_a_killed_run_resumes_after_an_edit_was_put_back(tmp_path, source):
    kill_at(0, tmp_path, source)
    source.write_text("edited")
    source.write_text("input")
    run = RunDirectory("p", "s", "k", {"a": 1}, {"in": source}, tmp_path)
    assert run.open(resume=True) == "resumed"
    assert changed_inputs(run.commit()) == []


def test_second_writer_is_refused_then_takes_over_what_was_finished(tmp_path, source):
    first = RunDirectory("p", "s", "k", {}, {"in": source}, tmp_path)
    first.open()
    with pytest.raises(WorkbenchError, match="is writing this run"):
        RunDirectory("p", "s", "k", {}, {"in": source}, tmp_path).open()
    waiter = textwrap.dedent("""
        import sys
        from pathlib import Path
        from workbench.runs import RunDirectory

        root, source = map(Path, sys.argv[1:])
        print(RunDirectory("p", "s", "k", {}, {"in": source}, root).open(wait=True))
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", waiter, str(tmp_path), str(source)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "waiting for process" in process.stdout.readline()
    (first.path / "out.txt").write_text("x")
    first.commit()
    assert process.stdout.read().strip() == "done"
    assert process.wait() == 0


def test_project_root_does_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (project_root() / "pyproject.toml").is_file()
