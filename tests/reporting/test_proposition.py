"""The groups of the Proposition 1 section are what they are said to be, and it holds on them."""

import numpy as np
import pytest

from workbench.methods.shaping import Shaping
from workbench.reporting import proposition
from workbench.reporting.proposition import GROUPS, proposition_figure, proposition_table


@pytest.mark.parametrize("relation", GROUPS)
def test_groups_are_of_their_kind(relation):
    assert GROUPS[relation].parts(Shaping()).relation == relation


def test_all_cases_hold_with_the_papers_coefficients():
    table = proposition_table(Shaping()).readable()
    assert table["holds"].tolist() == ["yes"] * 5
    assert table["norm"].tolist() == ["2.000000 to 2.000000"] * 4 + ["undefined (0/0)"]


def test_the_collinear_group_turns_where_bonus_and_reliance_balance():
    """0.5 * 0.4 for a direct answer against 0.6 * 0.8 * γ for a searched one."""
    assert GROUPS["collinear"].parts(Shaping()).reversal == pytest.approx(0.2 / 0.48)
    shown = proposition_table(Shaping()).readable()
    assert "turns at γ = 0.417, where z is 0: True" in shown["measured"][2]


def test_a_case_that_does_not_hold_is_said_not_to(monkeypatch):
    """Another group in the place of one shows in its row; without a bonus nothing turns round."""
    table = proposition_table(Shaping(alpha_cb=0.0)).readable()
    assert "turns at γ = none" in table["measured"][2]
    swapped = {**GROUPS, "homogeneous": GROUPS["independent"]}
    monkeypatch.setattr(proposition, "GROUPS", swapped)
    shown = proposition_table(Shaping()).readable()
    assert shown["holds"].tolist() == ["yes", "no", "yes", "yes", "yes"]
    assert shown["u and v"][1] == "independent, expected homogeneous"


def test_the_figure_draws_every_rollout_over_all_gates():
    figure = proposition_figure(Shaping())
    assert len(figure.axes) == 4
    for axis, group in zip(figure.axes, GROUPS.values()):
        drawn = [line for line in axis.lines if len(line.get_xdata()) == len(proposition.GATES)]
        assert len(drawn) == len(group.d)
        sums = np.sum([line.get_ydata() for line in drawn], axis=0)
        assert np.allclose(sums, 0, atol=1e-6)
