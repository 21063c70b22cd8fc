"""What a step logs: numbers that reveal trouble, over all workers' rollouts and tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..agent.trajectory import Segment, Trajectory
from ..methods.advantages import group_rows
from ..methods.base import Scores
from .config import ObjectiveConfig
from .objective import clip_shares, log_ratio, low_variance_kl, low_variance_kl_slope, surrogate


class TokenRecord:
    """What one update saw of its selected tokens, before it stepped: float32 [n] tensors."""

    def __init__(self, update: int):
        self.update, self.grad_norm, self.lr = update, 0.0, 0.0
        self._parts: dict[str, list[Tensor]] = {}

    def add(self, **parts: Tensor | None) -> None:
        """Append a chunk's tokens."""
        for name, values in parts.items():
            if values is not None:
                self._parts.setdefault(name, []).append(values)

    def sums(self, objective: ObjectiveConfig, first: bool) -> dict[str, float]:
        """Sums over this worker's tokens; ``weights`` are those of Eq. 12.

        ``first``: the policy is still the one that rolled out, so that log-probs of training
        and rollout can be compared.
        """
        if not self._parts:
            return {}
        p = {name: torch.cat(values).double() for name, values in self._parts.items()}
        weights, ref = p["weights"], p.get("ref")
        ones = torch.ones_like(weights)
        sums = {"weight": weights, "entropy": weights * p["entropies"], "tokens": ones}
        clips = clip_shares(
            p["logprobs"], p["old"], p["advantages"], objective.epsilon, objective.dual_clip
        )
        for name, clipped in clips.items():
            sums[f"clip_{name}"] = weights * clipped
        ratio = log_ratio(p["logprobs"], p["old"]).exp()
        stopped = torch.stack(list(clips.values())).any(0)
        slope = (ratio * p["advantages"]).masked_fill(stopped, 0.0)
        sums["surrogate_slope_squared"] = (weights * slope) ** 2
        value = surrogate(
            p["logprobs"], p["old"], p["advantages"], objective.epsilon, objective.dual_clip
        )
        value = value + objective.entropy_coefficient * p["entropies"]
        if ref is not None:
            kl = low_variance_kl(p["logprobs"], ref, objective.kl_clip)
            slope = low_variance_kl_slope(p["logprobs"], ref, objective.kl_clip)
            value = value - objective.kl_coefficient * kl
            sums["kl"] = weights * kl
            sums["kl_slope_squared"] = (weights * slope) ** 2
        sums["objective"] = weights * value
        logprobs = [p["logprobs"], p["old"]] + ([] if ref is None else [ref])
        sums["nonfinite"] = (~torch.isfinite(torch.stack(logprobs)).all(0)).double()
        if first:
            gap = log_ratio(p["logprobs"], p["sampled"]).abs()
            sums |= {"gap": gap, "gap_tokens": ones}
        return {name: float(values.sum()) for name, values in sums.items()}


def token_metrics(workers: Sequence[dict[str, float]], updates: int) -> dict[str, float]:
    """Metrics of a step from every worker's sums over ``updates`` updates.

    Means are those of Eq. 12.  The two gradient norms are with respect to the sampled tokens'
    log-probs, of the surrogate and of KL_LV without its coefficient: where the KL's is large
    while its value is small, the estimator pushes more than it shows.
    """
    sums: dict[str, float] = {}
    for part in workers:
        for name, value in part.items():
            sums[name] = sums.get(name, 0.0) + value
    if not sums.get("weight"):
        return {"update_tokens": 0.0}
    weight = sums["weight"]
    metrics = {
        "update_tokens": sums["tokens"],
        "objective": sums["objective"] / updates,
        "entropy": sums["entropy"] / weight,
        "clip_low": sums["clip_low"] / weight,
        "clip_high": sums["clip_high"] / weight,
        "clip_dual": sums["clip_dual"] / weight,
        "surrogate_grad_norm": (sums["surrogate_slope_squared"] / updates) ** 0.5,
        "nonfinite_logprobs": sums["nonfinite"],
    }
    if "kl" in sums:
        metrics["kl"] = sums["kl"] / weight
        metrics["kl_grad_norm"] = (sums["kl_slope_squared"] / updates) ** 0.5
    if sums.get("gap_tokens"):
        metrics["logprob_gap"] = sums["gap"] / sums["gap_tokens"]
    return metrics


