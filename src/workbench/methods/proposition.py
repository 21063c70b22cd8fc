"""Proposition 1 of S1 (§3.4, §7.1), step by step, and what follows from it for whole groups.

For one group let the gate γ in [0, 1] stand for n in the correct-searched branch alone.  The
rewards are r(γ) = a + λ_g·γ·x with a = r(0) and x = d on correct searched rollouts, else 0
(Eq. 14).  With u, v the centred a, x and z(γ) = u + λ_g·γ·v, the normalised advantage is

    A(γ) = z(γ) / (‖z(γ)‖ / √(G - 1) + δ)                                        (Eq. 11)

so normalisation keeps the direction of z and, with δ = 0, makes its norm √(G - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import WorkbenchError
from .advantages import group_advantages, group_rows
from .shaping import Shaping, eq6

_NOISE = 1e-9  # relative: a vector this much shorter is rounding


@dataclass(frozen=True, slots=True)
class Decomposition:
    """One group of G rollouts: ``a`` = r(0), ``x``, and their centred ``u``, ``v``, float64 [G]."""

    a: np.ndarray
    x: np.ndarray
    lambda_g: float

    @property
    def u(self) -> np.ndarray:
        return centred(self.a)

    @property
    def v(self) -> np.ndarray:
        return centred(self.x)

    def rewards(self, gamma: float) -> np.ndarray:
        """r(γ), what Eq. 6 gives with γ in place of n."""
        return self.a + self.lambda_g * gamma * self.x

    def direction(self, gamma: float) -> np.ndarray:
        """z(γ) float64 [G]."""
        return self.u + self.lambda_g * gamma * self.v

    def advantages(self, gamma: float, delta: float = 1e-6) -> np.ndarray:
        """A(γ) by Eq. 11; with z = 0 it is 0 for δ > 0, and undefined (NaN) for δ = 0."""
        return normalised(self.direction(gamma), delta)

    def degenerate(self, gamma: float) -> bool:
        """Whether z(γ) is 0: no credit at all."""
        return _is_zero(self.direction(gamma), self._size)

    @property
    def relation(self) -> Literal["independent", "collinear", "homogeneous", "ungated", "empty"]:
        """How u and v lie, which decides what the gate can do.

        "independent" : any two gates give different credit directions.
        "collinear" : one direction, turned round at most once, where z passes through 0.
        "homogeneous" : u = 0, as when all are correct, searched and cost the same; every γ > 0
            gives the same direction.
        "ungated" : v = 0 (equal reliance everywhere); the gate does nothing.
        "empty" : both are 0.
        """
        no_u, no_v = _is_zero(self.u, self._size), _is_zero(self.v, self._size)
        if no_u or no_v:
            return "empty" if no_u and no_v else "homogeneous" if no_u else "ungated"
        along = self.u - self.v * (self.u @ self.v) / (self.v @ self.v)
        return "collinear" if _is_zero(along, float(np.linalg.norm(self.u))) else "independent"

    @property
    def reversal(self) -> float | None:
        """The γ in (0, 1) at which collinear credit vanishes and then turns round, if any."""
        if self.relation != "collinear" or not self.lambda_g:
            return None
        gamma = -float(self.u @ self.v) / float(self.v @ self.v) / self.lambda_g
        return gamma if 0 < gamma < 1 else None

    @property
    def _size(self) -> float:
        return float(np.abs(self.a).max() + np.abs(self.x).max())


def decompose(
    valid: np.ndarray,
    correct: np.ndarray,
    searches: np.ndarray,
    d: np.ndarray,
    b: float,
    shaping: Shaping,
) -> Decomposition:
    """Split the rewards of one group by Eq. 14; ``b`` is the question's.

    Raises
    ------
    WorkbenchError : fewer than two rollouts, or what ``eq6`` refuses.
    """
    count = len(np.asarray(valid))
    if count < 2:
        raise WorkbenchError(f"a group of {count} has no relative credit", fix="take G >= 2")
    parts = eq6(valid, correct, searches, d, np.full(count, b), np.zeros(count), shaping)
    on = np.asarray(correct, dtype=bool) & (np.asarray(searches) > 0)
    x = np.where(on, np.asarray(d, dtype=np.float64), 0.0)
    return Decomposition(np.sum(list(parts.values()), axis=0), x, shaping.lambda_g)


def centred(values: np.ndarray) -> np.ndarray:
    """H·values with H = I - 11ᵀ/G; exactly 0 when all are equal."""
    values = np.asarray(values, dtype=np.float64)
    return np.zeros(len(values)) if np.ptp(values) == 0 else values - values.mean()


def normalised(z: np.ndarray, delta: float) -> np.ndarray:
    """z / (‖z‖ / √(G - 1) + δ), NaN for z = 0 and δ = 0 (Eq. 11)."""
    z = np.asarray(z, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return z / (np.linalg.norm(z) / np.sqrt(len(z) - 1) + delta)


def homogeneous_advantages(d: np.ndarray, shaping: Shaping, gamma: float, delta: float):
    """Eq. 16, float64 [G]: all valid, correct, searched, at equal cost.

    λ_g·γ·(d - mean) / (λ_g·γ·sd + δ), NaN where that is 0/0.
    """
    d, scale = np.asarray(d, dtype=np.float64), shaping.lambda_g * gamma
    with np.errstate(invalid="ignore"):
        return scale * centred(d) / (scale * d.std(ddof=1) + delta)


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Cosine of two credit vectors; NaN when one is 0, where it is undefined."""
    with np.errstate(invalid="ignore"):
        return float(first @ second / np.float64(np.linalg.norm(first) * np.linalg.norm(second)))


