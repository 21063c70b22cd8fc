"""Scalar and local incorporation as methods: the thirteen conditions on small rollouts."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from workbench.agent.trajectory import Segment
from workbench.grpo.metrics import share_metrics
from workbench.methods import Context, build_method, load_condition
from workbench.methods.advantages import group_advantages, on_generated
from workbench.methods.local_credit import disabled_reason, residuals
from workbench.methods.signals import build_signal, retrieval_events
from workbench.questions.graph import Evidence, Node

DELTA = 1e-6
ANSWERS = st.sampled_from(["x", "x y", "z", None])
LOCAL = ("cov_local", "cov_dep_local", "am_local")
CONTROLS = ("cov_permute", "am_permute", "cov_no_flat", "am_flat_only")
some = settings(max_examples=50, deadline=None)


def method(small, name):
    return build_method(load_condition(name), Context(chunks=small.CORPUS))


def rollouts(small, data, answers=ANSWERS, questions=2):
    """Groups of two to five rollouts of random questions, some truncated."""
    items, trajectories = [], []
    for number in range(data.draw(st.integers(1, questions))):
        item = data.draw(small.graphs())
        item = small.item_of(item.nodes, ("x", "page"), f"q{number}")
        for sample in range(data.draw(st.integers(2, 5))):
            items.append(item)
            trajectories.append(
                small.searched(
                    *data.draw(small.searches(3)),
                    answer=data.draw(answers),
                    item_id=item.item_id,
                    sample=sample,
                    truncated=data.draw(st.sampled_from([False] * 4 + [True])),
                )
            )
    return items, trajectories


def outcome_advantages(trajectories, scores):
    groups = [t.group for t in trajectories]
    shared = group_advantages(scores.parts["outcome"], groups, DELTA)
    return on_generated(shared, trajectories)


def local_terms(chosen, items, trajectories):
    """What the method adds to the outcome's advantage, token by token."""
    scores = chosen.score(items, trajectories)
    advantages = chosen.advantages(items, trajectories, scores)
    base = outcome_advantages(trajectories, scores)
    return [a.astype(float) - b for a, b in zip(advantages, base)]


def test_local_credit_by_hand(small):
    """Two rollouts, one of which finds the only passage; both answer right."""
    item = small.item_of([Node("v1", "?", ("x",), (Evidence("p0", 1, ((5, 8),)),))])
    hit = small.Searched((small.CORPUS["p0#1.0"],), query=2, call=6)
    miss = small.Searched((small.CORPUS["p3#1.0"],), query=4, call=5)
    pair = [small.searched(hit), small.searched(miss)]
    chosen = method(small, "cov_local")
    scores = chosen.score([item] * 2, pair)
    assert scores.reward.tolist() == [1.0, 1.0]
    assert scores.parts["progress"].tolist() == [1.0, 0.0]
    found, lost = chosen.advantages([item] * 2, pair, scores)
    # ℓ = ±1/sqrt(2); λ·L·ℓ/|Q| = .5·6·ℓ/2 and .5·5·ℓ/4
    queries = [slice(*t.searches[0].query_span) for t in pair]
    np.testing.assert_allclose(found[queries[0]], 1.5 * np.sqrt(0.5), rtol=1e-5)
    np.testing.assert_allclose(lost[queries[1]], -0.625 * np.sqrt(0.5), rtol=1e-5)
    assert (found != 0).sum() == 2 and (lost != 0).sum() == 4
    assert found.dtype == np.float32


@some
@given(data=st.data(), name=st.sampled_from(LOCAL))
def test_credit_of_a_query_sums_to_its_mass(small, data, name):
    items, trajectories = rollouts(small, data)
    chosen = method(small, name)
    signal = build_signal(name.removesuffix("_local"), small.CORPUS)
    events = [
        None if disabled_reason(t, e) else e
        for t, e in zip(trajectories, retrieval_events(signal, items, trajectories, 4))
    ]
    credit = residuals(events, [t.group for t in trajectories], DELTA)
    for trajectory, ell, added in zip(
        trajectories, credit, local_terms(chosen, items, trajectories)
    ):
        query = trajectory.segments == Segment.QUERY
        assert not added[~query].any()
        if trajectory.truncated:
            assert not added.any()
            continue
        for t, search in enumerate(trajectory.searches):
            start, end = search.query_span
            length = search.payload_span[1] - search.payload_span[0]
            np.testing.assert_allclose(added[start:end].sum(), 0.5 * ell[t] * length, atol=2e-5)


