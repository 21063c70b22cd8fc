"""Callbacks of notebooks: what they draw and when."""

import sys

import numpy as np

from workbench.grpo.live import LiveCurves, ProgressBar, draw_curves
from workbench.grpo.trainer import StepReport
from workbench.methods.base import Scores


def report(step, steps=4, **metrics):
    metrics = {"reward_mean": 0.1 * step, "searches": 1.0} | metrics
    return StepReport(step, steps, metrics, [], Scores(np.zeros(0)), [])


def test_curves_show_the_metrics_that_were_logged():
    rows = [{"step": s, "reward_mean": 0.1 * s, "kl": 0.0} for s in (1, 2, 3)]
    figure = draw_curves(rows, ["reward_mean", "kl", "never_logged"])
    assert [axes.get_title() for axes in figure.axes] == ["reward mean", "kl"]
    np.testing.assert_allclose(figure.axes[0].lines[0].get_xydata()[:, 1], [0.1, 0.2, 0.3])
    figure = draw_curves(rows[:1], ["kl"], figure)
    assert len(figure.axes) == 1


def test_live_curves_redraw_in_place_at_intervals_and_at_the_end(monkeypatch):
    calls = []

    class Handle:
        def update(self, figure):
            calls.append("update")

    def display(figure, display_id):
        calls.append("display")
        return Handle()

    import IPython.display

    monkeypatch.setattr(IPython.display, "display", display)
    live = LiveCurves(["reward_mean"], every=2)
    drawn = []
    for step in (1, 2, 3, 4, 5):
        before = len(calls)
        live(report(step, steps=5))
        drawn += [step] * (len(calls) - before)
    assert drawn == [2, 4, 5] and calls == ["display", "update", "update"]


def test_the_bar_starts_where_a_resumed_run_starts(capsys, monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    bar = ProgressBar("grpo")
    bar(report(3))
    assert (bar._bar.initial, bar._bar.n, bar._bar.total) == (2, 3, 4)
    bar(report(4))
    assert bar._bar.n == 4
    assert "grpo" in capsys.readouterr().err or "ipykernel" in sys.modules
