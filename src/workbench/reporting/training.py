"""The figure that tells whether a training run is well: variances, groups, search behaviour."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from . import drawing as draw
from .style import WIDTH, colours, style

# Title of a panel -> logged metrics in it with their names in the legend.
PANELS: dict[str, dict[str, str]] = {
    "variance inside groups": {"reward_variance": "reward", "outcome_variance": "outcome"},
    "share of groups": {"zero_variance_groups": "zero variance", "phantom_groups": "phantom"},
    "entropy (nats per token)": {"entropy": "entropy"},
    "KL to the base policy": {"kl": "KL"},
    "searches per rollout": {"searches": "searches"},
    "answered without search": {"direct": "direct"},
}


def diagnostics(
    history: pd.DataFrame, window: int = 5, panels: Mapping[str, Mapping[str, str]] = PANELS
) -> Figure:
    """Six panels over the update steps of one condition.

    Parameters
    ----------
    history : seed, step and the logged metrics, as ``grpo.history.training_history`` gives it.
    window : steps of the centred running mean.

    Thin lines are seeds, bold lines their mean, bands 95 % t intervals over seeds.  A panel
    whose metrics were not logged says so.
    """
    draw.need(history, "seed", "step")
    trained = history[history["step"] > 0]
    rows = -(-len(panels) // 3)
    with style():
        figure, axes = plt.subplots(
            rows, 3, figsize=(WIDTH, 0.5 + 1.9 * rows), sharex=True, squeeze=False
        )
        for axis, (title, metrics) in zip(axes.flat, panels.items()):
            logged = {m: name for m, name in metrics.items() if m in trained.columns}
            colour = colours(list(logged))
            for metric in logged:
                part = trained[["seed", "step", metric]].rename(columns={metric: "value"})
                draw.curve(axis, part.dropna(), colour[metric], "", window, 0.0)
            if not logged:
                axis.text(0.5, 0.5, "not computed", ha="center", transform=axis.transAxes)
                axis.yaxis.set_visible(False)
                axis.grid(visible=False)
            if len(logged) > 1:
                handles = [draw.handle(colour[m], "", name, line="-") for m, name in logged.items()]
                axis.legend(handles=handles, fontsize=7.5, loc="best")
            axis.set_title(title)
            if logged:
                draw.round_ticks(axis.yaxis, 5)
            draw.round_ticks(axis.xaxis, 5, integer=True)
        seeds = trained["seed"].nunique()
        bands = "; thin: seeds; bold: their mean; bands: 95 % t intervals over seeds"
        note = f"running mean of {window} steps" if window > 1 else "every step"
        draw.note(figure, note + (bands if seeds > 1 else "; one seed"), label="update step")
    return draw.finish(figure)
