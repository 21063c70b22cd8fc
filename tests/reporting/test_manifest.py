"""The manifest: hashes that follow content, and the commit of the code."""

import hashlib
import subprocess

import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.reporting.manifest import code_commit, content_hash, manifest_row, save_manifest


def test_hash_of_a_file_and_of_a_folder(tmp_path):
    file = tmp_path / "a.bin"
    file.write_bytes(b"weights")
    assert content_hash(file) == hashlib.sha256(b"weights").hexdigest()
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "x").write_bytes(b"1")
        (tmp_path / name / "y").write_bytes(b"2")
    assert content_hash(tmp_path / "one") == content_hash(tmp_path / "two")
    whole = content_hash(tmp_path / "two")
    for file in (tmp_path / "two" / "y", tmp_path / "two" / "inner" / "x"):
        file.write_bytes(file.read_bytes() + b"!")
        assert content_hash(tmp_path / "two") != whole
        file.write_bytes(file.read_bytes()[:-1])
    assert content_hash(tmp_path / "two") == whole
    (tmp_path / "two" / "y").rename(tmp_path / "two" / "z")
    assert content_hash(tmp_path / "one") != content_hash(tmp_path / "two")
    with pytest.raises(WorkbenchError, match="nothing here"):
        content_hash(tmp_path / "absent")


def test_rows_are_sorted_and_saved_whole(tmp_path):
    (tmp_path / "c").write_text("checkpoint")
    (tmp_path / "p").write_text("predictions")
    files = (tmp_path / "c", tmp_path / "p", "abc")
    rows = [manifest_row("oo", "tiny", "factbook", seed, *files) for seed in (2, 0)]
    path = save_manifest(tmp_path / "out" / "manifest.csv", rows)
    frame = pd.read_csv(path)
    assert list(frame.columns) == [
        "method", "model", "dataset", "seed", "checkpoint_sha256", "predictions_sha256", "commit",
    ]  # fmt: skip
    assert frame["seed"].tolist() == [0, 2]
    assert frame["checkpoint_sha256"][0] == hashlib.sha256(b"checkpoint").hexdigest()
    assert [p.name for p in path.parent.iterdir()] == ["manifest.csv"]


def test_commit_of_a_checkout(tmp_path):
    assert code_commit(tmp_path) == "unknown"

    def git(*args):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", *identity, *args], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "f").write_text("1")
    git("add", "f")
    git("commit", "-q", "-m", "first")
    head = git("rev-parse", "HEAD")
    (tmp_path / "new").write_text("untracked")
    assert code_commit(tmp_path) == head
    (tmp_path / "f").write_text("2")
    assert code_commit(tmp_path) == head + "+modified"
