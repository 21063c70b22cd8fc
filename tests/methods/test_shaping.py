"""Eq. 6 branch by branch, refused settings, and the variants of Tables 4 and A22."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from workbench.errors import WorkbenchError
from workbench.methods.advantages import group_rows
from workbench.methods.shaping import Outcomes, Shaping, eq6, gate, outcomes, shaped_reward
from workbench.params.validate import validate
from workbench.params.yamlfile import Document
from workbench.questions.graph import Item

PAPER = Shaping()


def one(valid, correct, searches, d=0.0, b=0.0, n=0.0, shaping=PAPER):
    """The reward of one rollout."""
    columns = ([valid], [correct], [searches], [d], [b], [n])
    return float(sum(part[0] for part in eq6(*columns, shaping).values()))


@pytest.mark.parametrize(
    ("valid", "correct", "searches", "d", "b", "n", "reward"),
    [
        (0, 0, 0, 1.0, 1.0, 1.0, -0.1),  # invalid: nothing else counts
        (0, 0, 4, 1.0, 1.0, 1.0, -0.1),
        (1, 0, 0, 1.0, 1.0, 1.0, 0.05),  # wrong: neither search nor scores count
        (1, 0, 5, 1.0, 1.0, 1.0, 0.05),
        (1, 1, 0, 1.0, 0.0, 1.0, 1.0),  # direct: b alone
        (1, 1, 0, 1.0, 1.0, 0.0, 1.5),
        (1, 1, 0, 0.0, 0.4, 0.6, 1.2),
        (1, 1, 1, 0.0, 0.0, 1.0, 1.0),  # one search is free
        (1, 1, 1, 1.0, 0.0, 1.0, 1.6),
        (1, 1, 1, 1.0, 1.0, 0.0, 1.0),  # known anyway: no reliance credit
        (1, 1, 1, 0.5, 0.2, 0.8, 1.24),
        (1, 1, 2, 1.0, 0.0, 1.0, 1.58),  # repeated search costs η once
        (1, 1, 4, 1.0, 0.0, 1.0, 1.58),
        (1, 1, 2, 0.0, 0.0, 1.0, 0.98),
        (1, 1, 2, 0.5, 0.2, 0.8, 1.22),
    ],
)
def test_every_branch(valid, correct, searches, d, b, n, reward):
    assert one(valid, correct, searches, d, b, n) == pytest.approx(reward, abs=1e-12)


def test_the_defaults_are_the_papers():
    assert (PAPER.r_inv, PAPER.r_wrong, PAPER.lambda_g) == (-0.1, 0.05, 0.6)
    assert (PAPER.eta, PAPER.alpha_cb, PAPER.gate, PAPER.permute) == (0.02, 0.5, "necessity", False)


unit = st.integers(0, 64).map(lambda k: k / 64)
signed = st.integers(-64, 64).map(lambda k: k / 64)


@given(st.data())
def test_accepted_settings_put_correctness_first(data):
    try:
        shaping = Shaping(
            r_inv=data.draw(signed),
            r_wrong=data.draw(signed),
            lambda_g=data.draw(unit),
            eta=data.draw(unit),
            alpha_cb=data.draw(unit),
        )
    except ValidationError:
        assume(False)
    worst = min(one(1, 1, s, *data.draw(st.tuples(unit, unit, unit)), shaping) for s in (0, 1, 3))
    assert one(0, 0, 2, shaping=shaping) < one(1, 0, 2, shaping=shaping) < worst


@given(unit, unit, st.sampled_from([1, 2, 3]))
def test_when_searching_ranks_above_answering_directly(d, b, searches):
    """Eq. 7: λ_g·d·(1 - b) - η·c > α_cb·b."""
    left = 0.6 * d * (1 - b) - 0.02 * (searches > 1)
    assume(abs(left - 0.5 * b) > 1e-9)
    above = one(1, 1, searches, d, b, 1 - b) > one(1, 1, 0, 0.0, b)
    assert above == (left > 0.5 * b)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"r_inv": 0.05}, "r_inv < r_wrong"),
        ({"r_inv": 0.2}, "r_inv < r_wrong"),
        ({"r_wrong": 0.98}, "correctness would not come first"),
        ({"eta": 0.95}, "correctness would not come first"),
        ({"r_wrong": -0.1}, "r_inv < r_wrong"),
        ({"eta": 1.0}, "eta"),
        ({"eta": -0.01}, "eta"),
        ({"lambda_g": 1.01}, "lambda_g"),
        ({"lambda_g": -0.1}, "lambda_g"),
        ({"alpha_cb": 1.5}, "alpha_cb"),
        ({"alpha_cb": -0.5}, "alpha_cb"),
        ({"gate": "none"}, "gate"),
        ({"lamda_g": 0.4}, "lamda_g"),
        ({"lambda_g": float("nan")}, "lambda_g"),
    ],
)
def test_refused_settings(settings, field):
    with pytest.raises(ValidationError, match=field):
        Shaping(**settings)
    with pytest.raises(WorkbenchError, match=field):  # as a condition's file is read
        validate(Shaping, Document(settings, {(): "condition x: settings"}))


def test_settings_at_the_edge_are_taken():
    Shaping(r_inv=-0.5, r_wrong=-0.49, eta=0.99, lambda_g=1.0, alpha_cb=1.0)
    Shaping(lambda_g=0.0, eta=0.0, alpha_cb=0.0)


def batch(seed=0, questions=6, group=5):
    """A mixed batch with scores: every kind of rollout, b equal within a question."""
    rng = np.random.default_rng(seed)
    names = [f"q{i}" for i in range(questions) for _ in range(group)]
    valid = rng.random(len(names)) < 0.9
    found = Outcomes(
        valid, valid & (rng.random(len(names)) < 0.7), rng.integers(0, 4, len(names)), names, names
    )
    return found, rng.random(len(names)), np.repeat(rng.random(questions), group)


def branch(found):
    correct = found.correct
    return correct & (found.searches > 0), correct & (found.searches == 0)


def test_parts_add_up_to_the_reward():
    found, d, b = batch()
    scores = shaped_reward(found, d, b, PAPER)
    assert set(scores.parts) == {"outcome", "miss", "reliance", "search_cost", "direct_bonus"}
    np.testing.assert_allclose(sum(scores.parts.values()), scores.reward)
    np.testing.assert_array_equal(scores.parts["outcome"], found.correct)
    searched, direct = branch(found)
    np.testing.assert_allclose(scores.parts["reliance"], 0.6 * d * (1 - b) * searched)
    np.testing.assert_allclose(scores.parts["direct_bonus"], 0.5 * b * direct)
    np.testing.assert_allclose(
        scores.parts["search_cost"], -0.02 * (searched & (found.searches > 1))
    )


@pytest.mark.parametrize(
    ("settings", "searched_reward", "direct_reward"),
    [
        ({}, lambda d, b, c: 1 + 0.6 * d * (1 - b) - 0.02 * c, lambda b: 1 + 0.5 * b),
        ({"eta": 0.0}, lambda d, b, c: 1 + 0.6 * d * (1 - b), lambda b: 1 + 0.5 * b),
        ({"lambda_g": 0.0}, lambda d, b, c: 1 - 0.02 * c, lambda b: 1 + 0.5 * b),
        ({"gate": "open"}, lambda d, b, c: 1 + 0.6 * d - 0.02 * c, lambda b: 1 + 0.5 * b),
        ({"alpha_cb": 0.0}, lambda d, b, c: 1 + 0.6 * d * (1 - b) - 0.02 * c, lambda b: 1 + 0 * b),
        (
            {"gate": "open", "alpha_cb": 0.0},
            lambda d, b, c: 1 + 0.6 * d - 0.02 * c,
            lambda b: 1 + 0 * b,
        ),
        ({"lambda_g": 0.0, "alpha_cb": 0.0}, lambda d, b, c: 1 - 0.02 * c, lambda b: 1 + 0 * b),
    ],
    ids=["full", "no cost", "no reliance", "no gate", "no bonus", "neither", "cost only"],
)
def test_variants(settings, searched_reward, direct_reward):
    found, d, b = batch()
    reward = shaped_reward(found, d, b, Shaping(**settings)).reward
    searched, direct = branch(found)
    cost = (found.searches > 1).astype(float)
    np.testing.assert_allclose(reward[searched], searched_reward(d, b, cost)[searched])
    np.testing.assert_allclose(reward[direct], direct_reward(b)[direct])
    np.testing.assert_allclose(reward[found.valid & ~found.correct], 0.05)
    np.testing.assert_allclose(reward[~found.valid], -0.1)


SHUFFLED = Shaping(gate="shuffled")


@given(st.integers(0, 50), st.integers(1, 8), st.integers(1, 5))
def test_a_shuffled_gate_keeps_the_values_of_n(seed, questions, group):
    found, _, b = batch(seed, questions, group)
    n = gate(b, found.questions, SHUFFLED, seed)
    firsts = [rows[0] for rows in group_rows(found.questions)]
    np.testing.assert_array_equal(np.sort(n[firsts]), np.sort(1 - b[firsts]))
    for rows in group_rows(found.questions):
        assert np.ptp(n[rows]) == 0


def test_a_shuffled_gate_leaves_b_with_its_question():
    found, d, b = batch(1, questions=12)
    full, shuffled = (shaped_reward(found, d, b, s, seed=3) for s in (PAPER, SHUFFLED))
    for name in ("direct_bonus", "search_cost", "miss", "outcome"):
        np.testing.assert_array_equal(full.parts[name], shuffled.parts[name])
    searched, _ = branch(found)
    n = gate(b, found.questions, SHUFFLED, 3)
    np.testing.assert_allclose(shuffled.parts["reliance"], 0.6 * d * n * searched)
    assert not np.allclose(full.parts["reliance"], shuffled.parts["reliance"])


def test_a_shuffle_is_drawn_once_per_seed():
    found, d, b = batch(1, questions=12)
    first, same, other = (gate(b, found.questions, SHUFFLED, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_a_shuffle_needs_one_b_per_question():
    found, _, b = batch()
    b[1] += 1e-6
    with pytest.raises(WorkbenchError, match="b differs") as error:
        gate(b, found.questions, SHUFFLED, 0)
    assert error.value.where == "question q0"
    gate(b, found.questions, PAPER, 0)


@given(st.integers(0, 50))
def test_a_permutation_keeps_each_groups_rewards(seed):
    found, d, b = batch(seed)
    full = shaped_reward(found, d, b, PAPER, seed)
    mixed = shaped_reward(found, d, b, Shaping(permute=True), seed)
    for rows in group_rows(found.groups):
        np.testing.assert_allclose(np.sort(mixed.reward[rows]), np.sort(full.reward[rows]))
    wrong = ~found.correct
    np.testing.assert_array_equal(mixed.reward[wrong], full.reward[wrong])
    np.testing.assert_allclose(sum(mixed.parts.values()), mixed.reward)
    again = shaped_reward(found, d, b, Shaping(permute=True), seed)
    np.testing.assert_array_equal(again.reward, mixed.reward)


def test_a_permutation_breaks_the_pairing():
    found, d, b = batch(2)
    full = shaped_reward(found, d, b, PAPER, 0).reward
    draws = [shaped_reward(found, d, b, Shaping(permute=True), seed).reward for seed in range(4)]
    assert all(not np.allclose(draw, full) for draw in draws)
    assert not np.allclose(draws[0], draws[1])


def test_outcomes_are_read_off_trajectories(rolled_out):
    item = Item("q", "capital of Mali?", ("Bamako",), "1-hop", (), "train")
    rollouts = [
        rolled_out("bamako.", 0),
        rolled_out("Bamako", 3),
        rolled_out("Paris", 1),
        rolled_out("Bamako", 2, valid=False),
        rolled_out(None, 0, valid=False),
    ]
    found = outcomes([item] * 5, rollouts)
    assert found.valid.tolist() == [True, True, True, False, False]
    assert found.correct.tolist() == [True, True, False, False, False]
    assert found.searches.tolist() == [0, 3, 1, 2, 0]
    assert found.questions == found.groups == ["q"] * 5
    reward = shaped_reward(found, np.full(5, 0.5), np.full(5, 0.25), PAPER).reward
    np.testing.assert_allclose(reward, [1.125, 1.205, 0.05, -0.1, -0.1])
    with pytest.raises(ValueError, match="zip"):
        outcomes([item], rollouts)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"d": [np.nan]}, "d is nan"),
        ({"d": [1.01]}, "d is 1.01"),
        ({"n": [-0.01]}, "n is -0.01"),
        ({"d": [0.5, 0.5]}, "d has shape"),
        ({"searches": [-1]}, "negative searches"),
        ({"searches": [0], "b": [np.nan]}, "b is nan"),
        ({"valid": [False]}, "correct but not valid"),
    ],
)
def test_refused_input(change, what):
    columns = {
        "valid": [True], "correct": [True], "searches": [1], "d": [0.5], "b": [0.5], "n": [0.5]
    }  # fmt: skip
    eq6(**columns, shaping=PAPER)
    with pytest.raises(WorkbenchError, match=what):
        eq6(**columns | change, shaping=PAPER)


def test_scores_are_read_in_their_branch_only():
    nan = float("nan")
    assert one(0, 0, 2, nan, nan, nan) == -0.1
    assert one(1, 0, 2, nan, nan, nan) == 0.05
    assert one(1, 1, 0, nan, 0.5, nan) == 1.25
    assert one(1, 1, 1, 0.5, nan, 1.0) == 1.3
