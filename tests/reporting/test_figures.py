"""Figures: what is drawn where, files that depend on the data only, frames that are refused."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from workbench.errors import WorkbenchError
from workbench.reporting.figures import (
    condition_figure,
    exposure_figure,
    search_mode_shift,
    training_curves,
    vote_figure,
)
from workbench.reporting.style import colours, markers, save_figure

CATEGORIES = ["1-hop, single", "2-hop, chain"]


def bars(axis):
    """(place, value, low, high) of every vertical error bar of an axis."""
    found = []
    for container in axis.containers:
        data, _, (lines,) = container.lines
        for x, y, ((_, low), (_, high)) in zip(*data.get_data(), lines.get_segments()):
            found.append((float(x), float(y), float(low), float(high)))
    return found


def test_training_curves_show_seeds_mean_and_band(curves):
    axes = training_curves(curves, window=1).axes
    for axis, steps, bands in ((axes[0], 60, 0), (axes[1], 7, 2)):
        assert len(axis.lines) == 2 * (3 + 1) and len(axis.collections) == bands
        seeds, mean = axis.lines[:3], axis.lines[3]
        assert len(mean.get_xdata()) == steps
        expected = np.mean([line.get_ydata() for line in seeds], axis=0)
        assert mean.get_ydata() == pytest.approx(expected)
    assert "own" in axes[0].get_ylabel() and axes[1].get_xlabel() == "update step"


def test_the_running_mean_is_centred(curves):
    part = curves[(curves["condition"] == "oo") & (curves["seed"] == 0)]
    line = training_curves(part, window=3).axes[0].lines[0]
    raw = part[part["series"] == "training"]["value"].to_numpy()
    assert line.get_ydata()[10] == pytest.approx(raw[9:12].mean())


def test_one_seed_shows_its_own_intervals(curves):
    part = curves[curves["seed"] == 1]
    figure = training_curves(part.assign(low=part["value"] - 0.1, high=part["value"] + 0.2))
    place, value, low, high = bars(figure.axes[1])[0]
    assert (value - low, high - value) == (pytest.approx(0.1), pytest.approx(0.2))
    assert not figure.axes[0].collections, "no band without a second seed"


def test_shift_has_a_panel_per_condition_and_questions_under_the_bins(shift):
    figure = search_mode_shift(shift)
    assert [a.get_title() for a in figure.axes] == ["outcome only (F1)", "Search-R1"]
    labels = [t.get_text() for t in figure.axes[0].get_xticklabels()]
    assert labels[0] == "0\n(200)" and labels[-1] == "64+\n(200)"
    before, after = np.split(np.array(bars(figure.axes[0]))[:, 1], 2)
    expected = shift[shift["condition"] == "oo"]
    assert before == pytest.approx(expected[expected["phase"] == "before"]["value"])
    assert after == pytest.approx(expected[expected["phase"] == "after"]["value"])


def test_exposure_points_carry_their_intervals(curve):
    drawn = bars(exposure_figure(curve).axes[0])
    assert [p[1] for p in drawn] == pytest.approx(curve["value"].tolist())
    assert [p[2] for p in drawn] == pytest.approx(curve["low"].tolist())
    two = pd.concat([curve.assign(category=c) for c in ("one", "two")])
    assert len(bars(exposure_figure(two).axes[0])) == 2 * len(curve)


def test_a_point_without_an_interval_stays_a_point(curve):
    lonely = curve.assign(low=np.nan, high=np.nan)
    place, value, low, high = bars(exposure_figure(lonely).axes[0])[0]
    assert low == value == high


def test_votes_and_their_differences(votes):
    left, right = vote_figure(votes).axes
    assert [t.get_text() for t in left.get_yticklabels()] == [
        "single rollout", "simple majority", "RGV", "oracle",
    ]  # fmt: skip
    points = [x for c in left.containers for x in c.lines[0].get_xdata()]
    assert sorted(points) == pytest.approx([0.55, 0.61, 0.64, 0.82])
    deltas = [x for c in right.containers for x in c.lines[0].get_xdata()]
    assert sorted(deltas) == pytest.approx([-0.06, 0.03, 0.21]), "none for the comparator itself"
    faces = {to_hex(c.lines[0].get_markerfacecolor()) for c in left.containers}
    assert len(faces) == 2, "references are hollow"
    assert "240 questions x 8 rollouts" in left.get_xlabel()


def test_conditions_and_paired_differences(scores, differences):
    axes = condition_figure(scores, differences).axes
    assert len(axes) == 4
    assert len(bars(axes[0])) == 3 * 2 and len(bars(axes[1])) == 2 * 2
    places = [p[0] for p in bars(axes[0])]
    assert len(set(places)) == 6, "conditions stand beside each other"
    assert axes[1].get_ylabel() == "EM minus base policy"


def test_same_data_same_files_and_nothing_left_open(votes, tmp_path):
    paths = save_figure(vote_figure(votes), tmp_path / "deep" / "votes")
    assert [p.name for p in paths] == ["votes.png", "votes.svg"]
    first = [p.read_bytes() for p in paths]
    again = [p.read_bytes() for p in save_figure(vote_figure(votes), tmp_path / "again")]
    assert again == first
    other = save_figure(vote_figure(votes.assign(accuracy=0.7)), tmp_path / "other")
    assert other[0].read_bytes() != first[0]
    svg = paths[1].read_text()
    assert "<dc:date>" not in svg and "simple majority" in svg
    assert b"Software" not in first[0] and first[0].startswith(b"\x89PNG")
    assert plt.get_fignums() == []
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["votes.png", "votes.svg"]


def test_colours_and_markers_never_coincide():
    names = ["base", "closed_book", *(f"method {i}" for i in range(30))]
    looks = set(zip(colours(names).values(), [markers(names)[n] for n in colours(names)]))
    assert len(looks) == len(names)
    assert colours(["base", "oo"])["oo"] == colours(["oo", "search_r1"])["oo"]


def many(frame, count=14, untrained=()):
    """The frame's rows of "oo" under many names, with those of the untrained policies."""
    model = frame[frame["condition"] == "oo"]
    kept = [frame[frame["condition"] == name] for name in untrained]
    copies = [model.assign(condition=f"method_{i}") for i in range(count)]
    return pd.concat([*kept, *copies], ignore_index=True)


