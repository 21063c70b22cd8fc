"""What a score's spread says: between rollouts of a question or between questions (S2 §3).

The within-question share is, over the scored rollouts x_qi of question q,

    Σ_q Σ_i (x_qi − x̄_q)² / Σ_q Σ_i (x_qi − x̄)²

the law of total variance with plain sums of squares, so a question weighs as many rollouts as
it has.  Independent noise gives (N − 1)/N for N rollouts a question, not 1.  A question with
one scored rollout cannot show any spread: it is left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import BootstrapConfig
from ..inference.statistic import Statistic
from .frames import estimate, interval, need, parts, ratio, scored

_ESTIMATE = ["value", "low", "high", "p", "n"]


def variance_shares(
    frame: pd.DataFrame,
    scores: Sequence[str],
    by: Sequence[str] = (),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Within-question share of each score's variance, questions resampled.

    Verdicts are not needed: unjudged rollouts count.

    Returns
    -------
    One row per group and score: value in [0, 1], low, high, p (NaN), n (questions of at least
    two scored rollouts), rollouts (of those), single (questions of one), unscored.  NaN without
    such questions, or for a score that is the same everywhere.
    """
    rows = []
    for key, part in parts(frame, by):
        for score in scores:
            sums, counts = _squares(part, score)
            found = estimate(interval(_share(sums), len(sums), config)) | {"p": np.nan}
            rows.append({**key, "score": score, **found, **counts})
    columns = ["score", *_ESTIMATE, "rollouts", "single", "unscored"]
    return pd.DataFrame(rows, columns=[*by, *columns])


def variance_by_copying(
    frame: pd.DataFrame,
    score: str,
    shares: pd.DataFrame,
    bins: int | Sequence[float] = 4,
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """The share within bins of the questions' mean copy share (S2 §3: 0.39 falling to 0.20).

    Parameters
    ----------
    shares : of ``copying.copy_shares``; the mean is over a question's rollouts with a share.
    bins : edges, each bin with its upper one and the first with both, or a number of bins of
        equally many questions.

    Returns
    -------
    One row per bin: bin ("1", ...), least and most (edges), copy_share (mean of its questions),
    value, low, high, p (NaN), n (questions); variance is total within the bin.  A last row
    "last - first" holds the change over the same resamples, its p and all questions as n,
    unless there is one bin only.
    Questions without a copy share or with a single scored rollout are left out.

    Raises
    ------
    WorkbenchError : no question is left, or edges that do not ascend.
    """
    need(shares, ["question_id", "share"])
    sums, _ = _squares(frame, score)
    copied = shares.groupby("question_id", observed=True)["share"].mean().reindex(sums.index)
    sums, copied = sums[copied.notna()], copied.dropna().to_numpy(dtype=np.float64)
    if not len(sums):
        raise WorkbenchError("no question has both a copy share and two scores", where=score)
    edges = _edges(copied, bins)
    place = np.searchsorted(edges[1:-1], copied)
    place[(copied < edges[0]) | (copied > edges[-1])] = -1
    inside = [place == k for k in range(len(edges) - 1)]
    shares_of = [_share(sums[i]) for i in inside]
    rows = []
    for k, members in enumerate(inside):
        found = estimate(interval(shares_of[k], int(members.sum()), config)) | {"p": np.nan}
        mean = float(copied[members].mean()) if members.any() else np.nan
        limits = {"least": edges[k], "most": edges[k + 1], "copy_share": mean}
        rows.append({"bin": str(k + 1), **limits, **found})

    def change(counts: np.ndarray) -> np.ndarray:
        return shares_of[-1](counts[:, inside[-1]]) - shares_of[0](counts[:, inside[0]])

    if len(inside) > 1:
        found = estimate(interval(change, len(sums), config))
        rows.append({"bin": "last - first", "least": edges[0], "most": edges[-1], **found})
    return pd.DataFrame(rows, columns=["bin", "least", "most", "copy_share", *_ESTIMATE])


def _edges(copied: np.ndarray, bins: int | Sequence[float]) -> np.ndarray:
    """Edges of the bins, ascending; equal quantiles (many shares of 1.0) make fewer bins."""
    if isinstance(bins, int):
        found = np.unique(np.quantile(copied, np.linspace(0.0, 1.0, bins + 1)))
        return found if len(found) > 1 else np.repeat(found, 2)
    edges = np.asarray(bins, dtype=np.float64)
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise WorkbenchError(
            f"{edges.tolist()} are no edges of bins", fix="give two or more, ascending"
        )
    return edges


def _squares(frame: pd.DataFrame, score: str) -> tuple[pd.DataFrame, dict[str, int]]:
    """Per question (index) rollouts n, Σx, and Σ(x − x̄_q)²; x is centred on the grand mean."""
    kept = scored(frame, score, judged=False)
    n = kept.sums(np.ones(len(kept.values)))
    values = kept.values - (kept.values.mean() if len(kept.values) else 0.0)
    if len(values) and np.ptp(values) == 0:
        values = np.zeros(len(values))  # what rounding left of a constant is no spread
    total = kept.sums(values)
    inside = kept.sums((values - (total / n)[kept.owner]) ** 2)
    table = pd.DataFrame({"n": n, "total": total, "inside": inside}, index=kept.names)
    several = table[n >= 2]
    counts = {
        "rollouts": int(several["n"].sum()),
        "single": int((n == 1).sum()),
        "unscored": kept.unscored,
    }
    return several, counts


def _share(sums: pd.DataFrame) -> Statistic:
    """Counts [draws, questions] -> within-question share [draws]."""
    n, total, inside = (sums[c].to_numpy() for c in ("n", "total", "inside"))
    between = total**2 / n
    least = 1e-12 * (inside.sum() + between.sum())  # below it a draw has no spread but rounding

    def statistic(counts: np.ndarray) -> np.ndarray:
        within = counts @ inside
        outside = counts @ between - ratio((counts @ total) ** 2, counts @ n)
        every = within + np.maximum(outside, 0.0)
        return ratio(within, np.where(every > least, every, 0.0))

    return statistic
