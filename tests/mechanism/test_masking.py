"""DeepConf without copies (S2 Table 11)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from workbench.mechanism.masking import (
    ALL_COPIED,
    DC,
    MASKED,
    NO_CANDIDATES,
    masked_scores,
    masking_table,
)
from workbench.reports.record import Phase
from workbench.voting.deepconf import DeepConfConfig, reduce_confidences

WINDOW = DeepConfConfig(window=2)


def _of(rollout, config=WINDOW):
    return masked_scores([rollout], config).iloc[0]


def test_by_hand(make_rollout):
    # C = 1, 2, 9, 3, 4; the copies are the first and the fourth token, "." cannot be one
    topk = [[-1, -1], [-1, -3], [-9, np.nan], [-3, -3], [-4, -4]]
    rollout = make_rollout(["Ġyes", "Ġnope", ".", "Ġyes", "Ġoslo"], ["yes"], topk=topk)
    row = _of(rollout)
    assert row[DC] == 1.5
    assert row[MASKED] == 5.5  # windows of 2, 9, 4
    assert (row["tokens"], row["masked"], row["share"]) == (5, 2, 0.5)


def test_copies_are_masked_wherever_they_were_generated(make_rollout):
    topk, phases = [[-1], [-5]], [Phase.CALL, Phase.ANSWER]
    assert _of(make_rollout(["Ġyes", "Ġno"], ["yes"], topk=topk, phases=phases))[MASKED] == 5


def test_missing_scores_say_why(make_rollout):
    frame = masked_scores(
        [
            make_rollout(["Ġyes"], ["yes"]),
            make_rollout(None, ["yes"]),
            make_rollout(["Ġyes"], ["yes"], topk=[[np.nan]]),
            make_rollout(["Ġyes"], []),
        ]
    )
    assert frame["reason"].tolist() == [ALL_COPIED, NO_CANDIDATES, NO_CANDIDATES, ""]
    assert frame[DC].isna().tolist() == [False, True, True, False]
    assert frame[MASKED].isna().tolist() == [True, True, True, False]
    assert np.isnan(frame["share"][3])


@settings(max_examples=40)
@given(st.lists(st.floats(-20, 0, width=32), min_size=1, max_size=12), st.integers(1, 5))
def test_masking_nothing_leaves_deepconf_as_it_is(make_rollout, logprobs, window):
    config = DeepConfConfig(window=window)
    topk = np.array(logprobs)[:, None]
    for documents in ([], ["something else"]):
        row = _of(make_rollout(["Ġword"] * len(logprobs), documents, topk=topk), config)
        assert row[MASKED] == row[DC] == reduce_confidences(-topk[:, 0], config)
        assert row["masked"] == 0


def test_the_table_compares_scores_on_the_same_rollouts(make_rollout, few):
    rng = np.random.default_rng(1)
    rollouts = [
        make_rollout(
            ["Ġyes", "Ġyes", "Ġnope"], ["yes"], question=f"q{k // 3}", number=k,
            topk=-rng.random((3, 2)), correct=bool(k % 2),
        )
        for k in range(12)
    ]  # fmt: skip
    rollouts.append(make_rollout(["Ġyes"], ["yes"], question="q0", number=12, correct=True))
    frame = masked_scores(rollouts, WINDOW)
    frame["w_rgv"] = np.linspace(0, 1, len(frame))
    table = masking_table(frame, config=few).set_index(["metric", "score"])
    assert table.loc[("copy share", ""), "value"] == pytest.approx(2 / 3)
    assert table.loc[("copy share", ""), "rollouts"] == 13
    kept = frame[:12]
    for score in (DC, MASKED, "w_rgv"):
        row = table.loc[("AUC", score)]
        assert row["value"] == pytest.approx(roc_auc_score(kept["correct"], kept[score]))
        assert (row["rollouts"], row["dropped"]) == (12, 1)
        groups = kept.groupby("question_id")[score]
        within = ((kept[score] - groups.transform("mean")) ** 2).sum()
        share = within / (12 * kept[score].var(ddof=0))
        assert table.loc[("variance share", score), "value"] == pytest.approx(share)
    assert (table["cell"] == "c").all()
