"""Group-relative advantages: handed values, exact zeros, invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.agent.trajectory import Segment
from workbench.errors import WorkbenchError
from workbench.methods.advantages import group_advantages, on_generated

DELTA = 1e-6
rewards = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=2, max_size=8)


def test_handed_case():
    got = group_advantages(np.array([1.0, 0, 0, 0]), ["q"] * 4, DELTA)
    np.testing.assert_allclose(got, [1.499997, -0.499999, -0.499999, -0.499999], atol=5e-7)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e9 + 0.1])
@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_equal_rewards_and_groups_of_one_give_exactly_zero(value, size):
    got = group_advantages(np.full(size, value), ["q"] * size, DELTA)
    assert (got == 0).all()


def test_groups_may_interleave_and_differ_in_size():
    got = group_advantages(np.array([1, 7, 0, 7, 5, 1]), list("abacda"), 0.5)
    sd = np.sqrt(((1 / 3) ** 2 * 2 + (2 / 3) ** 2) / 2)
    a = np.array([1 / 3, -2 / 3, 1 / 3]) / (sd + 0.5)
    np.testing.assert_allclose(got, [a[0], 0, a[1], 0, 0, a[2]], rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(rewards)
def test_sum_norm_and_order(values):
    values = np.array(values)
    got = group_advantages(values, ["q"] * len(values), DELTA)
    sd = values.std(ddof=1)
    assert abs(got.sum()) < 1e-6
    if np.ptp(values) > 1e-9:
        expected_norm = sd / (sd + DELTA) * np.sqrt(len(values) - 1)
        assert np.linalg.norm(got) == pytest.approx(expected_norm, rel=1e-6)
    assert (np.diff(got[np.argsort(values, kind="stable")]) >= 0).all()


def test_a_reward_that_is_not_finite_is_refused():
    with pytest.raises(WorkbenchError, match="rollout 1: reward nan"):
        group_advantages(np.array([0.0, np.nan]), ["q", "q"], DELTA)


def test_advantages_lie_on_generated_tokens_only(rolled_out):
    s = Segment
    codes = [s.PROMPT, s.REASONING, s.CALL, s.QUERY, s.OBSERVATION, s.ANSWER, s.PADDING]
    one, two = rolled_out("x", segments=codes), rolled_out("x", segments=[s.PROMPT, s.ANSWER])
    got = on_generated(np.array([0.5, -2.0]), [one, two])
    np.testing.assert_array_equal(got[0], np.float32([0, 0.5, 0.5, 0.5, 0, 0.5, 0]))
    np.testing.assert_array_equal(got[1], np.float32([0, -2.0]))
    assert got[0].dtype == np.float32
