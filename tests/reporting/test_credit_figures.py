"""Figures of the retrieval-credit study: what stands where, with all conditions or with two."""

import numpy as np
import pandas as pd
import pytest

from workbench.errors import WorkbenchError
from workbench.evaluation.credit_study import CONDITIONS
from workbench.reporting import credit_figures as figures
from workbench.reporting.style import save_figure


def marks(axis):
    """(x, y, hollow) of every point of an axis."""
    found = []
    for container in axis.containers:
        if hasattr(container, "lines"):
            line = container.lines[0]
            hollow = line.get_markerfacecolor() == "white"
            found += [(float(x), float(y), hollow) for x, y in zip(*line.get_data())]
    return found


def rows_of(axis):
    return [t.get_text() for t in axis.get_yticklabels()]


def test_figure_2_shows_every_gain_in_three_groups(credit):
    figure = figures.gains_figure(credit.contrasts())
    assert [a.get_title().split("\n")[0] for a in figure.axes] == ["multi-hop", "single-hop", "all"]
    assert rows_of(figure.axes[0])[3] == "Cov-local" and len(rows_of(figure.axes[0])) == 12
    drawn = marks(figure.axes[0])
    ours = sorted(x for x, _, hollow in drawn if not hollow)
    assert ours == pytest.approx(sorted(v for v in credit.LIFT.values() if v))
    theirs = {round(y): x for x, y, hollow in drawn if hollow}
    assert theirs[3] == pytest.approx(0.0481)
    assert theirs[CONDITIONS.index("am_permute") - 1] == pytest.approx(-0.0168)


def test_figure_3_has_a_panel_for_each_question_that_was_asked(credit):
    figure = figures.contrasts_figure(credit.contrasts())
    assert [a.get_title(loc="left")[0] for a in figure.axes] == ["a", "b", "c"]
    assert [len(rows_of(a)) for a in figure.axes] == [5, 2, 4]
    assert rows_of(figure.axes[1]) == ["Cov-local - Cov-permute", "AM-local - AM-permute"]
    hollow = [x for x, _, theirs in marks(figure.axes[1]) if theirs]
    assert hollow == pytest.approx([0.0212, 0.0312])
    two = credit.contrasts(("oo", "cov_local", "cov_permute"))
    assert len(figures.contrasts_figure(two).axes) == 1


def test_scores_have_a_row_per_condition(credit):
    figure = figures.scores_by_rule(credit.scores())
    assert rows_of(figure.axes[0])[0] == "outcome only (F1)" and len(rows_of(figure.axes[0])) == 13


@pytest.fixture
def histogram(credit):
    shares = {"oo": (0.5, 0.3, 0.2), "cov_local": (0.3, 0.3, 0.4)}
    return credit.intervals(
        {"condition": c, "level": level, "value": v}
        for c, values in shares.items()
        for level, v in zip((0.0, 0.3333, 1.0), values)
    )


def test_figure_4_puts_published_shares_beside_bars(histogram):
    (axis,) = figures.coverage_figure(histogram, ["oo", "cov_local", "am_local"]).axes
    heights = [bar.get_height() for bar in axis.patches]
    assert heights == pytest.approx([0.5, 0.3, 0.2, 0.3, 0.3, 0.4])
    labels = [t.get_text() for t in axis.get_xticklabels()]
    assert labels == ["0", "1/3", "1"]
    theirs = sorted(y for _, y, hollow in marks(axis) if hollow)
    assert theirs == pytest.approx(sorted(n / 1200 for n in (616, 142, 551, 167)))


def test_figure_5_states_the_number_of_questions_at_each_level(histogram):
    scores = histogram.assign(n=[7, 5, 3, 6, 4, 2]).drop(index=1)
    (axis,) = figures.score_by_coverage_figure(scores, ["oo", "cov_local"]).axes
    labels = [t.get_text() for t in axis.get_xticklabels()]
    assert labels == ["0\n7 / 6", "1/3\n0 / 4", "1\n3 / 2"]
    assert not [m for m in marks(axis) if m[2]]


def test_evidence_of_every_condition(credit):
    metrics = ("cov", "no_evidence", "all_evidence", "searches")
    summary = credit.intervals(
        {"condition": c, "metric": m, "value": 0.5} for c in ("base", *CONDITIONS) for m in metrics
    )
    figure = figures.evidence_rows(summary)
    assert len(figure.axes) == 4 and len(rows_of(figure.axes[0])) == 14


def test_differences_whose_interval_excludes_zero_are_bold(credit):
    frame = credit.contrasts(by="question_set", levels=("1-hop, single", "all"))
    axis = figures.by_set_figure(frame).axes[0]
    texts = {(round(t.get_position()[1] - 0.5), t.get_text()): t for t in axis.texts}
    assert len(axis.texts) == 24
    assert texts[(0, "+0.01")].get_weight() == "normal"
    assert texts[(11, "+0.12")].get_weight() == "bold"
    assert [t.get_text() for t in axis.get_xticklabels()] == ["1-hop single (120)", "all (120)"]


def test_frames_without_rows_are_refused(credit, histogram):
    empty = credit.contrasts().iloc[:0]
    for draw in (figures.gains_figure, figures.contrasts_figure):
        with pytest.raises(WorkbenchError, match="at least one row"):
            draw(empty)
    with pytest.raises(WorkbenchError, match="at least one row"):
        figures.coverage_figure(histogram, ["am_local"])


def test_an_interval_that_is_missing_leaves_a_point(credit):
    frame = credit.contrasts().assign(low=np.nan, high=np.nan)
    assert len(marks(figures.gains_figure(frame).axes[0])) == 24
    by_set = credit.contrasts(by="question_set", levels=("all",)).assign(low=np.nan, high=np.nan)
    weights = {t.get_weight() for t in figures.by_set_figure(by_set).axes[0].texts}
    assert weights == {"normal"}


def test_equal_frames_are_equal_files(credit, tmp_path):
    for name in ("one", "two"):
        save_figure(figures.contrasts_figure(pd.DataFrame(credit.contrasts())), tmp_path / name)
    for ending in ("png", "svg"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (
            tmp_path / f"two.{ending}"
        ).read_bytes()
