"""Proposition 1 of S1 (§3.4) made visible: a group's advantages as the gate opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..methods.proposition import Decomposition, cosine, decompose, sign_flips
from ..methods.shaping import Shaping
from . import drawing as draw
from .style import WIDTH, colours, markers, style
from .tables import Column, Table

GATES = np.linspace(0.0, 1.0, 101)
_CLOSE = 1e-9


@dataclass(frozen=True)
class Group:
    """A made-up group of G rollouts of one question: what Eq. 6 reads, and what it is to show."""

    title: str
    correct: Sequence[bool]
    searches: Sequence[int]
    d: Sequence[float]
    b: float

    def parts(self, shaping: Shaping) -> Decomposition:
        """u and v of the group (Eq. 14)."""
        valid = np.ones(len(self.d), dtype=bool)
        correct, searches = np.array(self.correct), np.array(self.searches)
        return decompose(valid, correct, searches, np.array(self.d), self.b, shaping)

    def names(self) -> list[str]:
        """What each rollout did, in a few letters."""
        return [
            f"{'right' if c else 'wrong'}, N = {n}" + (f", d = {d:g}" if c and n else "")
            for c, n, d in zip(self.correct, self.searches, self.d)
        ]


GROUPS = {
    "independent": Group(
        "u and v independent: every gate has its own direction",
        (True, True, True, True, False), (1, 2, 1, 0, 1), (0.9, 0.7, 0.2, 0.0, 0.8), 0.4,
    ),
    "homogeneous": Group(
        "all right, all searched once: u = 0, the gate cancels",
        (True,) * 5, (1,) * 5, (0.9, 0.7, 0.5, 0.3, 0.1), 0.4,
    ),
    "collinear": Group(
        "direct or searched: one direction, which turns round",
        (True,) * 5, (0, 0, 1, 1, 1), (0.0, 0.0, 0.8, 0.8, 0.8), 0.4,
    ),
    "ungated": Group(
        "equal reliance: v = 0, the gate does nothing",
        (True,) * 5, (1, 1, 2, 2, 3), (0.6,) * 5, 0.4,
    ),
}  # fmt: skip
EMPTY = Group("all equal: no credit at any gate", (True,) * 5, (1,) * 5, (0.6,) * 5, 0.4)


def proposition_figure(shaping: Shaping, delta: float = 1e-6) -> Figure:
    """Normalised advantage of each rollout against γ, a panel for each of ``GROUPS``.

    ``delta`` is GRPO's; dotted where the gate is closed or the credit turns round.
    """
    with style():
        figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 6.0), sharex=True, sharey=True)
        for axis, group in zip(axes.flat, GROUPS.values()):
            parts, names = group.parts(shaping), group.names()
            curves = np.array([parts.advantages(gamma, delta) for gamma in GATES])
            numbered = [f"{i + 1}" for i in range(len(names))]
            for place, name in enumerate(names):
                look = {
                    "color": colours(numbered)[numbered[place]],
                    "marker": markers(numbered)[numbered[place]],
                }
                axis.plot(
                    GATES, curves[:, place], label=name, linewidth=1.4, markersize=4,
                    markevery=(2 + 4 * place, 24), **look,
                )  # fmt: skip
            if (turn := parts.reversal) is not None:
                axis.axvline(turn, color="#777777", linestyle=":", linewidth=1)
            draw.zero_line(axis)
            axis.set_title(group.title, fontsize=8.0)
            axis.set_ylim(-2.15, 3.9)
            axis.legend(fontsize=6.8, loc="upper center", ncols=2, columnspacing=1.0)
        for axis in axes[1]:
            axis.set_xlabel("gate γ (necessity of retrieval)")
        for axis in axes[:, 0]:
            axis.set_ylabel("normalised advantage")
        draw.note(
            figure,
            f"groups of five; λ_g = {shaping.lambda_g:g}, η = {shaping.eta:g}, α_cb = "
            f"{shaping.alpha_cb:g}, b = 0.4 in a, δ = {delta:g}; dotted: credit turns round",
        )
    return draw.finish(figure)


def proposition_table(shaping: Shaping) -> Table:
    """What Proposition 1 says of each group, and what its vectors do over a grid of gates."""
    rows = []
    for relation, group in {**GROUPS, "empty": EMPTY}.items():
        parts = group.parts(shaping)
        open_gates = [g for g in GATES[1:] if not parts.degenerate(g)]
        norms = [np.linalg.norm(parts.advantages(g, 0.0)) for g in open_gates]
        cosines = [cosine(parts.direction(g), parts.direction(1.0)) for g in open_gates]
        said, measured, holds = _CHECKS[relation](parts, open_gates, cosines)
        fixed = np.ptp([*norms, np.sqrt(len(group.d) - 1)]) < _CLOSE
        norm = f"{min(norms):.6f} to {max(norms):.6f}" if norms else "undefined (0/0)"
        rows.append(
            {
                "group": group.title,
                "relation": f"{parts.relation}, as expected"
                if parts.relation == relation
                else f"{parts.relation}, expected {relation}",
                "said": said,
                "measured": measured,
                "norm": norm,
                "holds": "yes" if holds and fixed and parts.relation == relation else "no",
            }
        )
    caption = (
        "Proposition 1 on groups of five rollouts, gates γ from 0.01 to 1 (δ = 0): cosine of "
        "the credit at γ with the credit at γ = 1, and the norm of the advantages, which is to be "
        "√(G - 1) = 2 wherever there is credit."
    )
    columns = [
        Column("group", "group"), Column("relation", "u and v"), Column("said", "proposition"),
        Column("measured", "measured"), Column("norm", "norm"), Column("holds", "holds"),
    ]  # fmt: skip
    return Table("s1_proposition_1", caption, columns, rows)


def _independent(parts: Decomposition, gates, cosines) -> tuple[str, str, bool]:
    low = min(cosines)
    closed = cosine(parts.direction(0.0), parts.direction(1.0))
    told = f"least cosine {low:.3f}; {closed:.3f} between a closed and an open gate"
    return "distinct gates give distinct directions", told, low < 1 - _CLOSE


def _homogeneous(parts: Decomposition, gates, cosines) -> tuple[str, str, bool]:
    flips = sum(sign_flips(parts.direction(g), parts.direction(1.0)) for g in gates)
    told = f"least cosine {min(cosines):.6f}, {flips} signs changed"
    said = "every γ > 0 keeps ranking, signs and direction"
    return said, told, flips == 0 and min(cosines) > 1 - _CLOSE


def _collinear(parts: Decomposition, gates, cosines) -> tuple[str, str, bool]:
    turn = parts.reversal
    signs = np.sign(cosines)
    one_line = bool((np.abs(np.abs(cosines) - 1) < _CLOSE).all())
    turned = all((s > 0) == (turn is None or g > turn) for s, g in zip(signs, gates))
    zero = turn is None or parts.degenerate(turn)
    told = f"cosines ±1: {one_line}; turns at γ = {'none' if turn is None else f'{turn:.3f}'}"
    told += "" if turn is None else f", where z is 0: {zero}"
    return "one direction, reversed at most once, through zero", told, one_line and turned and zero


def _ungated(parts: Decomposition, gates, cosines) -> tuple[str, str, bool]:
    return "the gate changes nothing", f"least cosine {min(cosines):.6f}", min(cosines) > 1 - _CLOSE


def _empty(parts: Decomposition, gates, cosines) -> tuple[str, str, bool]:
    still = all(not parts.advantages(g, 1e-6).any() for g in GATES)
    return "z = 0 is excluded; with δ > 0 no credit", f"advantages all 0: {still}", still


_CHECKS = {
    "empty": _empty,
    "independent": _independent,
    "homogeneous": _homogeneous,
    "collinear": _collinear,
    "ungated": _ungated,
}
