"""Template descriptions: they fit one entity and never name it."""

import json

import pytest

from workbench.questions.sources.descriptions import by_template, mentions, root_of
from workbench.questions.sources.wording import WORDED
from workbench.questions.sources.work import Work

BIRTH, STUDY = 19, 69


@pytest.fixture
def work(tmp_path):
    with Work(tmp_path / "work.sqlite") as opened:
        terms = {
            1: ("Ada Lorn", ["A. Lorn"], "countess of the north"), 2: ("Bathmer", [], "old town"),
            3: ("Celle School", [], ""), 4: ("Dan", [], "old town"), 5: ("human", [], ""),
            6: ("Eva", [], "first of the queens"), 7: ("Ada Lorn College", [], ""),
        }  # fmt: skip
        rows = [(q, label, json.dumps(a), d) for q, (label, a, d) in terms.items()]
        opened.db.executemany("INSERT INTO terms VALUES (?,?,?,?)", rows)
        yield opened


def _root(work, entity, facts):
    work.db.execute("DELETE FROM facts")
    work.db.executemany("INSERT INTO facts VALUES (?,?,?)", facts)
    return root_of(work, entity, WORDED)


def test_a_relation_that_no_other_has(work):
    root = _root(work, "Q1", [(1, 31, 5), (1, BIRTH, 2), (4, 31, 5)])
    assert by_template(work, root) == "the person born in Bathmer"


def test_two_relations_that_no_other_has_together(work):
    facts = [(1, 31, 5), (1, BIRTH, 2), (1, STUDY, 3), (4, BIRTH, 2), (6, STUDY, 3)]
    root = _root(work, "Q1", facts)
    assert by_template(work, root) in (
        "the person born in Bathmer and who attended Celle School",
        "the person who attended Celle School and born in Bathmer",
    )
    both = _root(work, "Q1", [*facts, (4, STUDY, 3)])
    assert by_template(work, both) == "the countess of the north"


def test_the_wikidata_description_if_it_is_the_only_one_and_does_not_name(work):
    assert by_template(work, _root(work, "Q6", [])) == "the first of the queens"
    assert by_template(work, _root(work, "Q4", [])) is None  # another old town
    assert by_template(work, _root(work, "Q1", [])) == "the countess of the north"
    work.db.execute("UPDATE terms SET description = 'A. Lorn of old' WHERE qid = 1")
    assert by_template(work, _root(work, "Q1", [])) is None


def test_a_relation_that_names_the_root_is_not_used(work):
    root = _root(work, "Q1", [(1, STUDY, 7)])
    assert root.traits == () and by_template(work, root) == "the countess of the north"


def test_without_what_mentions_an_answer(work):
    root = _root(work, "Q1", [(1, 31, 5), (1, BIRTH, 2)])
    less = root.without(["bathmer", "Nobody"])
    assert less.traits == () and less.text == root.text
    assert root.without(["Countess"]).text == ""
    assert root.without(["Bath"]) == root


def test_unknown_values_describe_nobody(work):
    assert _root(work, "Q4", [(4, BIRTH, -7)]).traits == ()


def test_mentions_are_whole_words_in_normal_form():
    assert mentions("The city of Bath, England", ["bath"])
    assert not mentions("Bathmer", ["Bath"]) and not mentions("x", ["the"])
