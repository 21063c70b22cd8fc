"""S1 Eq. 12 by hand."""

import numpy as np
import pytest

from workbench.grpo.reduction import micro_batch_weights, reduce_tokens


def test_two_workers_two_accumulation_steps_unequal_token_counts():
    # worker 0: micro-batches {1 token: 6} and {3 tokens: 1, 2, 3}
    # worker 1: micro-batches {2 tokens: 10, 20} and {1 token: 4}
    # token means 6, 2, 15, 4 -> their mean 6.75; the mean over all 7 tokens would be 46/7
    values = [
        [np.array([6.0]), np.array([]), np.array([1.0, 2.0]), np.array([3.0])],
        [np.array([10.0]), np.array([20.0]), np.array([4.0]), np.array([])],
    ]
    assert reduce_tokens(values, 2) == pytest.approx(6.75, rel=1e-15)


def test_one_micro_batch_is_the_token_mean():
    values = [[np.array([6.0]), np.array([1.0, 2.0]), np.array([3.0])]]
    assert reduce_tokens(values, None) == pytest.approx(3.0)


def test_a_micro_batch_without_selected_tokens_is_left_out():
    weights, batches = micro_batch_weights([0, 0, 4, 1, 2], 2)
    np.testing.assert_array_equal(weights, [0, 0, 0.2, 0.2, 0.5])
    assert batches == 2
    assert reduce_tokens([[np.array([])] * 2, [np.array([2.0]), np.array([4.0])]], 2) == 3.0


def test_nothing_selected_anywhere():
    weights, batches = micro_batch_weights([0, 0], 1)
    assert batches == 0 and not weights.any()
    assert np.isnan(reduce_tokens([[], [np.array([])]], 4))


def test_weights_of_a_last_smaller_micro_batch():
    weights, batches = micro_batch_weights([1, 3, 5], 2)
    np.testing.assert_array_equal(weights, [0.25, 0.25, 0.2])
    assert batches == 2
