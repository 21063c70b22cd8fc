"""Action-aligned credit: eligibility, ℓ, permutation and the gate, on arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.agent.trajectory import Segment
from workbench.methods.local_credit import (
    REASONS,
    disabled_reason,
    on_queries,
    permuted,
    residuals,
    tied_outcomes,
)

DELTA = 1e-6
many = settings(max_examples=120, deadline=None)


def spoil(field, value, search=0):
    def change(trajectory):
        setattr(trajectory.searches[search], field, value)

    return change


def unrecorded(trajectory):
    del trajectory.searches[1]


def unexecuted(trajectory):
    start, end = trajectory.searches[0].query_span
    trajectory.segments[start:end] = Segment.CALL


def unobserved(trajectory):
    start, end = trajectory.searches[1].observation_span
    trajectory.segments[start:end] = Segment.REASONING


def swapped(trajectory):
    trajectory.searches.reverse()


def doubled(trajectory):
    trajectory.searches[1] = trajectory.searches[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: None, ""),
        (lambda t: setattr(t, "truncated", True), "truncated"),
        (spoil("query_span", (6, 6)), "query_span"),  # empty
        (spoil("query_span", (5, 8)), "query_span"),  # runs into the call's tag
        (spoil("query_span", (200, 202)), "query_span"),
        (spoil("query_span", (-1, 8)), "query_span"),
        (spoil("payload_span", (7, 10)), "query_span"),  # does not hold its query
        (spoil("payload_span", (5, 99)), "query_span"),
        (unexecuted, "query_span"),
        (spoil("scores", [1.0, 2.0, 3.0, 4.0]), "arrays"),
        (spoil("titles", ["one too many"] * 9), "arrays"),
        (swapped, "arrays"),
        (doubled, "arrays"),
        (unrecorded, "no_record"),
        (unobserved, "no_record"),
        (spoil("observation_span", (23, 23), search=1), "no_record"),
    ],
)
def test_why_a_local_term_is_disabled(small, change, reason):
    trajectory = small.searched(small.Searched(), small.Searched())
    assert [s.query_span for s in trajectory.searches] == [(6, 8), (17, 19)]
    change(trajectory)
    events = np.zeros(len(trajectory.searches))
    assert disabled_reason(trajectory, events) == reason
    assert reason in ("", *REASONS)


def test_events_must_fit_the_searches(small):
    trajectory = small.searched(small.Searched())
    assert disabled_reason(trajectory, np.zeros(2)) == "arrays"
    assert disabled_reason(trajectory, np.array([np.nan])) == "arrays"
    assert disabled_reason(small.searched(), np.zeros(0)) == ""


def test_an_answer_that_the_parser_refused_keeps_its_searches(small):
    trajectory = small.searched(small.Searched(), answer=None)
    assert disabled_reason(trajectory, np.zeros(1)) == ""


def z(values):
    values = np.asarray(values, float)
    return (values - values.mean()) / (values.std(ddof=1) + DELTA)


def test_residuals_compare_a_step_inside_a_group():
    events = [[0.5, 0.0], [0.0, 0.5], [0.5], [], [1.0, 0.2], [0.0, 0.2]]
    groups = ["a", "a", "a", "a", "b", "b"]
    got = residuals([np.array(e) for e in events], groups, DELTA)
    first, second = z(z([0.5, 0.0, 0.5])), z(z([0.0, 0.5]))
    np.testing.assert_allclose(got[0], [first[0], second[0]], rtol=1e-12)
    np.testing.assert_allclose(got[1], [first[1], second[1]], rtol=1e-12)
    np.testing.assert_allclose(got[2], [first[2]], rtol=1e-12)
    assert got[3].shape == (0,)
    np.testing.assert_allclose(got[4], [z(z([1.0, 0.0]))[0], 0.0], rtol=1e-12)
    # by hand: two unlike events become ±1/sqrt(2), shrunk by δ/sd twice
    sd = np.sqrt(0.5)
    once = (0.5 / (sd + DELTA), sd / (sd + DELTA))
    assert got[4][0] == pytest.approx(once[0] / (once[1] + DELTA), rel=1e-12)


def test_a_rollout_that_is_not_eligible_is_no_yardstick():
    events = [np.array([1.0]), None, np.array([0.0]), np.array([0.0])]
    got = residuals(events, ["q"] * 4, DELTA)
    assert got[1].shape == (0,)
    expected = z(z([1.0, 0.0, 0.0]))
    np.testing.assert_allclose([got[0][0], got[2][0], got[3][0]], expected, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 1 / 3, 0.1 + 0.2])
@pytest.mark.parametrize("eligible", [1, 2, 5])
def test_constant_and_lonely_steps_are_exactly_zero(value, eligible):
    events = [np.array([value])] * eligible + [None] * 2
    got = residuals(events, ["q"] * len(events), DELTA)
    assert all((credit == 0).all() for credit in got)


def batch(small, masses, seed=11):
    """Two groups with one trajectory for each row of masses."""
    trajectories = [
        small.searched(*[small.Searched()] * len(m), item_id=f"q{i % 2}", seed=seed)
        for i, m in enumerate(masses)
    ]
    return [np.array(m, float) for m in masses], trajectories


mass = st.sampled_from([0.0, -3.0, -1.5, 2.0, 4.0, 7.25])


@many
@given(data=st.data())
def test_permutation_keeps_actions_and_masses(small, data):
    rows = data.draw(st.lists(st.lists(mass, max_size=3), min_size=1, max_size=9))
    masses, trajectories = batch(small, rows)
    moved = permuted(masses, trajectories, 1729)
    for before, after in zip(masses, moved):
        assert ((before != 0) == (after != 0)).all()
    for group in ("q0", "q1"):
        rows = [i for i, t in enumerate(trajectories) if t.group == group]
        for t in range(3):
            before, after = (
                sorted(m[i][t] for i in rows if len(m[i]) > t) for m in (masses, moved)
            )
            assert before == after
    assert [m.tolist() for m in permuted(masses, trajectories, 1729)] == [m.tolist() for m in moved]


def test_permutation_is_named_by_seed_rollouts_question_and_step(small):
    rows = [[float(1 + i // 2), float(1 + i // 2)] for i in range(16)]

    def drawn(seed, rollout_seed):
        moved = permuted(*batch(small, rows, rollout_seed), seed)
        return {
            (group, t): tuple(m[t] for m in moved[group::2]) for group in (0, 1) for t in (0, 1)
        }

    base = drawn(1729, 5)
    assert len(set(base.values())) == 4  # other draws for another question or step
    assert base == drawn(1729, 5)
    assert base != drawn(1730, 5) and base != drawn(1729, 6)


def test_fixed_points_are_allowed_and_every_arrangement_occurs(small):
    found = {
        tuple(m[0] for m in permuted(*batch(small, [[1.0], [], [2.0], [], [3.0]], seed), 1729)[::2])
        for seed in range(60)
    }
    assert len(found) == 6


def test_the_gate_looks_at_the_complete_group():
    outcome = np.array([0.0, 1.0, 0.5, 0.5 + 5e-7, 1.0])
    tied = tied_outcomes(outcome, ["a", "a", "b", "b", "c"])
    assert tied.tolist() == [False, False, True, True, True]
    assert tied_outcomes(outcome[2:4], ["b", "b"], flat_range=1e-8).tolist() == [False, False]
    at_the_bound = tied_outcomes(np.array([0.0, 0.25]), ["b", "b"], flat_range=0.25)
    assert at_the_bound.all()  # no-flat needs more than the bound


def test_mass_is_spread_over_the_executed_query(small):
    trajectory = small.searched(small.Searched(query=2), small.Searched(query=4, call=7))
    credit = on_queries(np.array([3.0, -2.0]), trajectory)
    assert credit[6:8].tolist() == [1.5, 1.5]
    (start, end) = trajectory.searches[1].query_span
    assert credit[start:end].tolist() == [-0.5] * 4
    assert credit.sum() == 1.0 and (credit != 0).sum() == 6
