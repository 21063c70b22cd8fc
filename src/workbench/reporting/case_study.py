"""One question, several policies: what each said, read, and says of other documents (Figure A2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from ..agent.trajectory import Segment, Trajectory
from ..errors import WorkbenchError
from ..questions.graph import Item
from . import drawing as draw
from .style import WIDTH, display, style
from .tokens import SEGMENT_COLOURS

_WIDTH = 96  # characters of a line
_LINES = 3  # lines of an observation
_SHOWN = {
    Segment.REASONING: "think",
    Segment.QUERY: "search",
    Segment.OBSERVATION: "read",
    Segment.ANSWER: "answer",
}


@dataclass(frozen=True)
class Case:
    """One policy's rollout of the question, and what was found out about it.

    ``d`` and ``b`` are the readouts' scores (None: not read); ``deleted`` the answer without its
    observations (None: not asked); ``injected`` what the documents were made to say, ``replaced``
    the answer then and ``outcome`` its class ("" where documents were not replaced).
    """

    policy: str
    trajectory: Trajectory
    correct: bool
    d: float | None = None
    b: float | None = None
    deleted: str | None = None
    injected: str = ""
    replaced: str | None = None
    outcome: str = ""

    def found(self) -> list[str]:
        """Sentences below the rollout."""
        count = len(self.trajectory.searches)
        searches = "1 search" if count == 1 else f"{count} searches"
        scores = [f"{n} = {v:.2f}" for n, v in (("d", self.d), ("b", self.b)) if v is not None]
        lines = [f"{'right' if self.correct else 'wrong'}; {searches}"]
        if scores:
            lines[0] += "; readouts " + ", ".join(scores)
        if self.deleted is not None:
            lines.append(f"without its documents: {self.deleted or 'no answer'}")
        if self.outcome:
            said = self.replaced or "no answer"
            lines.append(f"documents say {self.injected}: {said} ({self.outcome})")
        return lines


def telling_question(frame: pd.DataFrame, conditions: Sequence[str]) -> str:
    """The question on which the policies differ most, by a rule that knows no favourite.

    ``frame``: greedy rows of one seed of each policy: item_id, condition, em, searches and
    outcome (``evaluation.grounding``).  First come questions with most kinds of behaviour (right
    or wrong, searched or not, outcome under replacement), among those the ones with the widest
    range of searches, then the lowest id.

    Raises
    ------
    WorkbenchError : no question that all of them were asked once.
    """
    rows = frame[frame["condition"].isin(conditions)]
    best: tuple[int, float, str] | None = None
    for name, own in rows.groupby("item_id"):
        if sorted(own["condition"]) != sorted(conditions):
            continue
        searched = own["searches"] > 0
        kinds = len(set(zip(own["em"] == 1, searched, own["outcome"])))
        rank = (-kinds, -float(own["searches"].max() - own["searches"].min()), str(name))
        best = min(best, rank) if best else rank
    if best is None:
        raise WorkbenchError(
            "no question was asked once of each policy",
            where=", ".join(conditions),
            fix="give the greedy rows of one seed of each",
        )
    return best[2]


def case_figure(item: Item, cases: Sequence[Case], tokenizer: object) -> Figure:
    """A panel for each policy, a line for each thing it did; observations are cut.

    Raises
    ------
    WorkbenchError : no case, or a rollout of another question.
    """
    if not cases or any(case.trajectory.item_id != item.item_id for case in cases):
        raise WorkbenchError(
            "a case study needs rollouts of one question", where=f"question {item.item_id}"
        )
    blocks = [_rows(case, tokenizer) for case in cases]
    heights = [1.6 + sum(len(lines) for _, lines in rows) for rows in blocks]
    with style():
        figure, axes = plt.subplots(
            len(cases), 1, figsize=(WIDTH, 0.9 + 0.165 * sum(heights)), height_ratios=heights,
            squeeze=False,
        )  # fmt: skip
        for axis, case, rows, height in zip(axes[:, 0], cases, blocks, heights):
            axis.set_axis_off()
            axis.set_xlim(0, 1)
            axis.set_ylim(height, 0)
            axis.text(0, 0.8, display(case.policy), fontsize=9, weight="bold", va="center")
            at = 1.6
            for segment, lines in rows:
                colour = SEGMENT_COLOURS.get(segment, "#ffffff")
                axis.axhspan(at + 0.06, at + len(lines) - 0.06, 0.0, 0.085, color=colour, lw=0)
                name = _SHOWN.get(segment, "found")
                axis.text(0.042, at + 0.5, name, fontsize=7.2, va="center", ha="center")
                for line in lines:
                    axis.text(0.1, at + 0.5, line, fontsize=7.2, va="center", family="DejaVu Sans")
                    at += 1
        question = "\n".join(wrap(f"{item.question}  (accepted: {', '.join(item.answers)})", 92))
        figure.suptitle(question.replace("$", r"\$"), fontsize=9, x=0.01, ha="left")
    return draw.finish(figure)


def _rows(case: Case, tokenizer: object) -> list[tuple[Segment | None, list[str]]]:
    trajectory, rows = case.trajectory, []
    codes = trajectory.segments.tolist()
    start = 0
    while start < len(codes):
        end = start
        while end < len(codes) and codes[end] == codes[start]:
            end += 1
        segment = Segment(codes[start])
        if segment in _SHOWN:
            text = " ".join(tokenizer.decode(trajectory.tokens[start:end].tolist()).split())
            lines = wrap(text.replace("$", r"\$"), _WIDTH) or [""]
            if segment == Segment.OBSERVATION and len(lines) > _LINES:
                lines = [*lines[: _LINES - 1], lines[_LINES - 1][: _WIDTH - 2] + " …"]
            rows.append((segment, lines))
        start = end
    rows.append((None, [line.replace("$", r"\$") for line in case.found()]))
    return rows


def cases_of(
    rows: pd.DataFrame,
    trajectories: Mapping[str, Trajectory],
    without: Mapping[str, str] = {},
    scores: Mapping[str, tuple[float | None, float]] = {},
) -> list[Case]:
    """Cases by condition: ``rows`` of the question (``telling_question``'s frame, with injected
    and replaced_answer), its ``trajectories``, answers ``without`` evidence, ``scores`` (d, b)."""
    cases = []
    for row in rows.to_dict("records"):
        name = row["condition"]
        d, b = scores.get(name, (None, None))
        classified = row["outcome"] in ("true", "amb", "hall")
        cases.append(
            Case(
                name, trajectories[name], row["em"] == 1, d, b, without.get(name),
                row["injected"], row["replaced_answer"], row["outcome"] if classified else "",
            )
        )  # fmt: skip
    return cases
