"""Logs of several seeds as frames."""

import json

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.grpo.history import seed_folder, series, start_and_end, training_history
from workbench.inference.classical import t_interval, wilson


@pytest.fixture
def run(tmp_path):
    """Two seeds of 20 steps; the reward of seed s at step k is k + s; held-out EM .25 and .5."""
    for seed in (0, 1):
        folder = seed_folder(tmp_path, seed)
        folder.mkdir()
        lines = [{"step": 0, "eval_em": 0.25}]
        lines += [{"step": k, "reward_mean": k + seed} for k in range(1, 21)]
        lines[-1]["eval_em"] = 0.5
        (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
        times = "".join(json.dumps({"step": x["step"], "seconds": 1.0}) + "\n" for x in lines)
        (folder / "timings.jsonl").write_text(times)
    return tmp_path


def test_first_and_last_tenth_over_seeds(run):
    table = start_and_end(training_history(run, [0, 1]), ["reward_mean", "kl"])
    assert table["metric"].tolist() == ["reward_mean"] * 2, "kl was not logged"
    first, last = table.to_dict("records")
    assert first["steps"] == 2
    assert (first["value"], last["value"]) == (2.0, 20.0)
    assert first["low"] == pytest.approx(t_interval([1.5, 2.5]).low)


def test_intervals_of_shares_and_counts_stay_possible(run):
    history = training_history(run, [0, 1])
    history["direct"] = history["searches"] = np.where(history["seed"] == 0, 0.02, 0.98)
    table = start_and_end(history, ["direct", "searches", "reward_mean"]).set_index("metric")
    assert (table.loc["direct", "low"] == 0.0).all() and (table.loc["direct", "high"] == 1.0).all()
    assert (table.loc["searches", "low"] == 0.0).all()
    assert (table.loc["searches", "high"] > 1.0).all()
    assert (table.loc["reward_mean", "low"] < 0.0).any(), "a reward may be anything"


def test_series_of_training_and_held_out_questions(run):
    table = series({"oo": training_history(run, [0, 1])}, questions=8)
    held_out = table[(table["series"] == "held-out") & (table["seed"] == 1)]
    assert held_out["step"].tolist() == [0, 20] and held_out["value"].tolist() == [0.25, 0.5]
    assert held_out["low"].tolist() == pytest.approx([wilson(2, 8).low, wilson(4, 8).low])
    training = table[table["series"] == "training"]
    assert training["step"].min() == 1 and len(training) == 40
    assert np.isnan(training["low"]).all()


def test_a_run_that_was_never_measured_says_so(run):
    history = training_history(run, [0]).drop(columns="eval_em")
    with pytest.raises(WorkbenchError, match="grpo.eval_every"):
        series({"oo": history}, questions=8)


@pytest.mark.parametrize(
    ("name", "damage", "say"),
    [
        ("metrics.jsonl", lambda lines: [*lines[:-1], lines[-1][:9]], "metrics.jsonl:21: not JSON"),
        ("timings.jsonl", lambda lines: ["[1]", *lines[1:]], "timings.jsonl:1: .* no step"),
        (
            "metrics.jsonl",
            lambda lines: [*lines, lines[3]],
            "metrics.jsonl:22: step 3 after step 20",
        ),
        ("metrics.jsonl", lambda lines: lines[:-2], "19 lines and timings.jsonl 21"),
        ("timings.jsonl", lambda lines: [], "the run log is empty"),
        ("metrics.jsonl", None, "metrics.jsonl: no run log here"),
    ],
)
def test_a_damaged_log_is_told_by_file_and_line(run, name, damage, say):
    path = seed_folder(run, 0) / name
    if damage is None:
        path.unlink()
    else:
        path.write_text("\n".join(damage(path.read_text().splitlines())))
    with pytest.raises(WorkbenchError, match=say):
        training_history(run, [0, 1])
