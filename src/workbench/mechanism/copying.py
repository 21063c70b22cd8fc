"""Tables of copy tokens: one row per token, one per rollout (S2 §3, App. G)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..reports.record import Rollout
from ..voting.stopwords import STOPWORDS
from .frames import rollout_frame
from .matching import CopyConfig, kept_tokens

VERDICTS = {1.0: "right", 0.0: "wrong"}
_SHARES = [
    "generated", "kept", "short", "markup", "copied", "share", "whole", "whole_share", "reason",
]  # fmt: skip


def token_table(rollouts: Sequence[Rollout], config: CopyConfig | None = None) -> pd.DataFrame:
    """One row per kept token of the rollouts that have any.

    Returns
    -------
    question_id, rollout_id, cell, verdict ("right", "wrong", "unjudged"), surface (its normal
    form), all categories; position in the stream; copy, whole, stopword, digit (digits only),
    capitalised (its first character is a capital); length of the normal form; phase; logprob
    in nats, NaN where it is not known (infinities too).
    """
    found = [(r, k) for r in rollouts if not (k := kept_tokens(r, config)).reason]
    sizes = [len(k.positions) for _, k in found]
    texts = [t for _, k in found for t in k.texts]
    codes, names = pd.factorize(np.array([n for _, k in found for n in k.normals], dtype=object))

    def column(parts: list, dtype) -> np.ndarray:
        return np.concatenate([np.zeros(0, dtype), *(np.asarray(p, dtype) for p in parts)])

    def of_names(values: list, dtype) -> np.ndarray:
        return np.array(values, dtype=dtype)[codes]

    labels = {
        "question_id": [r.question_id for r, _ in found],
        "rollout_id": [r.rollout_id for r, _ in found],
        "cell": [r.cell for r, _ in found],
        "verdict": [VERDICTS.get(r.correct, "unjudged") for r, _ in found],
    }
    table = pd.DataFrame(
        {name: pd.Categorical(values).repeat(sizes) for name, values in labels.items()}
    )
    table["surface"] = pd.Categorical.from_codes(codes, categories=names)
    table["position"] = column([k.positions for _, k in found], np.int32)
    table["copy"] = column([k.copy for _, k in found], bool)
    table["whole"] = column([k.whole for _, k in found], bool)
    table["stopword"] = of_names([n in STOPWORDS for n in names], bool)
    table["digit"] = of_names([n.isdigit() for n in names], bool)
    table["length"] = of_names([len(n) for n in names], np.int32)
    table["capitalised"] = np.array([t.lstrip()[:1].isupper() for t in texts], dtype=bool)
    table["phase"] = column([r.tokens.phases[k.positions] for r, k in found], np.uint8)
    logprobs = column([r.tokens.logprobs[k.positions] for r, k in found], np.float32)
    table["logprob"] = np.where(np.isfinite(logprobs), logprobs, np.nan)
    return table


def copy_shares(rollouts: Sequence[Rollout], config: CopyConfig | None = None) -> pd.DataFrame:
    """One row per rollout, in order.

    Returns
    -------
    question_id, rollout_id, cell, correct; generated (tokens of the phases), kept, short and
    markup (discarded); copied, share (copied / kept); whole, whole_share; reason ("" or why the
    shares are NaN).
    """
    rows = []
    for rollout in rollouts:
        kept = kept_tokens(rollout, config)
        n = len(kept.positions)
        copied, whole = int(kept.copy.sum()), int(kept.whole.sum())
        rows.append(
            {
                "generated": kept.generated,
                "kept": n,
                "short": kept.short,
                "markup": kept.markup,
                "copied": copied,
                "share": copied / n if n else np.nan,
                "whole": whole,
                "whole_share": whole / n if n else np.nan,
                "reason": kept.reason,
            }
        )
    return pd.concat([rollout_frame(rollouts), pd.DataFrame(rows, columns=_SHARES)], axis=1)
