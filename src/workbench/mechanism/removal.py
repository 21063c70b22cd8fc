"""Teacher forcing with the documents and without (S2 App. I.2): what removal costs a token.

The same generated ids are scored behind two contexts that differ in their documents alone: in
the second each document is a placeholder.  Δ = log p without − log p with, so a token that the
documents prop up has a negative Δ.

``mechanism.trajectory_pairs`` keeps our policy's ids as they were sampled,
``mechanism.report_pairs`` builds the contexts of any causal LM from text; either is scored here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..engines.base import Engine
from ..errors import WorkbenchError
from ..reports.record import Rollout
from .copying import VERDICTS
from .matching import tokens_of

NOTHING, TOO_LONG, NO_DOCUMENTS = "nothing to score", "too long for the engine", "no documents"
TOKEN_COLUMNS = [
    "question_id", "rollout_id", "cell", "verdict", "position", "surface", "copy", "whole",
    "logprob_with", "logprob_without", "delta",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """One rollout's two contexts; ``reason`` says why there are none.

    present, removed : token ids with the documents and with placeholders.
    scored, scored_removed : bool over each; they pick the same ids in the same order.
    cut : tokens of the documents that did not fit the budget.
    """

    rollout: Rollout
    reason: str = ""
    present: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    scored: np.ndarray | None = None
    scored_removed: np.ndarray | None = None
    cut: int = 0


def remove_documents(engine: Engine, pairs: Sequence[Pair]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score every pair with ``engine``, two passes over each rollout.

    Returns
    -------
    Tokens : a row per kept scored token (App. G's normal form has two characters or more):
        ``TOKEN_COLUMNS``, position counted among the scored tokens, log-probs in nats.
    Rollouts : a row per pair, in order: question_id, rollout_id, cell, verdict; scored, copied,
        others (tokens), cut; delta_copied, delta_other (means, NaN without such tokens); reason
        ("" or why nothing was scored).
    """
    usable = [p for p in pairs if not p.reason]
    present = engine.score([p.present for p in usable], [p.scored for p in usable])
    removed = engine.score([p.removed for p in usable], [p.scored_removed for p in usable])
    results = dict(zip(map(id, usable), zip(present, removed, strict=True), strict=True))
    tables, rows = [], []
    for pair in pairs:
        table = _tokens(engine, pair, *results[id(pair)]) if not pair.reason else None
        rows.append(_row(pair, table))
        if table is not None:
            tables.append(table)
    empty = pd.DataFrame(columns=TOKEN_COLUMNS)
    tokens = pd.concat(tables, ignore_index=True) if tables else empty
    return tokens, pd.DataFrame(rows)


def _tokens(engine: Engine, pair: Pair, present, removed) -> pd.DataFrame:
    if not np.array_equal(present.tokens, removed.tokens):
        raise WorkbenchError(
            "the two contexts score different tokens", where=pair.rollout.question_id
        )
    surfaces = engine.tokenizer.convert_ids_to_tokens(present.tokens.tolist())
    documents = [d.text for d in pair.rollout.documents]
    kept = tokens_of(surfaces, np.ones(len(surfaces), dtype=bool), documents)
    before, after = (
        np.asarray(g.logprobs, dtype=np.float64)[kept.positions] for g in (present, removed)
    )
    return pd.DataFrame(
        {
            **_labels(pair),
            "position": kept.positions,
            "surface": kept.normals,
            "copy": kept.copy,
            "whole": kept.whole,
            "logprob_with": before,
            "logprob_without": after,
            "delta": after - before,
        },
        columns=TOKEN_COLUMNS,
    )


def _row(pair: Pair, table: pd.DataFrame | None) -> dict:
    n = 0 if table is None else len(table)
    copied = table["copy"].to_numpy(dtype=bool) if n else np.zeros(0, dtype=bool)
    delta = table["delta"].to_numpy() if n else np.zeros(0)
    return {
        **_labels(pair),
        "scored": int(pair.scored.sum()) if pair.scored is not None else 0,
        "copied": int(copied.sum()),
        "others": int((~copied).sum()),
        "cut": pair.cut,
        "delta_copied": float(delta[copied].mean()) if copied.any() else np.nan,
        "delta_other": float(delta[~copied].mean()) if (~copied).any() else np.nan,
        "reason": pair.reason or ("" if n else NOTHING),
    }


def _labels(pair: Pair) -> dict[str, str]:
    r = pair.rollout
    verdict = VERDICTS.get(r.correct, "unjudged")
    return {
        "question_id": r.question_id, "rollout_id": r.rollout_id, "cell": r.cell,
        "verdict": verdict,
    }  # fmt: skip
