"""Intermediate credit and coverage: handed values and refusals."""

import math

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.methods.coverage import coverage, dependent_coverage
from workbench.methods.credit import (
    discounted_returns,
    gold_probabilities,
    information_gains,
    search_penalty,
)
from workbench.questions.graph import Node


def test_step_returns():
    np.testing.assert_allclose(discounted_returns([0, 0, 1], 0.95), [0.9025, 0.95, 1.0])
    np.testing.assert_allclose(discounted_returns([1, 0, 2], 0.5), [1.5, 1.0, 2.0])
    assert discounted_returns([], 0.95).shape == (0,)


def test_information_gains():
    p = gold_probabilities([[-2, -3], [-1, -1], [-1.5, -0.9]])
    np.testing.assert_allclose(p, [0.082085, 0.367879, 0.301194], atol=5e-7)
    np.testing.assert_allclose(information_gains(p), [0.285794, -0.066685], atol=5e-7)
    assert gold_probabilities([[-math.inf, -1.0]]).tolist() == [0.0]


@pytest.mark.parametrize("bad", [[[]], [[-1.0], [math.nan]], [[0.5]]])
def test_logprobs_that_are_none_are_refused(bad):
    with pytest.raises(WorkbenchError, match=f"turn {len(bad) - 1}"):
        gold_probabilities(bad)


@pytest.mark.parametrize(
    ("searches", "fewest", "reward"), [(3, None, 0.85), (3, 1, 0.90), (1, 2, 1.0), (0, None, 1.0)]
)
def test_search_penalty(searches, fewest, reward):
    assert 1 - search_penalty(searches, fewest, 0.05) == pytest.approx(reward)


def chain(*ids: str) -> list[Node]:
    return [
        Node(name, "?", ("x",), (), prerequisites=ids[max(0, i - 1) : i])
        for i, name in enumerate(ids)
    ]


def test_coverage_of_a_chain_with_a_gap():
    nodes = chain("v1", "v2", "v3")
    assert coverage(nodes, {"v1", "v3"}) == pytest.approx(0.6667, abs=5e-5)
    assert dependent_coverage(nodes, {"v1", "v3"}) == pytest.approx(0.3333, abs=5e-5)
    assert dependent_coverage(nodes, {"v1", "v2", "v3"}) == 1.0


def test_prerequisites_close_over_a_fan_in():
    a, b = Node("a", "?", ("x",), ()), Node("b", "?", ("x",), (), ("a",))
    c, d = Node("c", "?", ("x",), ()), Node("d", "?", ("x",), (), ("b", "c"))
    assert dependent_coverage([d, b, a, c], {"a", "c", "d"}) == 0.5
    assert dependent_coverage([d, b, a, c], {"b", "c", "d"}) == 0.25


def test_coverage_refuses_other_nodes_and_empty_graphs():
    with pytest.raises(WorkbenchError, match="v9"):
        coverage(chain("v1"), {"v9"})
    with pytest.raises(WorkbenchError, match="without nodes"):
        dependent_coverage([], set())
