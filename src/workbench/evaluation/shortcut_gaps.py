"""The reliance readout minus each shortcut, on the same resampled questions (S1 Table A17)."""

from __future__ import annotations

import pandas as pd

from ..inference.bootstrap import BootstrapConfig
from ..readouts.calibration import Targets
from ..readouts.controls import control_scores, shortcuts
from ..readouts.selection import SelectionConfig, held_out_scores
from ..readouts.tables import RELIANCE, readout_rows
from .co_evolution import Tested, weighted_auc


def shortcut_gaps(
    targets: Targets, selection: SelectionConfig, bootstrap: BootstrapConfig | None = None
) -> pd.DataFrame:
    """Held-out AUC of D minus that of each control: predictor, value, low, high, n, p.

    All are scored on one group split, and each draw of questions gives both AUCs, so a gap is
    paired.  ``n`` counts questions, ``p`` is of no gap.

    Raises
    ------
    Unfit : D has too few rows, or one class only.
    """
    states, labels, questions = readout_rows(targets)[RELIANCE]
    own = held_out_scores(states, labels, questions, targets.layers, selection)
    rows = []
    for name, values in shortcuts(targets.searched).items():
        other = control_scores(values, labels, questions, selection)
        tested = Tested(labels, list(questions), {RELIANCE: own, name: other})
        gap, _ = weighted_auc([tested], [(RELIANCE, 1.0), (name, -1.0)], bootstrap, 0.0)
        row = {"value": gap.value, "low": gap.low, "high": gap.high, "n": gap.n, "p": gap.p}
        rows.append({"predictor": name, **row})
    return pd.DataFrame(rows)
