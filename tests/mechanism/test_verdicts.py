"""Right against wrong: AUC, C−W gap, overlap, difficulty."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import gaussian_kde
from sklearn.metrics import roc_auc_score

from workbench.errors import WorkbenchError
from workbench.inference.bootstrap import BootstrapConfig
from workbench.mechanism.difficulty import score_by_difficulty
from workbench.mechanism.verdicts import auc_difference, aucs, overlaps, verdict_gaps


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    n = 40
    correct = rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "question_id": [f"q{k // 4}" for k in range(n)],
            "rollout_id": [str(k % 4) for k in range(n)],
            "correct": correct,
            "w_a": np.round(correct + rng.normal(0, 1, n), 1),
            "w_b": rng.normal(0, 1, n),
        }
    )


def _rows(correct, scores, questions="abcdefgh"):
    n = len(correct)
    return pd.DataFrame(
        {"question_id": list(questions)[:n], "rollout_id": "0", "correct": correct, "w": scores}
    )


def test_the_auc_is_scikit_learns(frame, few):
    table = aucs(frame, ["w_a", "w_b"], config=few)
    assert table["value"].tolist() == pytest.approx(
        [roc_auc_score(frame["correct"], frame[w]) for w in ("w_a", "w_b")]
    )
    assert (table["low"] < table["value"]).all() and (table["n"] == 10).all()
    assert (table["right"] + table["wrong"] == 40).all()


def test_unjudged_and_unscored_rollouts_are_left_out_and_counted(few):
    table = aucs(_rows([True, False, None, True], [2, 1, 0, np.nan]), ["w"], config=few).iloc[0]
    assert table["value"] == 1.0
    assert table[["right", "wrong", "unjudged", "unscored"]].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("measure", [aucs, verdict_gaps, overlaps])
def test_one_class_alone_is_undefined(measure, few):
    for verdict in (True, None):
        row = measure(_rows([verdict, verdict], [1, 2]), ["w"], config=few).iloc[0]
        assert np.isnan(row["value"]) and np.isnan(row["low"])


def test_what_is_no_verdict_is_refused(few):
    with pytest.raises(WorkbenchError, match="no verdict"):
        aucs(_rows([0.5, 1], [1, 2]), ["w"], config=few)
    with pytest.raises(WorkbenchError, match="no column 'nope'"):
        aucs(_rows([0, 1], [1, 2]), ["nope"], config=few)


def test_groups_have_rows_of_their_own(frame, few):
    frame = frame.assign(cell=["x"] * 20 + ["y"] * 20)
    table = aucs(frame, ["w_a"], ["cell"], few)
    assert table["cell"].tolist() == ["x", "y"]
    assert table["value"][1] == roc_auc_score(frame["correct"][20:], frame["w_a"][20:])


def test_the_difference_of_aucs_is_paired(frame, few):
    frame.loc[0, "w_b"] = np.nan
    frame["correct"] = frame["correct"].astype(object)
    frame.loc[1, "correct"] = None
    found = auc_difference(frame, "w_a", "w_b", few)
    kept = frame.iloc[2:]
    expected = [roc_auc_score(kept["correct"].astype(bool), kept[w]) for w in ("w_a", "w_b")]
    assert found["value"] == pytest.approx(expected[0] - expected[1])
    assert (found["unscored"], found["unjudged"], found["n"]) == (1, 1, 10)
    same = auc_difference(frame, "w_a", "w_a", few)
    assert [same["value"], same["low"], same["high"]] == [0, 0, 0]


def test_the_gap_by_hand(few):
    row = verdict_gaps(_rows([1, 1, 0, 0, 0], [0.5, 0.7, 0.1, 0.2, 0.6]), ["w"], config=few)
    assert row["value"][0] == pytest.approx(0.6 - 0.3)
    assert row[["right", "wrong", "n"]].iloc[0].tolist() == [2, 3, 5]


@settings(max_examples=20)
@given(st.floats(-3, 3), st.floats(0.1, 3))
def test_the_gap_scales_and_does_not_shift(shift, scale):
    config = BootstrapConfig(draws=100)
    frame = _rows([1, 0, 1, 0], [0.5, 0.25, 0.0, 1.0])
    mapped = frame.assign(w=scale * frame["w"] + shift)
    gaps = [verdict_gaps(f, ["w"], config=config).iloc[0] for f in (frame, mapped)]
    for column in ("value", "low", "high"):
        assert gaps[1][column] == pytest.approx(scale * gaps[0][column], abs=1e-9)


def test_overlap_by_hand(few):
    # two bins of [0, 1]: right ones 1/4 and 3/4, wrong ones 1/2 and 1/2
    frame = _rows([1, 1, 1, 1, 0, 0], [0, 0.9, 0.8, 1, 0.1, 0.7])
    row = overlaps(frame, ["w"], bins=2, config=few).iloc[0]
    assert row["value"] == pytest.approx(1 / 4 + 1 / 2)
    assert 0 <= row["low"] <= row["value"] and np.isnan(row["p"])


def test_overlap_ends(few):
    apart = overlaps(_rows([1, 1, 0, 0], [1, 1.1, 0, 0.1]), ["w"], config=few).iloc[0]
    assert apart["value"] == 0 and apart["kernel"] < 0.01
    same = overlaps(_rows([1, 0, 1, 0], [1, 1, 2, 2]), ["w"], config=few).iloc[0]
    assert same["value"] == 1 and same["kernel"] == pytest.approx(1, abs=1e-3)
    flat = overlaps(_rows([1, 0, 1, 0], [1, 1, 1, 1]), ["w"], config=few).iloc[0]
    assert flat["value"] == 1 and np.isnan(flat["kernel"])


def test_the_kernel_overlap_is_the_integral_of_the_smaller_density(frame, few):
    right, wrong = (frame["w_a"][frame["correct"] == v] for v in (True, False))
    first, second = gaussian_kde(right), gaussian_kde(wrong)
    expected, _ = quad(lambda x: min(first(x)[0], second(x)[0]), -8, 8, limit=400)
    found = overlaps(frame, ["w_a"], config=few)["kernel"][0]
    assert found == pytest.approx(expected, abs=2e-3)


def _difficulty(verdicts, scores):
    """Verdicts and scores per question, as lists."""
    return pd.DataFrame(
        [
            (q, str(n), v, w)
            for q, (vs, ws) in enumerate(zip(verdicts, scores, strict=True))
            for n, (v, w) in enumerate(zip(vs, ws, strict=True))
        ],
        columns=["question_id", "rollout_id", "correct", "w"],
    ).astype({"question_id": str})


def test_scores_by_difficulty_by_hand(few):
    frame = _difficulty(
        [[0, 0], [0, 1], [1, 1], [1, 1], [None, None]],
        [[6, 8], [7, np.nan], [9, 11], [10, 10], [99, 99]],
    )
    table = score_by_difficulty(frame, ["w"], config=few)
    assert table["difficulty"].tolist() == [0.0, 0.5, 1.0]
    assert table["mean"].tolist() == [7, 7, 10]
    assert table["value"].tolist() == pytest.approx([70, 70, 100])
    assert table["n"].tolist() == [1, 1, 2] and (table["left_out"] == 1).all()


def test_fewer_judged_rollouts_go_to_the_nearest_difficulty(few):
    frame = _difficulty(
        [[0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, None, None, None, None, None]],
        [[1.0] * 8, [2.0] * 8],
    )
    assert score_by_difficulty(frame, ["w"], config=few)["difficulty"].tolist() == [1 / 8, 3 / 8]


def test_per_cent_of_a_peak_that_is_not_positive_are_undefined(few):
    table = score_by_difficulty(_difficulty([[0], [1]], [[-2], [-1]]), ["w"], config=few)
    assert table["value"].isna().all() and table["mean"].tolist() == [-2, -1]