@some
@given(data=st.data(), name=st.sampled_from(LOCAL + CONTROLS))
def test_credit_lies_on_executed_queries_only(small, data, name):
    items, trajectories = rollouts(small, data)
    chosen = method(small, name)
    scores = chosen.score(items, trajectories)
    base = outcome_advantages(trajectories, scores)
    for trajectory, values, shared in zip(
        trajectories, chosen.advantages(items, trajectories, scores), base
    ):
        elsewhere = trajectory.segments != Segment.QUERY
        np.testing.assert_array_equal(values[elsewhere], shared[elsewhere])
        assert not values[~trajectory.generated].any()


@some
@given(data=st.data(), signal=st.sampled_from(["cov", "am"]))
def test_the_two_gates_add_up_to_local(small, data, signal):
    items, trajectories = rollouts(small, data)
    whole, mixed, tied = (
        method(small, f"{signal}_{kind}") for kind in ("local", "no_flat", "flat_only")
    )
    outcome = whole.score(items, trajectories).parts["outcome"]
    terms = [m.masses(items, trajectories, outcome) for m in (whole, mixed, tied)]
    for trajectory, all_of_it, one, other in zip(trajectories, *terms):
        np.testing.assert_array_equal(one + other, all_of_it)
        rows = [i for i, t in enumerate(trajectories) if t.group == trajectory.group]
        silent = other if np.ptp(outcome[rows]) > 0 else one
        assert not silent.any()


@some
@given(data=st.data(), signal=st.sampled_from(["cov", "am"]))
def test_permutation_moves_masses_before_they_are_divided(small, data, signal):
    items, trajectories = rollouts(small, data)
    aligned = local_terms(method(small, f"{signal}_local"), items, trajectories)
    moved = local_terms(method(small, f"{signal}_permute"), items, trajectories)

    def masses(terms):
        found = {}
        for trajectory, added in zip(trajectories, terms):
            for t, search in enumerate(trajectory.searches):
                total = added[slice(*search.query_span)].sum()
                found.setdefault((trajectory.group, t), []).append(total)
        return found

    before, after = masses(aligned), masses(moved)
    assert before.keys() == after.keys()
    for step, values in before.items():
        np.testing.assert_allclose(sorted(values), sorted(after[step]), atol=5e-5)
        assert ((np.abs(values) > 1e-4) == (np.abs(after[step]) > 1e-4)).all()
    for one, other in zip(aligned, moved):
        assert ((np.abs(one) > 1e-5) == (np.abs(other) > 1e-5)).all()


@some
@given(data=st.data(), name=st.sampled_from(["cov_scalar", "cov_dep_scalar", "am_scalar"]))
def test_scalar_with_equal_outcomes_is_the_formula_of_a4(small, data, name):
    """z(c + αI) = (I - mean I) / (s_I + ε/α)."""
    items, trajectories = rollouts(small, data, st.just("x"), questions=1)
    assume(not any(t.truncated for t in trajectories))
    chosen = method(small, name)
    scores = chosen.score(items, trajectories)
    progress = scores.parts["progress"]
    np.testing.assert_allclose(scores.reward, 1.0 + 0.25 * progress, rtol=1e-12)
    deviation = progress.std(ddof=1) + DELTA / 0.25
    expected = (progress - progress.mean()) / deviation
    got = chosen.advantages(items, trajectories, scores)
    for trajectory, values, wanted in zip(trajectories, got, expected):
        np.testing.assert_allclose(values[trajectory.generated], wanted, atol=1e-6)
        assert not values[~trajectory.generated].any()
    if np.ptp(progress) == 0:
        assert not any(values.any() for values in got)


