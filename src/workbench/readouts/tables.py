"""Tables of a calibration round: labels by kind of question, AUC by layer, quality, controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..inference.bootstrap import BootstrapConfig
from ..inference.classical import t_interval, wilson
from .calibration import Targets
from .controls import control_scores, matched_rows, shortcuts, shuffled_labels
from .metrics import auc, auc_interval, brier, expected_calibration_error
from .probes import LOGISTIC
from .selection import SelectionConfig, held_out_scores

RELIANCE, SUFFICIENCY = "D, reliance", "B, sufficiency"
SHUFFLES = 10
_INTERVAL = ("value", "low", "high", "n")

Rows = tuple[np.ndarray, np.ndarray, Sequence[str]]


def shares_by_kind(kinds: Sequence[str], labels: np.ndarray) -> pd.DataFrame:
    """Share of a bool label by kind with its 95 % Wilson interval: kind, value, low, high, n."""
    groups = pd.DataFrame({"kind": kinds, "label": labels}).groupby("kind")["label"]
    return pd.DataFrame(
        [{"kind": kind, **_of(wilson(int(own.sum()), len(own)))} for kind, own in groups]
    )


def readout_rows(targets: Targets) -> dict[str, Rows]:
    """For D and B: states float32 [N, L, H], labels bool [N] and the question of each row."""
    return {
        RELIANCE: (targets.commit_states, targets.reliance.changed, targets.questions),
        SUFFICIENCY: (
            targets.prompt_states,
            targets.closed_book.sufficient,
            [item.item_id for item in targets.items],
        ),
    }


def layer_table(
    targets: Targets, selection: SelectionConfig, bootstrap: BootstrapConfig
) -> pd.DataFrame:
    """Held-out AUC of a linear probe on each layer alone (Figure A1), with n questions.

    Raises
    ------
    Unfit : a readout has too few rows, or one class only.
    """
    rows = []
    for name, (states, labels, questions) in readout_rows(targets).items():
        for place, layer in enumerate(targets.layers):
            scores = held_out_scores(
                states[:, [place]], labels, questions, [layer], _linear(selection)
            )
            found = auc_interval(labels, scores, questions, bootstrap)
            rows.append({"readout": name, "layer": layer, **_of(found)})
    return pd.DataFrame(rows)


def held_out(targets: Targets, selection: SelectionConfig) -> dict[str, np.ndarray]:
    """Held-out scores float64 [N] of both readouts; layer and architecture chosen without them."""
    return {
        name: held_out_scores(states, labels, questions, targets.layers, selection)
        for name, (states, labels, questions) in readout_rows(targets).items()
    }


def quality_table(
    targets: Targets, scores: Mapping[str, np.ndarray], bootstrap: BootstrapConfig
) -> pd.DataFrame:
    """AUC with interval, Brier score and ECE of held-out scores (Table A20)."""
    rows = []
    for name, (_, labels, questions) in readout_rows(targets).items():
        found = auc_interval(labels, scores[name], questions, bootstrap)
        rows.append(
            {
                "readout": name,
                **_of(found),
                "brier": brier(labels, scores[name]),
                "ece": expected_calibration_error(labels, scores[name]),
                "rows": len(labels),
                "label_share": float(np.mean(labels)),
            }
        )
    return pd.DataFrame(rows)


def control_table(
    targets: Targets,
    scores: np.ndarray,
    selection: SelectionConfig,
    bootstrap: BootstrapConfig,
    seed: int = 0,
) -> pd.DataFrame:
    """Table A17: D (held-out ``scores`` [N]), matched, and beside its controls.

    Columns predictor, value (AUC), low, high, n (questions).  The row of matched rollouts is
    missing where too few can be matched.  One shuffle of the labels may give any AUC near 0.5, so
    that row is the mean of ``SHUFFLES`` with its t interval over them.
    """
    states, labels, questions = readout_rows(targets)[RELIANCE]

    def row(name: str, truth: np.ndarray, values: np.ndarray, names: Sequence[str]) -> dict:
        return {"predictor": name, **_of(auc_interval(truth, values, names, bootstrap))}

    rows = [row(RELIANCE, labels, scores, questions)]
    kept = matched_rows(targets.searched, labels, seed=seed)
    if len(kept):
        names = [questions[i] for i in kept]
        rows.append(row("D, matched on count and length", labels[kept], scores[kept], names))
    for name, values in shortcuts(targets.searched).items():
        rows.append(
            row(name, labels, control_scores(values, labels, questions, selection), questions)
        )
    by_chance = []
    for draw in range(SHUFFLES):
        mixed = shuffled_labels(labels, questions, SHUFFLES * seed + draw)
        chance = held_out_scores(states, mixed, questions, targets.layers, _linear(selection))
        by_chance.append(auc(mixed, chance))
    shuffled = {"predictor": "D on shuffled labels", **_of(t_interval(by_chance, within=(0, 1)))}
    return pd.DataFrame([*rows, shuffled | {"n": len(set(questions))}])


def _linear(selection: SelectionConfig) -> SelectionConfig:
    return selection.model_copy(update={"architectures": [LOGISTIC]})


def _of(interval: object) -> dict[str, float]:
    return {name: getattr(interval, name) for name in _INTERVAL}
