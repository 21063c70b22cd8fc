"""The panels that tell whether training runs are well, for one condition and for many."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from workbench.errors import WorkbenchError
from workbench.inference.classical import t_interval
from workbench.reporting.style import display
from workbench.reporting.training import CREDIT, diagnostics, diagnostics_overview

ENTROPY, VARIANCE, GROUPS = "entropy (nats per token)", "variance inside groups", "share of groups"


def history(seeds, **columns):
    steps = np.arange(0, 11)
    return pd.concat(
        [
            pd.DataFrame({"seed": s, "step": steps, **columns}).assign(entropy=2.0 + s - steps / 10)
            for s in range(seeds)
        ]
    )


def panels(figure):
    return {axis.get_title(): axis for axis in figure.axes if axis.axison}


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def band(axis):
    return axis.collections[0].get_paths()[0].vertices[:, 1]


def test_what_was_not_logged_is_left_out():
    figure = diagnostics(history(1, kl=np.nan, searches=1.0), window=1)
    assert list(panels(figure)) == [ENTROPY, "searches per rollout"]
    (line,) = panels(figure)[ENTROPY].lines
    assert line.get_xdata().tolist() == list(range(1, 11)), "step 0 has no training rollouts"
    with pytest.raises(WorkbenchError, match="no rows"):
        diagnostics(history(1).drop(columns="entropy"))


def test_seeds_are_thin_lines_around_their_mean():
    axis = panels(diagnostics(history(3), window=1))[ENTROPY]
    *thin, mean = axis.lines
    assert len(thin) == 3 and len(axis.collections) == 1
    np.testing.assert_allclose(mean.get_ydata(), 3.0 - np.arange(1, 11) / 10)


def test_bands_stay_among_the_values_that_are_possible():
    """Two seeds at 0.02 and 0.98: the t interval runs from -5.6 to 6.6."""
    frame = history(2, direct=0.0, searches=0.0)
    frame.loc[frame["seed"] == 0, ["direct", "searches"]] = 0.02
    frame.loc[frame["seed"] == 1, ["direct", "searches"]] = 0.98
    figure = diagnostics(frame, window=1)
    shares = band(panels(figure)["answered without search"])
    assert shares.min() == 0.0 and shares.max() == 1.0
    counts = band(panels(figure)["searches per rollout"])
    assert counts.min() == 0.0 and counts.max() == pytest.approx(t_interval([0.02, 0.98]).high)
    assert "cut at 0 and, of shares, at 1" in figure.get_supxlabel()


def test_equal_metrics_are_one_line_under_both_names():
    steps = np.arange(0, 11) / 20
    same = diagnostics(history(1, reward_variance=steps, outcome_variance=steps), window=1)
    axis = panels(same)[VARIANCE]
    assert len(axis.lines) == 1 and legend(axis) == ["reward = outcome"]
    other = diagnostics(history(1, reward_variance=steps, outcome_variance=steps / 2), window=1)
    axis = panels(other)[VARIANCE]
    assert len(axis.lines) == 2 and legend(axis) == ["reward", "outcome"]


def test_legends_lie_outside_their_panels():
    figure = diagnostics(history(3, zero_variance_groups=0.9, phantom_groups=0.1), window=1)
    FigureCanvasAgg(figure).draw()
    axis = panels(figure)[GROUPS]
    text = axis.get_legend().get_texts()[0].get_window_extent()
    assert axis.get_window_extent().y1 <= text.y0 < text.y1 <= axis.title.get_window_extent().y0


def test_an_overview_has_a_row_per_condition_and_two_points_in_each():
    names = [f"method_{i}" for i in range(14)]
    histories = {n: history(3, direct=0.02 * (i + 1)) for i, n in enumerate(names)}
    axes = diagnostics_overview(histories).axes
    assert [axis.get_title() for axis in axes] == ["entropy\n(nats per token)",
                                                   "answered\nwithout search"]  # fmt: skip
    labels = [text.get_text() for text in axes[0].get_yticklabels()]
    assert labels == [display(name) for name in names]
    first, last = (c.lines[0] for c in axes[0].containers)
    assert first.get_xdata() == pytest.approx([2.9] * 14), "mean of three seeds, first step"
    assert last.get_xdata() == pytest.approx([2.0] * 14)
    rows = np.stack([first.get_ydata(), last.get_ydata()])
    assert (np.abs(rows - np.arange(14)) < 0.5).all(), "each in the row of its condition"
    ends = [s[:, 0] for s in axes[1].containers[0].lines[2][0].get_segments()]
    assert min(e.min() for e in ends) >= 0.0
    plain = history(3)
    credit = history(3, tied_credit=0.2, local_disabled=0.0)
    figure = diagnostics_overview({"oo": plain, "cov_local": credit}, CREDIT)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["Cov-local"]
    assert len(figure.axes) == 2