def test_rounding_makes_credit_of_equal_gains_and_exact_potentials_do_not(small):
    """Of three nodes, the second to be found is worth .3334 and the others .3333."""
    nodes = [Node(f"v{i}", "?", ("x",), (Evidence(f"p{i}", 1, ((5, 8),)),), ()) for i in (0, 1, 2)]
    item = small.item_of(nodes)

    def search(*pages):
        return small.Searched(tuple(small.CORPUS[f"p{p}#1.0"] for p in pages))

    group = [small.searched(search(0), search(1)), small.searched(search(0, 1), search(2))]
    masses = {}
    for digits in (4, None):
        condition = load_condition("cov_local")
        changed = {"settings": condition.settings | {"digits": digits}}
        chosen = build_method(condition.model_copy(update=changed), Context(small.CORPUS))
        masses[digits] = [m[1] for m in chosen.masses([item] * 2, group, np.zeros(2))]
    assert masses[4][0] == pytest.approx(2.5 * np.sqrt(0.5), rel=0.02) == -masses[4][1]
    assert masses[None] == [0.0, 0.0]


def test_what_a_step_logs(small):
    """Two groups of two: one tied, one mixed, each with one search that finds the passage."""
    node = Node("v1", "?", ("x",), (Evidence("p0", 1, ((5, 8),)),))
    items = [small.item_of([node], item_id=name) for name in "aabb"]
    hit, miss = (small.Searched((small.CORPUS[c],)) for c in ("p0#1.0", "p3#1.0"))
    group = [
        small.searched(hit, item_id="a"),
        small.searched(miss, item_id="a"),
        small.searched(hit, item_id="b", answer="z"),  # wrong, with the evidence
        small.searched(miss, item_id="b"),
    ]

    def logged(name):
        chosen = method(small, name)
        scores = chosen.score(items, group)
        advantages = chosen.advantages(items, group, scores)
        return share_metrics([chosen.shares(items, group, scores, advantages)])

    assert logged("oo") == {}
    local = logged("cov_local")
    assert local["tied_outcome_groups"] == 0.5
    assert local["tied_credit"] == pytest.approx(0.5)
    assert local["local_disabled"] == local["local_disabled_truncated"] == 0
    assert local["credited_searches"] == 1.0
    # on each of two query tokens ±.5·5/2·.707 against ∓.707 of the outcome, but over all twelve
    # generated tokens 12·.707 outweigh 2.5·.707
    assert local["query_sign_reversals"] == 1.0
    assert local["rank_reversals"] == local["sign_reversals"] == 0
    assert logged("cov_no_flat")["tied_credit"] == 0
    assert logged("cov_flat_only")["tied_credit"] == 1
    scalar = logged("cov_scalar")
    assert set(scalar) == {"tied_outcome_groups", "tied_credit", "rank_reversals", "sign_reversals"}
    # the mixed pair keeps ±.707 whatever the bonus: all that the bonus adds lies in the tied group
    assert scalar["tied_credit"] == pytest.approx(1.0, abs=1e-4)
    assert scalar["rank_reversals"] == scalar["sign_reversals"] == 0

    group[2].truncated = True
    local = logged("cov_local")
    assert local["local_disabled"] == local["local_disabled_truncated"] == 0.25
    assert local["tied_credit"] == pytest.approx(1.0)  # the mixed group has one eligible rollout
    assert local["credited_searches"] == 0.5
    assert local["query_sign_reversals"] == 0


def test_shares_without_a_whole_are_left_out(small):
    items = [small.item_of([], ("x",))] * 2
    pair = [small.searched(), small.searched()]
    chosen = method(small, "am_local")
    scores = chosen.score(items, pair)
    advantages = chosen.advantages(items, pair, scores)
    got = share_metrics([chosen.shares(items, pair, scores, advantages)])
    assert "tied_credit" not in got and "rank_reversals" not in got
    assert got["tied_outcome_groups"] == 1.0 and got["local_disabled"] == 0.0
