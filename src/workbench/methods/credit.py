"""Arithmetic of intermediate credit, shared by the methods that give it: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import WorkbenchError


def discounted_returns(rewards: Sequence[float], gamma: float) -> np.ndarray:
    """Step returns float64 [T]: G_t = r_t + γ·G_{t+1} (GiGPO, AgentPRM)."""
    returns = np.zeros(len(rewards))
    following = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        following = returns[t] = rewards[t] + gamma * following
    return returns


def new_maxima(potentials: Sequence[float], digits: int | None = None) -> np.ndarray:
    """Events float64 [T] of a potential: e_t = max(0, φ(t) - max_{u<t} φ(u)), φ(0) = 0 (S3 Eq. 3).

    ``digits`` rounds the potentials first.  Events are freed of float noise (12 decimals), so
    that steps of equal size are equal numbers wherever they start; they sum to the largest φ.
    """
    reached, events = 0.0, []
    for potential in potentials:
        potential = potential if digits is None else round(potential, digits)
        events.append(round(max(0.0, potential - reached), 12))
        reached = max(reached, potential)
    return np.array(events, dtype=np.float64)


def gold_probabilities(logprobs: Sequence[Sequence[float]]) -> np.ndarray:
    """Probability float64 [turns] of the gold answer forced after each turn (IGPO).

    ``logprobs[t]`` are the log-probs of the answer's tokens after turn t; p_t is the exponential
    of their mean, so that long answers are not worth less.  A token of log-prob -inf gives 0.

    Raises
    ------
    WorkbenchError : a turn has no answer token, or a log-prob is NaN or above 0.
    """
    for turn, values in enumerate(logprobs):
        if not len(values) or not all(value <= 0 for value in values):
            raise WorkbenchError(f"no log-probs of an answer: {values!r}", where=f"turn {turn}")
    return np.array([np.exp(np.mean(values)) for values in logprobs])


def information_gains(probabilities: Sequence[float]) -> np.ndarray:
    """Gain float64 [turns - 1] of each turn after the first: p_t - p_{t-1} (IGPO)."""
    return np.diff(np.asarray(probabilities, dtype=np.float64))


def search_penalty(searches: int, fewest_needed: int | None, per_search: float) -> float:
    """What a correct rollout pays for searching (SAAS).

    ``fewest_needed`` is the fewest searches among the group's correct rollouts, or None when
    the question is answered without searching: then every search costs ``per_search``,
    otherwise every search beyond the fewest.
    """
    return per_search * max(0, searches - (fewest_needed or 0))
