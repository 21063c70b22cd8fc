"""DeepConf without the copied tokens (S2 App. I.1, Table 11).

The copy set is App. G's substring rule over everything that was generated, since DeepConf reads
all of it; what remains, discarded tokens included, is reduced as before.  A stream that is
shorter than the window by then is one window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..inference.bootstrap import BootstrapConfig
from ..reports.record import Rollout
from ..voting.deepconf import DeepConfConfig, reduce_confidences, token_confidences
from .frames import need, parts, rollout_frame
from .matching import CopyConfig, kept_tokens
from .shares import share_summary
from .spread import variance_shares
from .verdicts import aucs

DC, MASKED = "w_dc", "w_dc_masked"
_COLUMNS = [DC, MASKED, "tokens", "masked", "share", "whole_share", "reason"]
NO_CANDIDATES, ALL_COPIED = "no log-probs", "nothing but copies has log-probs"


def masked_scores(
    rollouts: Sequence[Rollout],
    deepconf: DeepConfConfig | None = None,
    copying: CopyConfig | None = None,
) -> pd.DataFrame:
    """DeepConf of each rollout on all its tokens and on those that are no copies.

    Parameters
    ----------
    copying : tokens that may be masked; default all generated ones.

    Returns
    -------
    question_id, rollout_id, cell, correct; w_dc, w_dc_masked (NaN without a usable log-prob
    among the tokens); tokens (generated), masked, share (copies among kept tokens); reason ("",
    or why one of the scores is NaN).  A rollout without documents has no copies, so that both
    scores are the same, and a share of NaN.
    """
    copying = copying or CopyConfig(phases="generated")
    rows = []
    for rollout in rollouts:
        kept = kept_tokens(rollout, copying)
        n = 0 if rollout.tokens is None else len(rollout.tokens.surfaces)
        remains = np.ones(n, dtype=bool)
        remains[kept.positions[kept.copy]] = False
        plain = _deepconf(rollout, np.ones(n, dtype=bool), deepconf)
        masked = _deepconf(rollout, remains, deepconf)
        reason = NO_CANDIDATES if np.isnan(plain) else ALL_COPIED if np.isnan(masked) else ""
        rows.append(
            {
                DC: plain,
                MASKED: masked,
                "tokens": n,
                "masked": int((~remains).sum()),
                "share": float(kept.copy.mean()) if len(kept.copy) else np.nan,
                "whole_share": float(kept.whole.mean()) if len(kept.copy) else np.nan,
                "reason": reason,
            }
        )
    return pd.concat([rollout_frame(rollouts), pd.DataFrame(rows, columns=_COLUMNS)], axis=1)


def masking_table(
    frame: pd.DataFrame,
    scores: Sequence[str] = (DC, MASKED, "w_rgv"),
    by: Sequence[str] = ("cell",),
    config: BootstrapConfig | None = None,
) -> pd.DataFrame:
    """Table 11: copy share, rollout AUC and within-question variance share per group and score.

    All scores are compared on the rollouts that have every one of them.

    Parameters
    ----------
    frame : of ``masked_scores``, with the columns of further scores.

    Returns
    -------
    One row per group, metric ("copy share", "AUC", "variance share") and score ("" for the
    median copy share): value, low, high, p, n (questions), rollouts (with every score, or with
    a copy share), dropped (without).
    """
    need(frame, ["share", "whole_share", *scores])
    rows = []
    for key, part in parts(frame, by):
        common = part[part[list(scores)].notna().all(axis=1)]
        copied = share_summary(part, (), config).query("test == 'share' and metric == 'median'")
        tables = {
            "copy share": (copied.assign(score=""), int(part["share"].notna().sum())),
            "AUC": (aucs(common, scores, (), config), len(common)),
            "variance share": (variance_shares(common, scores, (), config), len(common)),
        }
        for metric, (table, used) in tables.items():
            sizes = {"metric": metric, "rollouts": used, "dropped": len(part) - used}
            rows += [{**key, **row, **sizes} for row in table.to_dict("records")]
    columns = [*by, "metric", "score", "value", "low", "high", "p", "n", "rollouts", "dropped"]
    return pd.DataFrame(rows, columns=columns)


def _deepconf(rollout: Rollout, tokens: np.ndarray, config: DeepConfConfig | None) -> float:
    if rollout.tokens is None or not tokens.any():
        return np.nan
    found = token_confidences(np.asarray(rollout.tokens.topk)[tokens]).values
    return reduce_confidences(found, config) if len(found) else np.nan
