"""Confidence weights against hand values and a plain-loop reading of the formula."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.voting.deepconf import (
    DeepConfConfig,
    deepconf_weight,
    group_confidences,
    reduce_confidences,
    token_confidences,
)


def test_candidates_without_probability_are_dropped_and_counted():
    found = token_confidences([[-0.1, -2.0, -math.inf]])
    assert found.values.tolist() == [pytest.approx(1.05)]
    assert (found.dropped_candidates, found.dropped_tokens) == (1, 0)
    mixed = token_confidences([[-1.0, -3.0], [-9999.0, math.nan], [-0.5], []])
    assert mixed.values.tolist() == [2.0, 0.5]
    assert (mixed.dropped_candidates, mixed.dropped_tokens) == (2, 2)
    assert token_confidences(np.array([[-1.0, -2.0]])).values.tolist() == [1.5]


def test_windows_and_reductions_by_hand():
    stream = np.array([4.0, 2.0, 0.0, 6.0, 8.0])
    assert group_confidences(stream, 2).tolist() == [3, 1, 3, 7]
    assert reduce_confidences(stream, DeepConfConfig(window=2)) == 1.0
    bottom = DeepConfConfig(reduction="bottom", window=2, bottom=0.5)
    assert reduce_confidences(stream, bottom) == 2.0, "the lower two of four windows"
    assert reduce_confidences(stream, DeepConfConfig(reduction="bottom", window=2)) == 1.0
    assert reduce_confidences(stream, DeepConfConfig(reduction="tail", window=2)) == 7.0
    tenth = DeepConfConfig(reduction="bottom", window=1)
    assert reduce_confidences(np.arange(25.0), tenth) == 0.5, "two of 25 windows, not three"


@pytest.mark.parametrize("reduction", ["lowest_group", "bottom", "tail"])
def test_a_stream_shorter_than_the_window_is_one_window(reduction):
    stream = np.array([1.0, 2.0, 6.0])
    assert reduce_confidences(stream, DeepConfConfig(reduction=reduction)) == 3.0


def test_no_confidence_is_an_error_not_a_score():
    with pytest.raises(WorkbenchError, match="no token"):
        reduce_confidences(np.array([]))


def test_weight_reads_generated_tokens_only(make_rollout):
    top_k = [[-50.0, -50.0], [-1.0, -3.0], [-5.0, np.nan]]
    rollout = make_rollout(top_k=top_k)
    assert deepconf_weight(rollout) == pytest.approx((2.0 + 5.0) / 2)
    assert deepconf_weight(rollout, DeepConfConfig(window=1)) == pytest.approx(2.0)
    with pytest.raises(WorkbenchError, match="q1: the trajectory stores no top-k"):
        deepconf_weight(make_rollout())


@given(
    st.lists(st.floats(0, 20, width=32), min_size=1, max_size=40),
    st.integers(1, 50),
    st.sampled_from([0.1, 0.3, 1.0]),
)
def test_against_plain_loops(stream, window, share):
    width = min(window, len(stream))
    means = [sum(stream[i : i + width]) / width for i in range(len(stream) - width + 1)]
    got = group_confidences(np.array(stream), window)
    assert got.tolist() == pytest.approx(means, abs=1e-6)
    lowest = sorted(means)[: max(1, int(len(means) * share))]
    config = DeepConfConfig(reduction="bottom", window=window, bottom=share)
    expected = sum(lowest) / len(lowest)
    assert reduce_confidences(np.array(stream), config) == pytest.approx(expected, abs=1e-6)
