"""The page of the case study: all of a rollout stands on it, and markup stays text."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from workbench.errors import WorkbenchError
from workbench.questions.graph import Item
from workbench.reporting.case_page import case_page, save_case_page
from workbench.reporting.case_study import Case

ITEM = Item("told", "Who <i>?", ("x & y",), "1-hop, single", (), "test")


class Tokenizer:
    """Token n is "w<n>", so that what stands on the page can be counted; 4 is a tag."""

    def decode(self, ids):
        return " ".join("</think>" if i == 4 else f"w{i}" for i in ids)


@pytest.fixture(scope="module")
def cases(small):
    one = replace(small.CORPUS["p0#1.0"], title="<b>Page</b>", text="It says $5 & more.")
    made = small.searched(small.Searched((one,), cut=True), answer="x & y", item_id="told")
    direct = small.searched(answer="z", item_id="told")
    return [
        Case("base", made, True, 0.5, 0.25, "q", "<Oslo>", "<Oslo>", "true"),
        Case("search_g1", direct, False),
    ]


class Balanced(HTMLParser):
    """Opened elements that are not closed yet; all visible text."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if "style" not in self.open else ""


def read(page):
    parser = Balanced()
    parser.feed(page)
    assert not parser.open
    return " ".join(parser.text.split())


def test_all_that_was_generated_and_found_is_there(cases):
    text = read(case_page(ITEM, cases, Tokenizer(), "chosen by rule"))
    assert "Who <i>?" in text and "Accepted: x & y. chosen by rule" in text
    first, second = text.split("base policy")[1].split("Search-G1")
    for case, part in zip(cases, (first, second)):
        generated = case.trajectory.tokens[case.trajectory.generated].tolist()
        shown = [int(n) for n in re.findall(r"w(\d+)", part)]
        assert shown == [n for n in generated if n != 4]
        assert all(line in part for line in case.found())
    assert "</think>" in first and "read 1 passages, cut<b>Page</b>: It says $5 & more." in first
    assert "documents say <Oslo>: <Oslo> (true)" in first and "passages" not in second


def test_it_is_written_whole(cases, tmp_path):
    path = save_case_page(tmp_path / "made" / "case.html", ITEM, cases, Tokenizer())
    assert path.read_text() == case_page(ITEM, cases, Tokenizer())
    assert [p.name for p in path.parent.iterdir()] == ["case.html"]


def test_a_rollout_of_another_question_is_refused(cases):
    for wrong in ([], [replace(cases[0], trajectory=replace(cases[0].trajectory, item_id="o"))]):
        with pytest.raises(WorkbenchError, match="rollouts of one question"):
            case_page(ITEM, wrong, Tokenizer())
