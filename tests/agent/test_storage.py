"""Parquet: exact round trip, refusal of what cannot be read."""

import dataclasses
import os

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.agent import storage
from workbench.agent.storage import SCHEMA, load_trajectories, save_trajectories
from workbench.agent.trajectory import SearchRecord, Trajectory
from workbench.errors import WorkbenchError


def trajectory(seed=0, length=9, k=2, **changes):
    rng = np.random.default_rng(seed)
    logprobs = rng.normal(size=length).astype(np.float32)
    logprobs[::2] = np.nan
    values = dict(
        item_id=f"q{seed}", group="g", sample=3, seed=2**63 - 1,
        tokens=rng.integers(0, 2**31 - 1, length).astype(np.int32),
        segments=rng.integers(0, 7, length).astype(np.uint8),
        logprobs=logprobs,
        topk_ids=rng.integers(-1, 9, (length, k)).astype(np.int32),
        topk_logprobs=rng.normal(size=(length, k)).astype(np.float32),
        searches=[
            SearchRecord("Malí?\n", 0, (1, 3), (0, 4), (4, 8), ["c1", "c2"], [0.1 + 0.2, -np.inf],
                         ["T", ""], ["a\x00b", ""], ["q2"], True),
            SearchRecord("b", 1, (1, 3), (0, 4), (4, 8), [], [], [], []),
        ],
        answer="Bamako", answer_span=(5, 6), commit_index=5, valid=True, invalid_reason="",
        truncated=False, turns=2, invalid_actions=1, seconds=0.1 + 0.2,
    )  # fmt: skip
    return Trajectory(**(values | changes))


def same(a, b):
    for field in dataclasses.fields(Trajectory):
        left, right = getattr(a, field.name), getattr(b, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype and left.shape == right.shape
            assert left.tobytes() == right.tobytes()
        else:
            assert left == right and type(left) is type(right), field.name


def test_round_trip_is_exact(tmp_path):
    wrote = [
        trajectory(),
        trajectory(1, k=0),
        trajectory(2, searches=[], answer=None, answer_span=None, commit_index=-1, valid=False),
        trajectory(3, length=1, k=1, answer=""),
    ]
    path = save_trajectories(tmp_path / "deep" / "t.parquet", wrote)
    read = load_trajectories(path)
    assert len(read) == 4
    for a, b in zip(wrote, read, strict=True):
        same(a, b)
    read[0].tokens[0] = 1  # arrays are the caller's own
    assert os.listdir(path.parent) == ["t.parquet"]
    assert load_trajectories(save_trajectories(tmp_path / "none.parquet", [])) == []


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None
)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 12), st.integers(0, 3)), max_size=5))
def test_any_shapes_round_trip(tmp_path, shapes):
    wrote = [trajectory(*shape) for shape in shapes]
    read = load_trajectories(save_trajectories(tmp_path / "t.parquet", wrote))
    for a, b in zip(wrote, read, strict=True):
        same(a, b)


def test_many_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_GROUP", 2)
    wrote = [trajectory(i, length=3 + i) for i in range(5)]
    path = save_trajectories(tmp_path / "t.parquet", wrote)
    assert pq.ParquetFile(path).num_row_groups == 3
    for a, b in zip(wrote, load_trajectories(path), strict=True):
        same(a, b)


def test_datasets_reads_it(tmp_path):
    path = save_trajectories(tmp_path / "t.parquet", [trajectory()])
    rows = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
    assert rows[0]["searches"][0]["query"] == "Malí?\n"


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = save_trajectories(tmp_path / "t.parquet", [trajectory()])
    before = path.read_bytes()
    with pytest.raises((pa.ArrowException, TypeError)):
        save_trajectories(path, [trajectory(answer=5)])
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["t.parquet"]


def test_unreadable_files_are_told(tmp_path):
    path = save_trajectories(tmp_path / "t.parquet", [trajectory()])
    table = pq.read_table(path)

    def rewritten(table, metadata=SCHEMA.metadata):
        path = tmp_path / f"{len(os.listdir(tmp_path))}.parquet"
        pq.write_table(table.replace_schema_metadata(metadata), path)
        return path

    column = table.schema.get_field_index("turns")
    longer = table.set_column(
        table.schema.get_field_index("segments"), SCHEMA.field("segments"),
        pa.array([[1] * 10], pa.list_(pa.uint8())),
    )  # fmt: skip
    half = tmp_path / "half.parquet"
    half.write_bytes(path.read_bytes()[:-100])
    middle = bytearray(path.read_bytes())
    middle[60:260] = os.urandom(200)
    (tmp_path / "middle.parquet").write_bytes(middle)
    for bad, what in (
        (tmp_path / "none.parquet", "no such file"),
        (half, "not a readable Parquet file"),
        (tmp_path / "middle.parquet", "not a readable Parquet file"),
        (rewritten(table, {}), "no version"),
        (rewritten(table, {b"workbench.trajectories": b"99"}), "version '99'"),
        (rewritten(table.drop_columns(["tokens"])), "column 'tokens' is missing"),
        (
            rewritten(table.set_column(column, "turns", pa.array([2.0]))),
            "column 'turns' is double, expected int32",
        ),
        (rewritten(longer), "9 tokens but arrays of"),
    ):
        with pytest.raises(WorkbenchError, match=what):
            load_trajectories(bad)
