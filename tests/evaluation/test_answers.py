"""Answer scoring: the handed cases row by row, and properties of the three scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.evaluation import exact_match, f1_score, inclusion, normalise_answer

WORDS = st.lists(
    st.sampled_from(["rome", "the", "Oslo", "a", "new", "york", "yes", "no", "3.5", "–", "An"]),
    max_size=6,
).map(" ".join)
GOLD = WORDS.filter(str.strip)


@pytest.mark.parametrize(
    ("gold", "prediction", "em", "f1"),
    [
        ("1914–1918", "1914-1918", 0, 0),
        ("May 18, 2018", "18 May 2018", 0, 1),
        ("yes", "yes it is", 0, 0),
        ("yes it is", "yes", 0, 0),
        ("noanswer", "noanswer given", 0, 0),
        ("$5 million", "5 million", 1, 1),
        ("3.5", "35", 1, 1),
        ("Spice Girls and Bananarama", "the Spice Girls and Bananarama", 1, 1),
        ("no", "Nolan Ryan", 0, 0),
        ("Los Angeles", "city of Los Angeles", 0, 2 * 2 / (4 + 2)),
        ("new york new york", "new york", 0, 2 * 2 / (2 + 4)),
        ("The The", "the", 1, 1),
    ],
)
def test_handed_and_hand_computed(gold, prediction, em, f1):
    assert exact_match(prediction, [gold]) == em
    assert f1_score(prediction, [gold]) == pytest.approx(f1)


def test_articles_are_words_never_letters_inside_words():
    assert normalise_answer("Theatre of Anatolia, a saga") == "theatre of anatolia saga"
    assert normalise_answer("  The   Banana\tand an Apple ") == "banana and apple"


def test_only_ascii_punctuation_is_deleted():
    assert normalise_answer("1914–1918 “x” it's") == "1914–1918 “x” its"


@pytest.mark.parametrize(
    ("gold", "prediction", "value"),
    [
        ("no", "Nolan Ryan", 0),
        ("no", "I say no.", 1),
        ("Rome", "It is Rome, Italy", 1),
        ("Rome", "Romeo", 0),
        ("no", "a casino", 0),
        ("1914", "from 1914–1918", 1),
        ("New York", "new Yorkers", 0),
        ("The The", "anything at all", 0),
        ("C++", "Objective C", 1),
    ],
)
def test_inclusion_on_word_boundaries(gold, prediction, value):
    assert inclusion(prediction, [gold]) == value


def test_maximum_over_answers_and_bare_string():
    assert exact_match("Bamako", ["Mali", "Bamako"]) == 1.0
    assert f1_score("Ho Chi", ["Hanoi", "Ho Chi Minh"]) == pytest.approx(0.8)
    assert exact_match("R", "Rome") == 0.0, "a bare string is one answer, not its letters"
    assert exact_match("rome", "Rome") == 1.0


def test_missing_prediction_scores_zero():
    for score in (exact_match, f1_score, inclusion):
        assert score(None, ["The The"]) == 0.0
        assert score("", ["Rome"]) == 0.0


@pytest.mark.parametrize("answers", [[], [""], ["  "], "", ()])
@pytest.mark.parametrize("prediction", ["Rome", None])
def test_question_without_answer_is_refused(answers, prediction):
    for score in (exact_match, f1_score, inclusion):
        with pytest.raises(WorkbenchError, match="no accepted answer"):
            score(prediction, answers)


def test_answer_that_is_not_text_is_refused():
    with pytest.raises(WorkbenchError, match="1914"):
        exact_match("1914", [1914])


@given(WORDS, GOLD)
def test_order_of_the_scores(prediction, gold):
    em, f1, inc = (s(prediction, [gold]) for s in (exact_match, f1_score, inclusion))
    assert em <= f1 and em <= inc
    assert 0.0 <= f1 <= 1.0


@given(GOLD, GOLD)
def test_f1_is_symmetric_and_ignores_order(left, right):
    forward = f1_score(left, [right])
    assert forward == pytest.approx(f1_score(right, [left]))
    guarded = {"yes", "no", "noanswer"} & {normalise_answer(left), normalise_answer(right)}
    if not guarded:
        assert forward == pytest.approx(f1_score(" ".join(reversed(left.split())), [right]))


@given(WORDS)
def test_normal_form_of_plain_words_is_a_fixed_point(text):
    assert normalise_answer(normalise_answer(text)) == normalise_answer(text)