def sign_flips(first: np.ndarray, second: np.ndarray) -> int:
    """Rollouts whose credit changes sign: z_j(γ1)·z_j(γ2) < 0."""
    return int((np.sign(first) * np.sign(second) < 0).sum())


@dataclass(frozen=True, slots=True)
class TieBreaking:
    """Credit made among rollouts of equal outcome.

    ``groups`` of the kind; ``credited`` of them have non-zero advantages.  ``sd`` is the mean
    raw within-group reward sd (sample) over all of them, ``sd_credited`` over the credited
    ones alone.  Share and means are NaN where there is no such group.
    """

    groups: int
    credited: int
    sd: float
    sd_credited: float

    @property
    def share(self) -> float:
        """Share of the groups whose tie is broken."""
        return self.credited / self.groups if self.groups else float("nan")


def tie_breaking(
    correct: np.ndarray, rewards: np.ndarray, groups: Sequence[str], delta: float = 1e-6
) -> TieBreaking:
    """All-correct groups in which the reward still tells rollouts apart (Fig. 4).

    Under EM alone share and sd are 0.  S1 does not say over which groups its mean sd goes.  It
    must be the credited ones: five rewards in [1 - η, 1 + λ_g] have an sd of .34 at most, which
    over all NQ groups, 48.7 % of them credited, makes .165, and the least that S1 prints is .189.
    """
    return _ties(np.asarray(correct, dtype=bool), rewards, groups, delta)


def phantom_credit(
    correct: np.ndarray, rewards: np.ndarray, groups: Sequence[str], delta: float = 1e-6
) -> TieBreaking:
    """The mirror image: all-wrong groups in which shaping makes non-zero advantages.

    Normalisation blows any difference, however small, up to full-size credit among rollouts
    none of which is right.
    """
    return _ties(~np.asarray(correct, dtype=bool), rewards, groups, delta)


def _ties(
    tied: np.ndarray, rewards: np.ndarray, groups: Sequence[str], delta: float
) -> TieBreaking:
    rewards = np.asarray(rewards, dtype=np.float64)
    advantages = group_advantages(rewards, groups, delta)
    kind = [rows for rows in group_rows(groups) if len(rows) > 1 and tied[rows].all()]
    credited = np.array([advantages[rows].any() for rows in kind], dtype=bool)
    sds = np.array([rewards[rows].std(ddof=1) for rows in kind]) * credited
    return TieBreaking(
        len(kind),
        int(credited.sum()),
        float(sds.mean()) if len(kind) else float("nan"),
        float(sds[credited].mean()) if credited.any() else float("nan"),
    )


def _is_zero(vector: np.ndarray, scale: float) -> bool:
    return bool(np.linalg.norm(vector) <= _NOISE * max(scale, np.finfo(float).tiny))
