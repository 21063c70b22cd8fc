"""What a step logs, by hand."""

import math

import numpy as np
import pytest
import torch

from workbench.grpo.config import ObjectiveConfig
from workbench.grpo.metrics import (
    TokenRecord,
    rollout_metrics,
    share_metrics,
    tied_groups,
    token_metrics,
)

OBJECTIVE = ObjectiveConfig(epsilon=0.2, entropy_coefficient=0.5, kl_coefficient=0.25, kl_clip=10)


def row(group, reward, outcome, credited, **changes):
    plain = {
        "group": group, "reward": reward, "parts": {"outcome": outcome, "bonus": reward - outcome},
        "credited": credited, "searches": 1, "direct": False, "valid": True, "truncated": False,
        "invalid_actions": 0, "tokens": 10, "generated": 4, "observed": 3,
    }  # fmt: skip
    return plain | changes


def test_reward_and_outcome_variance_are_told_apart():
    rows = [
        row("a", 1.5, 1.0, True),  # all right, told apart by a bonus: phantom credit
        row("a", 1.0, 1.0, True),
        row("b", 0.0, 0.0, False),  # nothing to learn
        row("b", 0.0, 0.0, False),
        row("c", 1.0, 1.0, True),
        row("c", 0.0, 0.0, True, searches=3),
    ]
    got = rollout_metrics(rows)
    assert got["reward_variance"] == pytest.approx((0.125 + 0 + 0.5) / 3)
    assert got["outcome_variance"] == pytest.approx(0.5 / 3)
    assert got["zero_variance_groups"] == pytest.approx(1 / 3)
    assert got["phantom_groups"] == pytest.approx(1 / 3)
    assert got["reward_mean"] == pytest.approx(3.5 / 6)
    assert got["outcome_mean"] == pytest.approx(0.5) and got["bonus_mean"] == pytest.approx(1 / 12)
    assert got["searches"] == pytest.approx(8 / 6)
    assert (got["tokens"], got["generated_tokens"], got["observation_tokens"]) == (60, 24, 18)


def test_a_single_rollout_has_no_variance():
    got = rollout_metrics([row("a", 1.0, 1.0, False)])
    assert got["reward_sd"] == got["reward_variance"] == got["phantom_groups"] == 0
    assert rollout_metrics([]) == {"rollouts": 0.0}


def record(**changes) -> TokenRecord:
    values = {
        "logprobs": [-1.0, -2.0, -3.0],
        "entropies": [0.5, 1.0, 1.5],
        "old": [-1.0, -2.0 - math.log(2), -3.0 + math.log(2)],  # ratios 1, 2, 1/2
        "ref": [-1.0, -2.0, -1.0],  # u = 0, 0, 2
        "advantages": [3.0, 1.0, 2.0],
        "weights": [0.5, 0.25, 0.25],
        "sampled": [-1.0, -2.5, -3.0],
    } | changes
    made = TokenRecord(0)
    made.add(**{name: torch.tensor(v) for name, v in values.items() if v is not None})
    return made


def test_token_metrics_by_hand():
    got = token_metrics([record().sums(OBJECTIVE, True)], 1)
    kl = math.exp(2) - 2 - 1
    assert got["entropy"] == pytest.approx(0.25 + 0.25 + 0.375)
    assert got["clip_high"] == pytest.approx(0.25) and got["clip_low"] == 0
    assert got["kl"] == pytest.approx(0.25 * kl, rel=1e-6)
    assert got["kl_grad_norm"] == pytest.approx(0.25 * (math.exp(2) - 1), rel=1e-6)
    assert got["surrogate_grad_norm"] == pytest.approx(math.hypot(0.5 * 3, 0.25 * 0.5 * 2))
    surrogate = 0.5 * 3 + 0.25 * 1.2 + 0.25 * 1.0
    assert got["objective"] == pytest.approx(
        surrogate + 0.5 * got["entropy"] - 0.25 * got["kl"], rel=1e-6
    )
    assert got["logprob_gap"] == pytest.approx(0.5 / 3)
    assert got["nonfinite_logprobs"] == 0


def test_workers_and_updates_join():
    one = record().sums(OBJECTIVE, True)
    alone, joined = token_metrics([one], 1), token_metrics([one, {}, one], 2)
    for name in ("entropy", "kl", "clip_high", "objective", "logprob_gap", "kl_grad_norm"):
        assert joined[name] == pytest.approx(alone[name])
    assert joined["update_tokens"] == 6


def test_infinite_logprobs_are_counted_and_stay_out_of_the_means():
    sums = record(old=[-1.0, -np.inf, -3.0], ref=[-np.inf, -2.0, -3.0]).sums(OBJECTIVE, True)
    got = token_metrics([sums], 1)
    assert got["nonfinite_logprobs"] == 2
    assert all(math.isfinite(value) for value in got.values())


def test_without_a_reference_there_is_no_kl():
    got = token_metrics([record(ref=None).sums(OBJECTIVE, False)], 1)
    assert "kl" not in got and "logprob_gap" not in got


def test_an_update_that_saw_no_token():
    assert token_metrics([TokenRecord(0).sums(OBJECTIVE, True)], 1) == {"update_tokens": 0.0}


def test_shares_join_over_workers_and_need_a_whole():
    workers = [{"tied": (1.0, 4.0), "pairs": (0.0, 0.0)}, {"tied": (2.0, 2.0)}, {}]
    assert share_metrics(workers) == {"tied": 0.5}


def test_groups_that_the_outcome_cannot_rank():
    outcome = np.array([1, 1, 1, 1, 0, 0, 0, 0, 1, 0], dtype=float)
    reward = np.array([1.2, 1.0, 1.0, 1.0, 0.05, -0.1, 0.05, 0.05, 1.0, 0.05])
    credited = np.array([1, 1, 0, 0, 1, 1, 0, 0, 1, 1], dtype=bool)
    groups = [np.array(g) for g in ([0, 1], [2, 3], [4, 5], [6, 7], [8, 9])]
    found = tied_groups(outcome, reward, credited, groups)
    assert found["all_correct_groups"] == found["all_wrong_groups"] == 0.4
    assert found["all_correct_credited"] == found["all_wrong_credited"] == 0.5
    assert found["all_correct_reward_sd"] == pytest.approx(0.2 / 2**0.5 / 2)
    assert found["all_wrong_reward_sd"] == pytest.approx(0.15 / 2**0.5 / 2)


def test_no_such_group_gives_shares_and_no_means():
    found = tied_groups(np.array([1.0, 0.0]), np.ones(2), np.ones(2, bool), [np.arange(2)])
    assert found == {"all_correct_groups": 0.0, "all_wrong_groups": 0.0}
