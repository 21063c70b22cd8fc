"""The log-prob gap between copied and other tokens (S2 §3, Tables 6 and 9, App. G).

    Δ = Σ_copy ω·log p / Σ_copy ω  −  Σ_other ω·log p / Σ_other ω

over all kept tokens of all rollouts pooled, with a token's weight ω.  Rollouts are resampled
with all their tokens, so copied and other tokens stay paired; a rollout enters only through
four sums, and the draws are one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from ..inference.bootstrap import BootstrapConfig
from .frames import KEYS, estimate, interval, need, parts, ratio

LONG = 8  # characters of a long token (S2 App. G)
BASELINE = "all alnum"
COLUMNS = [
    "subset", "value", "low", "high", "p", "n", "copied", "others", "copied_logprob",
    "other_logprob", "unknown",
]  # fmt: skip


def idf(tokens: pd.DataFrame) -> np.ndarray:
    """log(N / df) of each row's surface, float64 [n]: N rollouts as documents (S2 App. G).

    df counts the rollouts of ``tokens`` that say the surface in a kept token.
    """
    rollout = _rollouts(tokens)
    surface = pd.factorize(tokens["surface"])[0]
    pairs = pd.DataFrame({"rollout": rollout, "surface": surface}).drop_duplicates()
    df = np.bincount(pairs["surface"])
    return np.log(len(np.unique(rollout)) / df)[surface]


def _content(tokens: pd.DataFrame) -> np.ndarray:
    return (~tokens["stopword"]).to_numpy(dtype=np.float64)


# subset -> weight ω of each token, float64 [n]; 0 leaves it out
SUBSETS: dict[str, Callable[[pd.DataFrame], np.ndarray]] = {
    BASELINE: lambda t: np.ones(len(t)),
    "stopword-removed": _content,
    "IDF-weighted": lambda t: _content(t) * idf(t),
    "digits / cap-leading": lambda t: (t["digit"] | t["capitalised"]).to_numpy(np.float64),
    f"length >= {LONG}": lambda t: (t["length"] >= LONG).to_numpy(np.float64),
}


def gap_table(
    tokens: pd.DataFrame,
    by: Sequence[str] = (),
    subsets: Sequence[str] = tuple(SUBSETS),
    test: str = "copy",
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """The gap under each token subset: Table 9; ``by=["cell"]`` Table 6, ``["verdict"]`` App. G.

    Parameters
    ----------
    tokens : of ``copying.token_table``.
    by : columns whose groups are measured apart, document frequencies included.
    test : "copy" (substring) or "whole" (whole words).

    Returns
    -------
    One row per group and subset: value (gap in nats), low, high, p (two-sided, of no gap), n
    (rollouts with a token of the subset), copied and others (tokens), copied_logprob and
    other_logprob (weighted means), unknown (tokens without a log-prob, left out of all this).
    Without copied or without other tokens the gap is NaN.  A token that every rollout says has
    no IDF and weighs nothing, but is counted.
    """
    need(tokens, [*KEYS, "cell", "surface", "logprob", "stopword", "digit", "capitalised", test])
    rows = []
    for key, part in parts(tokens, by):
        known = part["logprob"].notna().to_numpy()
        for subset in subsets:
            weights = SUBSETS[subset](part)[known]
            counted = SUBSETS["stopword-removed" if subset == "IDF-weighted" else subset](part) > 0
            row = _row(part[known], weights, counted[known], test, config)
            unknown = int((counted & ~known).sum())
            rows.append({**key, "subset": subset, **row, "unknown": unknown})
    return pd.DataFrame(rows, columns=[*by, *COLUMNS])


def _row(part, weights: np.ndarray, counted: np.ndarray, test: str, config) -> dict:
    part, weights = part[counted], weights[counted]
    copied = part[test].to_numpy(dtype=bool)
    logprobs = part["logprob"].to_numpy(dtype=np.float64)
    rollout = _rollouts(part)
    n = int(rollout.max(initial=-1)) + 1
    sums = [
        np.bincount(rollout[side], values[side], n)
        for side in (copied, ~copied)
        for values in (weights * logprobs, weights)
    ]

    def gap(counts: np.ndarray) -> np.ndarray:
        above, mass, other_above, other_mass = (counts @ s for s in sums)
        return ratio(above, mass) - ratio(other_above, other_mass)

    totals = [s.sum() for s in sums]
    return {
        **estimate(interval(gap, n, config)),
        "copied": int(copied.sum()),
        "others": int((~copied).sum()),
        "copied_logprob": float(ratio(totals[0], totals[1])),
        "other_logprob": float(ratio(totals[2], totals[3])),
    }


def _rollouts(tokens: pd.DataFrame) -> np.ndarray:
    """A number per rollout, int64 [n]: ids may repeat from cell to cell."""
    return tokens.groupby(["cell", *KEYS], observed=True, sort=True).ngroup().to_numpy()
