"""Proposition 1 of S1 with the project's own advantages, its boundary cases, and ties."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.methods.advantages import standardise
from workbench.methods.base import Scores
from workbench.methods.group_relative import GroupRelative, GroupRelativeParams
from workbench.methods.proposition import (
    Decomposition,
    centred,
    cosine,
    decompose,
    homogeneous_advantages,
    phantom_credit,
    sign_flips,
    tie_breaking,
)
from workbench.methods.shaping import Outcomes, Shaping, shaped_reward

PAPER = Shaping()
units = st.integers(0, 64).map(lambda k: k / 64)
gates = st.integers(1, 64).map(lambda k: k / 64)
rollouts = st.tuples(st.integers(0, 2), st.integers(0, 3), units)  # kind, searches, d
groups = st.lists(rollouts, min_size=2, max_size=6)


def of(group, b=0.3, shaping=PAPER):
    kind, searches, d = (np.array(column) for column in zip(*group))
    return decompose(kind > 0, kind == 2, searches, d, b, shaping)


@given(groups, units, gates)
def test_equation_11_is_the_projects_advantage(group, b, gamma):
    found = of(group, b)
    for delta in (1e-6, 0.1):
        np.testing.assert_allclose(
            found.advantages(gamma, delta), standardise(found.rewards(gamma), delta), atol=1e-9
        )


@given(groups, units)
def test_the_questions_own_gate_gives_the_reward_of_training(group, b):
    kind, searches, d = (np.array(column) for column in zip(*group))
    names = ["q"] * len(group)
    found = Outcomes(kind > 0, kind == 2, searches, names, names)
    for gate, gamma in (("necessity", 1 - b), ("open", 1.0)):
        reward = shaped_reward(found, d, np.full(len(group), b), Shaping(gate=gate)).reward
        np.testing.assert_allclose(of(group, b).rewards(gamma), reward)


def test_with_the_methods_own_arrays(rolled_out):
    group = [rolled_out("x", searches) for searches in (0, 1, 2, 1, 3)]
    found = of([(2, 0, 0.0), (2, 1, 0.9), (2, 2, 0.4), (0, 1, 0.0), (1, 3, 0.0)])
    method = GroupRelative("m", GroupRelativeParams(), lambda *_: Scores(found.rewards(0.7)))
    given_out = method.advantages([], group, method.score([], group))
    tokens = [float(a[t.generated][0]) for a, t in zip(given_out, group)]
    np.testing.assert_allclose(tokens, found.advantages(0.7), rtol=1e-6)


@given(groups, units, gates)
def test_direction_is_kept_and_the_norm_is_fixed(group, b, gamma):
    found = of(group, b)
    assume(not found.degenerate(gamma))
    z, size = found.direction(gamma), np.sqrt(len(group) - 1)
    for delta in (0.0, 1e-6, 0.5):
        assert cosine(found.advantages(gamma, delta), z) == pytest.approx(1)
    assert np.linalg.norm(found.advantages(gamma, 0.0)) == pytest.approx(size)
    norms = [np.linalg.norm(found.advantages(gamma, delta)) for delta in (0.0, 1e-3, 0.5)]
    assert norms == sorted(norms, reverse=True) and norms[2] < size


@given(groups, units, gates, gates)
def test_independent_parts_give_each_gate_its_own_direction(group, b, first, second):
    found = of(group, b)
    assume(found.relation == "independent" and first != second)
    assume(not found.degenerate(first) and not found.degenerate(second))
    assert cosine(found.direction(first), found.direction(second)) < 1 - 1e-12


def test_by_hand():
    # Direct, searched, searched with cost, wrong: a = 1.25, 1, .98, .05 and x = 0, .8, .5, 0.
    found = of([(2, 0, 0.9), (2, 1, 0.8), (2, 2, 0.5), (1, 1, 0.7)], b=0.5)
    np.testing.assert_allclose(found.a, [1.25, 1.0, 0.98, 0.05])
    np.testing.assert_allclose(found.x, [0.0, 0.8, 0.5, 0.0])
    np.testing.assert_allclose(found.direction(0.5), found.rewards(0.5) - found.rewards(0.5).mean())
    assert found.relation == "independent" and found.reversal is None
    assert cosine(found.direction(0.5), found.direction(1.0)) == pytest.approx(
        np.corrcoef(found.rewards(0.5), found.rewards(1.0))[0, 1]
    )


def test_collinear_parts_turn_round_only_through_zero():
    # u = -.15·v: z = (.6γ - .15)·v vanishes at γ = .25.
    x = np.array([0.2, 0.6, 1.0])
    found = Decomposition(1 - 0.15 * x, x, 0.6)
    assert found.relation == "collinear" and found.reversal == pytest.approx(0.25)
    assert found.degenerate(found.reversal) and not found.degenerate(0.3)
    before, after, later = (found.advantages(g, 0.0) for g in (0.1, 0.4, 1.0))
    np.testing.assert_allclose(before, -after)
    np.testing.assert_allclose(after, later)
    assert sign_flips(before, after) == 2 and sign_flips(after, later) == 0
    assert standardise(np.round(found.rewards(0.25), 12), 1e-6).tolist() == [0, 0, 0]
    same_way = Decomposition(1 + 0.15 * x, x, 0.6)
    assert same_way.relation == "collinear" and same_way.reversal is None


def test_a_collinear_group_of_training():
    # Two rollouts are always collinear; here direct .5b = .3 against searched .6·γ·1.
    found = of([(2, 0, 0.0), (2, 1, 1.0)], b=0.6)
    assert found.relation == "collinear" and found.reversal == pytest.approx(0.5)
    assert np.sign(found.advantages(0.4)).tolist() == [1, -1]
    assert np.sign(found.advantages(0.6)).tolist() == [-1, 1]


homogeneous = st.tuples(st.lists(units, min_size=2, max_size=6), st.sampled_from([1, 2]))


@given(homogeneous, gates, gates)
def test_homogeneous_groups_keep_ranking_sign_and_direction(case, first, second):
    d, searches = case
    found = of([(2, searches, value) for value in d])
    np.testing.assert_array_equal(found.u, 0)
    np.testing.assert_allclose(found.v, centred(d), atol=1e-15)
    assume(np.ptp(d) > 0)
    assert found.relation == "homogeneous"
    one, two = found.advantages(first), found.advantages(second)
    np.testing.assert_array_equal(np.argsort(one, kind="stable"), np.argsort(two, kind="stable"))
    np.testing.assert_array_equal(np.sign(one), np.sign(two))
    assert sign_flips(one, two) == 0 and cosine(one, two) == pytest.approx(1)
    # Eq. 17: with δ = 0 the gate cancels, with δ > 0 it changes one factor.
    np.testing.assert_allclose(found.advantages(first, 0.0), centred(d) / np.std(d, ddof=1))
    for delta in (0.0, 1e-6, 0.3):
        shrink = 0.6 * first * np.std(d, ddof=1)
        expected = centred(d) / np.std(d, ddof=1) * shrink / (shrink + delta)
        np.testing.assert_allclose(found.advantages(first, delta), expected, atol=1e-12)
        closed = homogeneous_advantages(d, PAPER, first, delta)
        np.testing.assert_allclose(closed, expected, atol=1e-12)


def test_a_larger_delta_shrinks_small_gates_more():
    d = [0.2, 0.5, 0.9]
    weak, strong = (
        np.linalg.norm(homogeneous_advantages(d, PAPER, gamma, 0.1)) for gamma in (0.1, 1.0)
    )
    assert weak < 0.3 * strong


def test_boundary_no_gate():
    found = of([(2, 1, value) for value in (0.1, 0.5, 0.9)])
    assert found.advantages(0.0).tolist() == [0, 0, 0]
    assert standardise(found.rewards(0.0), 1e-6).tolist() == [0, 0, 0]
    assert np.isnan(found.advantages(0.0, delta=0.0)).all()
    assert np.isnan(homogeneous_advantages([0.1, 0.5, 0.9], PAPER, 0.0, 0.0)).all()
    assert homogeneous_advantages([0.1, 0.5, 0.9], PAPER, 0.0, 1e-6).tolist() == [0, 0, 0]


def test_boundary_equal_reliance_breaks_no_tie():
    found = of([(2, 1, 0.7)] * 4)
    assert found.relation == "empty"
    assert all(not found.advantages(gamma).any() for gamma in (0.0, 0.5, 1.0))


def test_boundary_no_reliance_shaping():
    found = of([(2, 1, 0.2), (2, 2, 0.9), (2, 0, 0.0)], shaping=Shaping(lambda_g=0.0))
    np.testing.assert_array_equal(found.advantages(0.1), found.advantages(1.0))
    assert found.reversal is None


def test_boundary_zero_vectors():
    zero, other = np.zeros(3), np.array([1.0, -1.0, 0.0])
    assert np.isnan(cosine(zero, other)) and sign_flips(zero, other) == 0
    wrong = of([(1, 1, 0.4), (1, 0, 0.0)])
    assert wrong.relation == "empty" and wrong.degenerate(1.0)
    ungated = of([(1, 1, 0.4), (2, 0, 0.0)])
    assert ungated.relation == "ungated"


def test_a_group_of_one_has_no_credit():
    with pytest.raises(WorkbenchError, match="group of 1"):
        of([(2, 1, 0.5)])


KINDS = {
    "all right, d differs": (1, [1.6, 1.2, 1.0]),
    "all right, tied": (1, [1.3, 1.3, 1.3]),
    "mixed": (None, [1.4, 0.05, -0.1]),
    "all wrong, one invalid": (0, [0.05, 0.05, -0.1]),
    "all wrong, tied": (0, [0.05, 0.05, 0.05]),
}


def diagnostics_input():
    correct, rewards, names = [], [], []
    for name, (right, values) in KINDS.items():
        correct += [True, False, False] if right is None else [bool(right)] * 3
        rewards += values
        names += [name] * 3
    return np.array(correct), np.array(rewards), names


def test_tie_breaking_and_its_mirror():
    correct, rewards, names = diagnostics_input()
    ties = tie_breaking(correct, rewards, names)
    sd = np.std([1.6, 1.2, 1.0], ddof=1)
    assert (ties.groups, ties.credited, ties.share) == (2, 1, 0.5)
    assert (ties.sd, ties.sd_credited) == pytest.approx((sd / 2, sd))
    phantom = phantom_credit(correct, rewards, names)
    sd = np.std([0.05, 0.05, -0.1], ddof=1)
    assert (phantom.groups, phantom.credited, phantom.share) == (2, 1, 0.5)
    assert (phantom.sd, phantom.sd_credited) == pytest.approx((sd / 2, sd))


def test_under_the_outcome_alone_there_is_neither():
    correct, _, names = diagnostics_input()
    for measure in (tie_breaking, phantom_credit):
        found = measure(correct, correct.astype(float), names)
        assert (found.groups, found.share, found.sd) == (2, 0.0, 0.0)
        assert np.isnan(found.sd_credited)


def test_groups_of_neither_kind():
    found = tie_breaking(np.array([True, False]), np.array([1.0, 0.0]), ["q", "q"])
    assert found.groups == 0 and np.isnan(found.share) and np.isnan(found.sd)
    alone = tie_breaking(np.array([True]), np.array([1.2]), ["q"])
    assert alone.groups == 0  # one rollout has nobody to be told apart from


def test_equal_rewards_have_no_sd_not_even_rounding():
    assert np.std([1.4] * 3, ddof=1) > 0
    found = tie_breaking(np.ones(3, bool), np.full(3, 1.4), ["q"] * 3)
    assert (found.credited, found.sd) == (0, 0.0)


def test_which_mean_of_sds_the_paper_prints():
    """Fig. 4: sds of .189 or more, 46.6 to 48.7 % of NQ groups credited, five rollouts each."""
    grid = np.array(np.meshgrid(*[[0.98, 1.29, 1.6]] * 5)).reshape(5, -1)
    assert grid.std(axis=0, ddof=1).max() * 0.487 < 0.17 < 0.189 < grid.std(axis=0, ddof=1).max()


def test_phantom_credit_is_full_size():
    """A difference of .15 among wrong rollouts becomes credit of the size that a right one gets."""
    wrong, mixed = ([-0.1, 0.05, 0.05, 0.05, 0.05], [1.0, 0.05, 0.05, 0.05, 0.05])
    sizes = [np.abs(standardise(np.array(r), 1e-6)).max() for r in (wrong, mixed)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-4)
    found = phantom_credit(np.zeros(5, bool), np.array(wrong), ["q"] * 5)
    assert found.share == 1.0
