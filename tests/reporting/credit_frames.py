"""Made-up frames of the retrieval-credit study, for all thirteen conditions or fewer."""

import pandas as pd

from workbench.evaluation.contrasts import ALL
from workbench.evaluation.credit_study import CONDITIONS, CONTRASTS, GAINS, GROUPS
from workbench.reporting.comparisons import Setting

SETTING = Setting("2 M decoder", "World Factbook, BM25", "60 steps of 16 x 5 rollouts, 3 runs")
LIFT = {name: round(0.01 * place, 4) for place, name in enumerate(CONDITIONS)}
SETS = ("1-hop, single", "2-hop, chain", "1-hop, single, named", ALL)


def intervals(rows, half=0.05):
    frame = pd.DataFrame(rows)
    ends = {"low": frame["value"] - half, "high": frame["value"] + half}
    return frame.assign(**ends, n=120, seeds=3, p=0.01)


def scores(conditions=("base", *CONDITIONS), key="hop_group", levels=GROUPS):
    return intervals(
        {"condition": c, key: level, "metric": m, "value": 0.4 + LIFT.get(c, -0.1)}
        for c in conditions
        for level in levels
        for m in ("f1", "em")
    )


def contrasts(conditions=CONDITIONS, by="hop_group", levels=GROUPS):
    present = [c for c in (*GAINS, *CONTRASTS) if {c.ours, c.reference} <= set(conditions)]
    return intervals(
        {
            "condition": c.ours, "reference": c.reference, "panel": c.panel, by: level,
            "metric": "f1", "value": LIFT[c.ours] - LIFT[c.reference],
        }
        for c in present
        for level in levels
    )  # fmt: skip
