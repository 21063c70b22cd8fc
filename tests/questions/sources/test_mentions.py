"""Sentences and names in a paragraph."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.questions.sources.mentions import find_names, merged, sentences


def _split(text, protected=()):
    return [text[a:b] for a, b in sentences(text, protected)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is here. Two is there.\n", ["One is here.", "Two is there."]),
        ("He came! Did he? “Yes.” Then he left.",
         ["He came!", "Did he?", "“Yes.”", "Then he left."]),
        ("Dr. Ann Lee met J. R. Smith in St. Ives.", ["Dr. Ann Lee met J. R. Smith in St. Ives."]),
        ("The U.S. Army came. It left.", ["The U.S. Army came.", "It left."]),
        ("It grew in c. 1900. In 1901 it fell.", ["It grew in c. 1900.", "In 1901 it fell."]),
        ("It rose by 3.5 percent. so it went on", ["It rose by 3.5 percent. so it went on"]),
        ("She died. Émile wept.", ["She died.", "Émile wept."]),
        ("no end", ["no end"]),
        (" \n", []),
    ],
)  # fmt: skip
def test_sentences(text, expected):
    assert _split(text) == expected


def test_a_link_is_not_cut():
    text = "They saw Who Is It? The Film. Then they slept."
    at = text.index("Who"), text.index(". Then")
    assert _split(text, [at]) == ["They saw Who Is It? The Film.", "Then they slept."]
    assert len(_split(text)) == 3


@given(st.text(alphabet='aB1.!? \n"(', max_size=60))
def test_sentences_hold_everything_in_order(text):
    spans = sentences(text)
    assert all(a < b for a, b in spans)
    assert all(b <= c for (_, b), (c, _) in zip(spans, spans[1:]))
    assert "".join(text[a:b] for a, b in spans).replace(" ", "").replace("\n", "") == text.replace(
        " ", ""
    ).replace("\n", "")


def test_names_as_written_on_word_boundaries_longest_first():
    text = "New York City lies in New York; Newark and York's yorkers do not. York?"
    names = ["York", "New York", "New York City", "C", "Absent"]
    assert [text[a:b] for a, b in find_names(text, names)] == [
        "New York City", "New York", "York", "York",
    ]  # fmt: skip
    assert find_names(text, []) == [] and find_names("", ["a b"]) == []
    assert find_names("C. (C++) is C", ["C++"]) == [(4, 7)]


def test_merged_drops_what_lies_inside_another():
    assert merged([(5, 9), (0, 4), (5, 12), (0, 4), (6, 8)]) == ((0, 4), (5, 12))
    assert merged([(0, 5), (3, 8)]) == ((0, 5), (3, 8))
    assert merged([]) == ()
