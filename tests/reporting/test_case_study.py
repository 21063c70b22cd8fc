"""The case study: which question it takes, and that everything said stands in the picture."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from workbench.agent.trajectory import Segment
from workbench.errors import WorkbenchError
from workbench.questions.graph import Item
from workbench.reporting.case_study import Case, case_figure, cases_of, telling_question

WORDS = {1: "Question", 2: "thinking", 3: "Mali capital", 4: "The capital is Bamako.", 5: "Bamako"}
ITEM = Item("q1", "What is the capital of Mali?", ("Bamako",), "1-hop, single", (), "test")


class Tokenizer:
    def decode(self, ids):
        return " ".join(WORDS[i] for i in ids)


def trajectory(item_id="q1", searches=1):
    codes = [Segment.PROMPT, Segment.REASONING]
    codes += [Segment.QUERY, Segment.OBSERVATION] * searches + [Segment.ANSWER]
    tokens = [1, 2] + [3, 4] * searches + [5]
    return SimpleNamespace(
        item_id=item_id, tokens=np.array(tokens), segments=np.array(codes, np.uint8),
        searches=[None] * searches,
    )  # fmt: skip


def rows(*entries):
    columns = ["item_id", "condition", "em", "searches", "outcome"]
    frame = pd.DataFrame(entries, columns=columns)
    return frame.assign(injected="Oslo", replaced_answer="Oslo")


def test_the_question_with_most_kinds_of_behaviour_is_taken():
    frame = rows(
        ("a", "base", 1, 1, "true"), ("a", "oo", 1, 2, "true"),  # one kind
        ("b", "base", 1, 1, "true"), ("b", "oo", 1, 0, "direct"),  # two, one search apart
        ("c", "base", 1, 3, "true"), ("c", "oo", 0, 1, "not correct"),  # two, two apart
        ("d", "base", 1, 3, "true"),  # not asked of both
    )  # fmt: skip
    assert telling_question(frame, ["base", "oo"]) == "c"
    assert telling_question(frame[frame["item_id"] != "c"], ["base", "oo"]) == "b"
    with pytest.raises(WorkbenchError, match="asked once of each"):
        telling_question(frame[frame["item_id"] == "d"], ["base", "oo"])


def test_everything_said_stands_in_the_picture():
    frame = rows(("q1", "base", 1, 1, "true"), ("q1", "oo", 1, 0, "direct"))
    said = {"base": trajectory(), "oo": trajectory(searches=0)}
    cases = cases_of(frame, said, {"base": "Accra"}, {"base": (0.75, 0.125)})
    figure = case_figure(ITEM, cases, Tokenizer())
    texts = [[t.get_text() for t in axis.texts] for axis in figure.axes]
    assert texts[0] == [
        "base policy", "think", "thinking", "search", "Mali capital", "read",
        "The capital is Bamako.", "answer", "Bamako", "found",
        "right; 1 search; readouts d = 0.75, b = 0.12", "without its documents: Accra",
        "documents say Oslo: Oslo (true)",
    ]  # fmt: skip
    assert texts[1][-1] == "right; 0 searches" and "search" not in texts[1]
    assert "accepted: Bamako" in figure.get_suptitle()


def test_a_rollout_of_another_question_is_refused():
    with pytest.raises(WorkbenchError, match="rollouts of one question"):
        case_figure(ITEM, [Case("base", trajectory("q2"), True)], Tokenizer())
    with pytest.raises(WorkbenchError, match="rollouts of one question"):
        case_figure(ITEM, [], Tokenizer())
