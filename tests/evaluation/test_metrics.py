"""One row per trajectory: scores, counts, and what stays in the denominator."""

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.metrics import COLUMNS, evaluate


def test_scores_and_counts_of_one_searched_rollout(make_item, make_trajectory):
    item = make_item(answers=("Bamako", "Bamako City"), exposures=4, closed_book=True)
    frame = evaluate([item], [make_trajectory(answer="the Bamako city!", searches=2)])
    row = frame.iloc[0]
    assert list(frame.columns) == list(COLUMNS)
    assert (row["em"], row["f1"], row["inclusion"]) == (1.0, 1.0, 1.0)
    assert (row["searches"], row["searched"], row["direct"]) == (2, 1, 0)
    assert (row["prompt_tokens"], row["observation_tokens"]) == (3, 10)
    assert row["generated_tokens"] == 2 + 2 * 4 + 3, "reasoning, calls with queries, answer"
    assert (row["exposures"], row["closed_book"], row["category"]) == (4, True, "1-hop, single")
    assert (row["valid"], row["truncated"], row["missing"]) == (1, 0, 0)


def test_direct_needs_an_answer_and_no_search(make_item, make_trajectory):
    rollouts = [
        make_trajectory(),
        make_trajectory(answer=None, truncated=True),
        make_trajectory(searches=1),
    ]
    frame = evaluate([make_item()], rollouts)
    assert frame["direct"].tolist() == [1, 0, 0]
    assert frame["searched"].tolist() == [0, 0, 1]
    assert frame["em"].tolist() == [1, 0, 1]
    assert frame["truncated"].tolist() == [0, 1, 0]


def test_an_invalid_trajectory_scores_zero_but_keeps_its_text(make_item, make_trajectory):
    rollout = make_trajectory(valid=False, invalid_reason="search after the last round")
    row = evaluate([make_item()], [rollout]).iloc[0]
    assert (row["em"], row["f1"], row["inclusion"], row["direct"]) == (0, 0, 0, 0)
    assert (row["answer"], row["invalid_reason"]) == ("Bamako", "search after the last round")


def test_expected_rollouts_that_are_not_there_become_rows(make_item, make_trajectory):
    items = [make_item("q1"), make_item("q2", exposures=7)]
    frame = evaluate(items, [make_trajectory("q1")], expected=2)
    assert frame["item_id"].tolist() == ["q1", "q1", "q2", "q2"]
    assert frame["missing"].tolist() == [0, 1, 1, 1]
    assert frame["em"].tolist() == [1, 0, 0, 0]
    assert frame["exposures"].tolist() == [0, 0, 7, 7]
    assert np.isnan(frame["searches"].tolist()[1:]).all(), "no searches were observed, not none"
    with pytest.raises(WorkbenchError, match="q1: 2 rollouts where 1"):
        evaluate(items, [make_trajectory("q1"), make_trajectory("q1", sample=1)], expected=1)


def test_unknown_and_doubled_items_and_a_question_without_answer(make_item, make_trajectory):
    with pytest.raises(WorkbenchError, match="q9"):
        evaluate([make_item()], [make_trajectory("q9")])
    with pytest.raises(WorkbenchError, match="q1: two different items"):
        evaluate([make_item(), make_item(answers=("Oslo",))], [])
    assert len(evaluate([make_item(), make_item()], [], expected=1)) == 1
    with pytest.raises(WorkbenchError, match="no accepted answer"):
        evaluate([make_item(answers=())], [make_trajectory()])


def test_no_trajectories_give_an_empty_frame_with_its_columns(make_item):
    frame = evaluate([make_item()], [])
    assert len(frame) == 0 and list(frame.columns) == list(COLUMNS)