def rollout_rows(
    trajectories: Sequence[Trajectory], scores: Scores, advantages: Sequence[np.ndarray]
) -> list[dict]:
    """One plain row per rollout, to be gathered from the workers."""
    rows = []
    for i, trajectory in enumerate(trajectories):
        generated = trajectory.generated
        rows.append(
            {
                "group": trajectory.group,
                "reward": float(scores.reward[i]),
                "parts": {name: float(values[i]) for name, values in scores.parts.items()},
                "credited": bool(advantages[i].any()),
                "searches": len(trajectory.searches),
                "direct": not trajectory.searches and trajectory.answer is not None,
                "valid": trajectory.valid,
                "truncated": trajectory.truncated,
                "invalid_actions": trajectory.invalid_actions,
                "tokens": len(trajectory.tokens),
                "generated": int(generated.sum()),
                "observed": int((trajectory.segments == Segment.OBSERVATION).sum()),
            }
        )
    return rows


def rollout_metrics(rows: Sequence[dict]) -> dict[str, float]:
    """Rewards, groups and behaviour of a step's rollouts.

    ``*_variance`` are sample variances inside groups, averaged over groups: shaping shows as
    reward variance without outcome variance.  ``zero_variance_groups`` have equal rewards,
    ``phantom_groups`` equal outcomes but non-zero advantages; both are shares of groups.
    Groups that are all correct and all wrong are told apart (``tied_groups``).
    """
    if not rows:
        return {"rollouts": 0.0}

    def column(name: str) -> np.ndarray:
        return np.asarray([row[name] for row in rows], dtype=np.float64)

    reward, credited = column("reward"), column("credited")
    parts = {
        name: np.asarray([row["parts"][name] for row in rows], dtype=np.float64)
        for name in rows[0]["parts"]
    }
    outcome = parts["outcome"]
    groups = group_rows([row["group"] for row in rows])
    equal_outcome = [np.ptp(outcome[g]) == 0 for g in groups]
    metrics = {
        "rollouts": float(len(rows)),
        "groups": float(len(groups)),
        "reward_mean": reward.mean(),
        "reward_sd": reward.std(ddof=1) if len(rows) > 1 else 0.0,
        "reward_variance": np.mean([_variance(reward[g]) for g in groups]),
        "outcome_variance": np.mean([_variance(outcome[g]) for g in groups]),
        "zero_variance_groups": np.mean([np.ptp(reward[g]) == 0 for g in groups]),
        "phantom_groups": np.mean([e and credited[g].any() for e, g in zip(equal_outcome, groups)]),
        "searches": column("searches").mean(),
        "direct": column("direct").mean(),
        "valid": column("valid").mean(),
        "truncated": column("truncated").mean(),
        "invalid_actions": column("invalid_actions").mean(),
        "tokens": column("tokens").sum(),
        "generated_tokens": column("generated").sum(),
        "observation_tokens": column("observed").sum(),
    }
    metrics |= tied_groups(outcome, reward, credited, groups)
    metrics |= {f"{name}_mean": values.mean() for name, values in parts.items()}
    return {name: float(value) for name, value in metrics.items()}


def tied_groups(
    outcome: np.ndarray, reward: np.ndarray, credited: np.ndarray, groups: Sequence[np.ndarray]
) -> dict[str, float]:
    """Groups that the outcome cannot rank, because all [N] rollouts are right, or all wrong.

    ``all_correct_groups`` and ``all_wrong_groups`` are shares of groups; ``*_credited`` the share
    of those in which some advantage is not 0, ``*_reward_sd`` their mean sample deviation of
    the reward (S1 Figure 4 shows both for all-correct groups).  The latter two are left out
    where there is no such group.
    """
    found: dict[str, float] = {}
    for name, value in (("all_correct", 1.0), ("all_wrong", 0.0)):
        tied = [g for g in groups if (outcome[g] == value).all()]
        found[f"{name}_groups"] = len(tied) / len(groups)
        if tied:
            found[f"{name}_credited"] = float(np.mean([credited[g].any() for g in tied]))
            found[f"{name}_reward_sd"] = float(np.mean([_variance(reward[g]) ** 0.5 for g in tied]))
    return found


def share_metrics(workers: Sequence[dict[str, tuple[float, float]]]) -> dict[str, float]:
    """A method's own shares from every worker's parts and wholes.

    One whose whole is 0 in this step (no pair of unequal outcome, say) is left out.
    """
    sums: dict[str, list[float]] = {}
    for shares in workers:
        for name, (part, whole) in shares.items():
            total = sums.setdefault(name, [0.0, 0.0])
            total[0] += part
            total[1] += whole
    return {name: part / whole for name, (part, whole) in sums.items() if whole}


def _variance(values: np.ndarray) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0
