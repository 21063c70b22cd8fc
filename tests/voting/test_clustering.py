"""Cluster keys: App. M.6, the declared rule, and one article only."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.voting.clustering import DECLARED, normal_form


def test_the_eight_answers_of_app_m6(clustering_case):
    keys = {}
    for answer, letter in clustering_case:
        keys.setdefault(letter, set()).add(normal_form(answer))
    assert keys == {
        "A": {"toke makinwa"}, "B": {"lilly singh"}, "C": {"shannon lanier"}, "D": {"bhuvan bam"},
    }  # fmt: skip
    sizes = Counter(normal_form(answer) for answer, _ in clustering_case)
    assert sorted(sizes.values(), reverse=True) == [3, 3, 1, 1]


def test_the_declared_rule_alone_keeps_the_three_apart(clustering_case):
    sizes = Counter(normal_form(answer, DECLARED) for answer, _ in clustering_case)
    assert sizes == {
        "lilly singh": 3, "tóke makinwa": 1, "answer is toke makinwa": 1, "toke makinwa": 1,
        "shannon lanier": 1, "bhuvan bam": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ("The Beatles", "beatles"),
        ('"Beatles"', "beatles"),
        ('"The  Beatles".', "beatles"),
        ("the “Beatles”", "beatles"),
        ("**Beatles**", "beatles"),
        ("`Beatles`", "beatles"),
        ("The A Team", "a team"),
        ("A", "a"),
        ("The The", "the"),
        ("Theatre", "theatre"),
        ("rock'n'roll", "rock'n'roll"),
        ("?", "?"),
        ("C++", "c++"),
        ("Final answer: 1,234", "1,234"),
        ("The answer is: an apple.", "apple"),
        ("the answer", "answer"),
        ("São Tomé", "sao tome"),
        (" \t", ""),
    ],
)
def test_by_hand(answer, key):
    assert normal_form(answer) == key


@given(st.text(max_size=30))
def test_case_and_outer_space_never_matter(text):
    assert normal_form(f"  {text}\n") == normal_form(text)
    if text.isascii():
        assert normal_form(text.upper()) == normal_form(text)
    assert (normal_form(text) == "") == (not text.strip())
