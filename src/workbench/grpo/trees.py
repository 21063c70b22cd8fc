"""Rollouts of a group as a tree: a prefix that several share goes through the model once.

Rollouts of one question start with the same prompt and often with the same first query and
passages.  Merged where they agree they become a tree of tokens, laid out in one row with
parents before children.  A token sees its ancestors and itself and has its depth as position,
so its hidden state is what it would be in a row of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import WorkbenchError


@dataclass(slots=True)
class Rollout:
    """What the update needs of a trajectory.

    ``tokens`` int [T]; ``positions`` int [n], ascending, the selected tokens (never token 0);
    rollouts of equal ``group`` may share prefixes.
    """

    tokens: np.ndarray
    positions: np.ndarray
    group: Hashable = None

    def __post_init__(self) -> None:
        if len(self.positions) and self.positions[0] == 0:
            raise WorkbenchError("the first token has no context to be predicted from")

    @property
    def inputs(self) -> np.ndarray:
        """Tokens that must go through the model: all before the last selected one."""
        return self.tokens[: self.positions[-1]]


@dataclass(slots=True)
class Tree:
    """Merged rollouts; nodes are numbered in layout order.

    tokens int64 [L]; depth int64 [L], counted from 0; ``paths[row]`` int64 [T] the nodes of that
    rollout's tokens; ``branches`` (start, stop, stem): nodes ``start:stop`` are a chain that
    continues the nodes ``stem``.  No branches: a single rollout.
    """

    tokens: np.ndarray
    depth: np.ndarray
    paths: dict[int, np.ndarray]
    branches: list[tuple[int, int, np.ndarray]]

    def visible(self) -> np.ndarray:
        """bool [L, L]; True where the row's token sees the column's: ancestors and itself."""
        seen = np.tri(len(self.tokens), dtype=bool)
        for start, stop, stem in self.branches:
            seen[start:stop, :start] = False
            seen[start:stop, stem] = True
        return seen


def grow(rollouts: Sequence[Rollout], rows: Sequence[int]) -> Tree:
    """The tree of the rollouts ``rows``."""
    # In lexicographic order a rollout shares its longest prefix with the one before it.
    order = sorted(rows, key=lambda row: (rollouts[row].inputs.tolist(), row))
    tokens, depth = [], []
    paths: dict[int, np.ndarray] = {}
    branches: list[tuple[int, int, np.ndarray]] = []
    before, path, count = np.zeros(0, np.int64), np.zeros(0, np.int64), 0
    for row in order:
        inputs = rollouts[row].inputs
        common = min(len(before), len(inputs))
        differing = np.flatnonzero(before[:common] != inputs[:common])
        common = int(differing[0]) if len(differing) else common
        stem, new = path[:common], np.arange(count, count + len(inputs) - common)
        if count and len(new):
            branches.append((count, count + len(new), stem))
        tokens.append(inputs[common:])
        depth.append(np.arange(common, len(inputs)))
        before, path = inputs, np.concatenate([stem, new])
        paths[row] = path
        count += len(new)
    return Tree(np.concatenate(tokens), np.concatenate(depth), paths, branches)
