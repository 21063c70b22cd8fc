"""Recall of gold documents (S2 §6.1, §6.2)."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr

from workbench.inference.bootstrap import BootstrapConfig
from workbench.mechanism.gold import NO_GOLD, NO_IDS, argmax_recall, gold_recall, recall_summary
from workbench.reports.record import Document


def _rollout(make_rollout, ids, gold=("g1", "g2"), **changes):
    documents = [Document("text", tuple(group)) for group in ids]
    return make_rollout(None, documents, gold_documents=tuple(gold), **changes)


def test_recall_by_hand(make_rollout):
    frame = gold_recall(
        [
            _rollout(make_rollout, [["g1", "x"], ["g1"]]),
            _rollout(make_rollout, [["g2"], ["g1"]]),
            _rollout(make_rollout, []),
            _rollout(make_rollout, [[]]),
            _rollout(make_rollout, [["g1"]], gold=()),
            _rollout(make_rollout, [[]], cell="no ids"),
            _rollout(make_rollout, [["g1"]], gold=("g1", "g1")),
        ]
    )
    assert frame["gold_recall"].tolist()[:4] == [0.5, 1, 0, 0]
    assert frame["gold_recall"].isna().tolist() == [False] * 4 + [True] * 2 + [False]
    assert frame["reason"].tolist() == ["", "", "", "", NO_GOLD, NO_IDS, ""]
    assert frame["gold_recall"][6] == 1 and frame["gold"].tolist()[4:] == [0, 2, 1]


@pytest.fixture
def frame():
    rng = np.random.default_rng(5)
    correct = rng.random(40) < 0.5
    return pd.DataFrame(
        {
            "question_id": [f"q{k // 8}" for k in range(40)],
            "rollout_id": [str(k % 8) for k in range(40)],
            "correct": correct.astype(object),
            "gold_recall": np.clip(correct * 0.6 + rng.random(40) * 0.4, 0, 1),
            "w": correct + rng.normal(0, 1, 40),
        }
    )


def test_means_and_correlations(frame, few):
    frame.loc[0, "w"] = np.nan
    frame.loc[1, "correct"] = None
    frame.loc[2, "gold_recall"] = np.nan
    table = recall_summary(frame, ["w"], config=few).set_index("metric")
    known = frame.drop(index=[1, 2])
    right = known["correct"].astype(bool)
    assert table["value"]["mean, right"] == pytest.approx(known["gold_recall"][right].mean())
    assert table["value"]["mean, wrong"] == pytest.approx(known["gold_recall"][~right].mean())
    r = pearsonr(known["gold_recall"], right.astype(float)).statistic
    assert table["value"]["r with correct"] == pytest.approx(r)
    known = frame.drop(index=[0, 2])
    r = pearsonr(known["gold_recall"], known["w"]).statistic
    assert table["value"]["r with w"] == pytest.approx(r)
    assert table["rollouts"].tolist() == [int(right.sum()), int((~right).sum()), 38, 38]
    assert (table["low"] < table["value"]).all() and (table["value"] < table["high"]).all()


def test_a_constant_side_has_no_correlation(frame, few):
    table = recall_summary(frame.assign(gold_recall=0.1), ["w"], config=few).set_index("metric")
    assert table["value"][["r with correct", "r with w"]].isna().all()


@settings(max_examples=20)
@given(st.floats(0.01, 100), st.floats(-100, 100))
def test_correlations_do_not_feel_affine_maps(scale, shift):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "question_id": list("aabbccdd"),
            "correct": [0, 1] * 4,
            "gold_recall": rng.random(8),
            "w": rng.random(8),
        }
    )
    config = BootstrapConfig(draws=100)
    tables = [
        recall_summary(f, ["w"], config=config).set_index("metric").loc["r with w"]
        for f in (frame, frame.assign(w=scale * frame["w"] + shift))
    ]
    for column in ("value", "low", "high"):
        assert tables[0][column] == pytest.approx(tables[1][column], abs=1e-6)


def test_the_rollouts_that_scores_put_first(few):
    rows = [
        # question, correct, recall, w_a, w_b
        ("a", 1, 1.0, 0.9, 0.1), ("a", 0, 0.2, 0.1, 0.9), ("a", None, 0.0, 0.0, 0.0),
        ("b", 1, 0.8, 0.5, 0.7), ("b", 0, 0.4, 0.5, 0.2), ("b", 0, np.nan, 9.0, 0.2),
        ("c", 0, 1.0, 0.5, 0.5), ("c", 0, 1.0, 0.6, 0.5), ("c", 0, 1.0, 0.6, 0.5),
        ("d", 1, 1.0, 0.5, 0.5), ("d", 1, 1.0, 0.6, 0.5), ("d", 1, 1.0, 0.6, 0.5),
        ("e", 1, 1.0, 0.5, np.nan), ("e", 0, 1.0, 0.6, np.nan), ("e", 0, 1.0, 0.6, np.nan),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["question_id", "correct", "gold_recall", "w_a", "w_b"])
    table = argmax_recall(frame, ("w_a", "w_b"), config=few).set_index("score")
    # a: 1.0 and 0.2; b: a tie of 0.8 and 0.4, and 0.8; c and d are outside; e has no w_b
    assert table["value"].to_dict() == pytest.approx({"w_a": 0.8, "w_b": 0.5, "w_a - w_b": 0.3})
    assert (table["n"] == 2).all() and (table["left_out"] == 1).all()


def test_an_empty_bucket_keeps_its_rows(frame, few):
    table = argmax_recall(frame, ("w", "gold_recall"), right=(9, 9), config=few)
    assert table["value"].isna().all() and (table["n"] == 0).all()