def test_many_conditions_get_a_panel_each(curves, shift):
    frame = many(curves)
    frame.loc[frame["series"] == "held-out", "value"] = 0.99
    figure = training_curves(frame, window=1)
    axes = [axis for axis in figure.axes if axis.axison]
    assert [a.get_title() for a in axes] == [f"method {i}" for i in range(14)]
    assert [len(a.lines) for a in axes] == [4] + [5] * 13, "seeds, mean, and the first's mean"
    assert all(len(line.get_xdata()) == 7 for a in axes for line in a.lines), "held-out only"
    ends = [a.collections[0].get_paths()[0].vertices[:, 1].max() for a in axes]
    assert max(ends) <= 1.0
    axes = [axis for axis in search_mode_shift(many(shift)).axes if axis.axison]
    assert len(axes) == 14 and len({a.get_position().y0 for a in axes}) == 4
    below = [a for a in axes if a.xaxis.get_tick_params()["labelbottom"]]
    assert len(below) == 4, "the lowest panel of every column says its exposures"


def test_many_conditions_get_a_row_each(scores, differences, votes):
    every = pd.concat([scores, scores[scores["category"] == CATEGORIES[0]].assign(category="all")])
    paired = pd.concat(
        [differences, differences[differences["category"] == CATEGORIES[0]].assign(category="all")]
    )
    axes = condition_figure(many(every, untrained=["base"]), many(paired)).axes
    assert [a.get_title().split("\n")[0] for a in axes] == ["EM", "EM", "F1", "F1"]
    points = [c.lines[0].get_ydata() for a in axes for c in a.containers]
    assert [sorted(p) for p in points] == [list(range(15)), list(range(1, 15))] * 2
    ballots = many(votes.assign(condition="oo"))
    left, right = vote_figure(ballots).axes
    assert len(left.get_yticklabels()) == 14
    places = np.sort(np.concatenate([c.lines[0].get_ydata() for c in left.containers]))
    assert np.diff(places).min() > 0.1, "the rules of a row do not lie on each other"
    assert np.abs(places.reshape(14, 4) - np.arange(14)[:, None]).max() < 0.5


def test_incomplete_frames_are_refused(votes, curve):
    with pytest.raises(WorkbenchError, match="missing: \\['low'\\]"):
        vote_figure(votes.drop(columns="low"))
    with pytest.raises(WorkbenchError, match="no rows"):
        exposure_figure(curve.iloc[:0])
