"""Figures of the Search-G1 study: the right values in the right row, and no row lost."""

import importlib.util
import sys
from pathlib import Path

import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.search_g1_study import behaviour
from workbench.reporting import search_g1_figures as figures
from workbench.reporting.style import save_figure


@pytest.fixture(scope="module")
def made():
    path = Path(__file__).parent / "search_g1_frames.py"
    spec = importlib.util.spec_from_file_location("search_g1_frames_of_figures", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def points(axis):
    """(x, y) of all drawn points, a list for each set of them."""
    lines = [line for line in axis.get_lines() if line.get_marker() not in ("", "None", None)]
    return [list(zip(*line.get_data())) for line in lines if len(line.get_xdata())]


def rows(figure):
    return [text.get_text() for text in figure.axes[0].get_yticklabels()]


def test_tied_groups_show_both_kinds_and_s1(made, tmp_path):
    figure = figures.tied_groups_figure({
        "oo": made.history(credited=(0.0, 0.0)), "search_g1": made.history(seeds=3),
        "search_g1_lambda_04": made.history(correct=(0.0, 0.0)),
    })  # fmt: skip
    assert rows(figure)[1:] == ["Search-G1", "λ_g = 0.4"]
    shares, deviations, wrong, _ = figure.axes
    ours, nq, wiki = points(shares)
    assert [x for x, _ in ours] == pytest.approx([0, 2 / 3]) and [y for _, y in ours] == [0, 1]
    assert nq[0] == pytest.approx(((0.466 + 0.487) / 2, 1.25))
    assert wiki[0][0] == pytest.approx((0.918 + 0.924) / 2)
    assert points(deviations)[1][0][0] == pytest.approx((0.189 + 0.305) / 2)
    assert [x for x, _ in points(wrong)[0]] == pytest.approx([0, 0.25, 0])
    assert len(points(wrong)) == 1
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["ours", "S1, NQ", "S1, 2Wiki", "S1, both"]
    assert all(path.stat().st_size > 5000 for path in save_figure(figure, tmp_path / "tied"))


def test_one_seed_without_search_g1(made):
    figure = figures.tied_groups_figure({"oo": made.history()})
    assert not figure.legends and "one seed" in figure.get_supxlabel()
    assert len(points(figure.axes[0])) == 1


def test_behaviour_has_a_row_for_each_policy(made, tmp_path):
    summary = behaviour(made.grounded(), None, (), made.CONFIG)
    figure = figures.behaviour_figure(summary)
    assert rows(figure)[:3] == [
        "Prompted Search (base policy)", "Search-R1 (EM + direct bonus)", "Search-G1",
    ]  # fmt: skip
    assert len(rows(figure)) == 10
    em, tc, invariant, searches = (dict((y, x) for x, y in points(a)[0]) for a in figure.axes)
    assert em[2] == 5 / 8 and searches[2] == 2 and invariant[2] == 1 / 4
    assert tc[2] == pytest.approx(0.625) and searches[0] == 1
    assert all(path.stat().st_size > 5000 for path in save_figure(figure, tmp_path / "behaviour"))


def test_a_tiny_profile_and_nothing_at_all(made):
    summary = behaviour(made.grounded(("search_g1",)), None, (), made.CONFIG)
    assert len(rows(figures.behaviour_figure(summary))) == 2
    with pytest.raises(WorkbenchError, match="at least one row"):
        figures.behaviour_figure(summary.iloc[:0])
    with pytest.raises(WorkbenchError, match="at least one row"):
        figures.tied_groups_figure({})
