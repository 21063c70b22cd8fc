"""Controls of the reliance readout: by hand, and what they must not be able to tell."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.agent.trajectory import Segment
from workbench.readouts.controls import (
    control_scores,
    lexical_overlap,
    matched_rows,
    shortcuts,
    shuffled_labels,
)
from workbench.readouts.metrics import auc
from workbench.readouts.selection import SelectionConfig


def _said(trajectory, answer, *texts):
    record = replace(
        trajectory.searches[0], titles=["Mali"], texts=list(texts), observation_span=(0, 5)
    )
    return replace(trajectory, answer=answer, searches=[record])


def test_overlap_by_hand(make_trajectory):
    t = make_trajectory(0, 1)
    assert lexical_overlap(_said(t, "Bamako", "Capital: Bamako")) == 1.0
    assert lexical_overlap(_said(t, "the old Bamako", "Capital: Bamako")) == 0.5  # "the" is none
    assert lexical_overlap(_said(t, "Mali", "nothing")) == 1.0  # titles count
    assert lexical_overlap(_said(t, "Dakar", "Capital: Bamako")) == 0.0


def test_shortcuts_by_hand(make_trajectory):
    t = _said(make_trajectory(0, 1), "Dakar", "Capital: Bamako")
    start, end = t.answer_span
    logprobs = t.logprobs.copy()
    logprobs[start:end] = -1.0, -3.0
    found = {k: v[0] for k, v in shortcuts([replace(t, logprobs=logprobs)]).items()}
    generated = int(sum(s not in (Segment.PROMPT, Segment.OBSERVATION) for s in t.segments))
    assert found == {
        "search count": 1, "response length": generated, "retrieved tokens": 5,
        "answer-evidence overlap": 0, "answer log-prob, mean": -2, "answer log-prob, least": -3,
        "response log-prob, mean": pytest.approx(-4 / generated),
    }  # fmt: skip


def test_a_control_learns_its_direction():
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.5
    questions = [f"q{i // 2}" for i in range(200)]
    against = rng.normal(size=200) - 2.0 * labels  # the lower, the likelier
    scores = control_scores(against, labels, questions, SelectionConfig())
    assert auc(labels, scores) > 0.85
    noise = control_scores(rng.normal(size=200), labels, questions, SelectionConfig())
    assert 0.3 < auc(labels, noise) < 0.7


def test_shuffled_labels_keep_their_number():
    labels = np.arange(50) < 20
    mixed = shuffled_labels(labels, ["q"] * 50, 0)
    assert mixed.sum() == 20 and (mixed != labels).any()
    assert np.array_equal(mixed, shuffled_labels(labels, ["q"] * 50, 0))


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=0, max_size=30))
def test_matched_rows_balance_every_cell(make_trajectory, cases):
    rollouts = [make_trajectory(q, n) for q, (n, _) in enumerate(cases)]
    labels = np.array([label for _, label in cases], dtype=bool)
    rows = matched_rows(rollouts, labels)
    assert len(set(rows.tolist())) == len(rows)
    for count in {len(t.searches) for t in rollouts}:
        own = [r for r in rows if len(rollouts[r].searches) == count]
        assert sum(labels[own]) * 2 == len(own)
