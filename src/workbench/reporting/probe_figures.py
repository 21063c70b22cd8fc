"""Figures of the readouts: where a label can be read, and how well (S1 §4.3, §7.3)."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..readouts.metrics import reliability
from . import drawing as draw
from .style import ACCENT, WIDTH, colours, markers, style


def share_rows(frame: pd.DataFrame, label: str) -> Figure:
    """One row per ``kind``: a share with its interval, and n beside the name.

    ``frame``: kind, value, low, high, n; drawn in the order given, from top to bottom.
    """
    draw.need(frame, "kind", "value", "low", "high", "n")
    with style():
        figure, axis = plt.subplots(figsize=(WIDTH * 0.8, 0.7 + 0.27 * len(frame)))
        places = np.arange(len(frame))[::-1]
        draw.points(axis, places, frame, ACCENT, "s", horizontal=True)
        axis.set_yticks(places, [f"{k} (n = {n})" for k, n in zip(frame["kind"], frame["n"])])
        axis.set_xlim(-0.02, 1.02)
        axis.set_xlabel(label)
    return figure


def layer_curves(frame: pd.DataFrame) -> Figure:
    """Held-out AUC by layer, one line per ``readout`` (Figure A1).

    ``frame``: readout, layer, value, low, high.  The dashed line is chance.
    """
    draw.need(frame, "readout", "layer", "value", "low", "high")
    names = list(dict.fromkeys(frame["readout"]))
    with style():
        figure, axis = plt.subplots(figsize=(WIDTH * 0.7, 2.9))
        for place, name in enumerate(names):
            own = frame[frame["readout"] == name].sort_values("layer")
            at = own["layer"] + 0.06 * (place - (len(names) - 1) / 2)
            draw.points(axis, at, own, colours(names)[name], markers(names)[name], line=True)
        axis.axhline(0.5, color="#777777", linestyle="--", linewidth=1)
        axis.set_xticks(sorted(set(frame["layer"])))
        axis.set_xlabel("layer (0: embeddings)")
        axis.set_ylabel("held-out AUC")
        handles = [
            Line2D([], [], color=colours(names)[n], marker=markers(names)[n], label=n)
            for n in names
        ]
        axis.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def roc_and_reliability(scored: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """ROC curves, and mean label by score bin, of held-out scores.

    ``scored``: readout -> (labels [N], probabilities [N]).  The size of a point is its bin's rows.
    """
    from sklearn.metrics import roc_curve

    names = list(scored)
    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.3))
        for name, (labels, scores) in scored.items():
            look = {"color": colours(names)[name], "label": name}
            wrong, right_share, _ = roc_curve(labels, scores)
            left.plot(wrong, right_share, **look)
            score, label, rows = reliability(labels, scores)
            kept = rows > 0
            sizes = 12 + 120 * rows[kept] / rows.sum()
            mark = markers(names)[name]
            right.plot(score[kept], label[kept], linewidth=1, color=look["color"])
            right.scatter(score[kept], label[kept], s=sizes, marker=mark, **look)
        for axis in (left, right):
            axis.plot([0, 1], [0, 1], color="#777777", linestyle="--", linewidth=1)
            axis.set_xlim(-0.03, 1.03)
            axis.set_ylim(-0.03, 1.03)
            axis.set_aspect("equal")
        left.set_xlabel("false positive rate")
        left.set_ylabel("true positive rate")
        left.legend(loc="lower right")
        right.set_xlabel("score, mean of its bin")
        right.set_ylabel("share with the label")
    return figure


def auc_rows(frame: pd.DataFrame) -> Figure:
    """Held-out AUC of a readout and its controls with intervals (Table A17 as a picture).

    ``frame``: predictor, value, low, high.
    """
    draw.need(frame, "predictor", "value", "low", "high")
    with style():
        figure, axis = plt.subplots(figsize=(WIDTH * 0.8, 0.8 + 0.27 * len(frame)))
        places = np.arange(len(frame))[::-1]
        draw.points(axis, places, frame, ACCENT, "s", horizontal=True)
        axis.axvline(0.5, color="#777777", linestyle="--", linewidth=1)
        axis.set_yticks(places, frame["predictor"])
        axis.set_xlabel("held-out AUC")
    return figure


def state_map(states: np.ndarray, labels: np.ndarray, names: tuple[str, str], title: str) -> Figure:
    """Hidden states float [N, H] on their two main components, coloured by a bool label."""
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    flat = PCA(2, random_state=0).fit_transform(StandardScaler().fit_transform(states))
    flat *= np.sign(flat[np.argmax(np.abs(flat), axis=0), [0, 1]])  # a component has no sign
    with style():
        figure, axis = plt.subplots(figsize=(WIDTH * 0.6, 3.4))
        for value, name in zip((False, True), names):
            own = flat[np.asarray(labels, dtype=bool) == value]
            axis.scatter(
                own[:, 0], own[:, 1], s=14, alpha=0.7, marker=markers(names)[name],
                color=colours(names)[name], label=f"{name} ({len(own)})", linewidths=0,
            )  # fmt: skip
        axis.set_xlabel("first component")
        axis.set_ylabel("second component")
        axis.set_title(title, pad=24)
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=2)
    return figure
