"""Token sets of S2 App. A and the RGV weight, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.voting.overlap import (
    OverlapConfig,
    document_tokens,
    prose_recall,
    rgv_weight,
)
from workbench.voting.stopwords import STOPWORDS
from workbench.voting.tokens import token_set


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The capital of Mali is Bamako.", {"capital", "mali", "bamako"}),
        ("ＢＡＭＡＫＯ ﬁnal", {"bamako", "final"}),
        ("## **Tóke Makinwa** is `listed`", {"tóke", "makinwa", "listed"}),
        ("see [docid 118](https://a.org/x?y=1) and www.b.org/z.", {"see", "docid", "118"}),
        ('```json\n{"city": "Bamako", "n": 1960}\n```', {"city", "bamako", "1960"}),
        ('the [Mali page](ml.html "title") here', {"mali", "page"}),
        ("| Capital|Bamako |\n|---|---|", {"capital", "bamako"}),
        ("a I x 5 -- ... $ ( )", set()),
        ("1,234 (U.S.) runs run snake_case", {"1,234", "u.s", "runs", "run", "snake_case"}),
        ("", set()),
    ],
)  # fmt: skip
def test_token_sets_by_hand(text, tokens):
    assert token_set(text) == tokens


def test_size_and_form_of_the_stopword_list():
    assert 120 <= len(STOPWORDS) <= 140
    assert all(word == word.lower() and word.isalpha() for word in STOPWORDS)
    assert {"the", "of", "and", "is", "not", "which"} <= STOPWORDS
    assert not {"may", "bamako", "capital", "first"} & STOPWORDS


@given(st.text(max_size=60))
def test_tokens_are_long_enough_and_no_stopwords(text):
    assert all(len(t) >= 2 and t not in STOPWORDS and t.strip("_")[:1] for t in token_set(text))
    assert token_set(f"{text}\n{text}") == token_set(text)


def test_recall_is_per_document_and_on_the_side_of_the_prose():
    prose = frozenset({"gross", "domestic", "product", "cotton"})
    documents = [frozenset({"cotton"}), frozenset({"gross", "domestic", "cotton"}) | STOPWORDS]
    assert prose_recall(prose, documents).tolist() == [0.25, 0.75]
    assert prose_recall(frozenset(), documents).tolist() == [0.0, 0.0]
    assert prose_recall(prose, []).tolist() == []


def test_one_document_per_search_call_titles_included(make_rollout):
    rollout = make_rollout(
        answer="Bamako Mali Niger",
        searches=[[("Mali", "The capital is Bamako."), ("Chad", "Sand")], [("Niger", "River")], []],
    )
    calls = [{"mali", "capital", "bamako", "chad", "sand"}, {"niger", "river"}]
    assert [set(d) for d in document_tokens(rollout)] == calls
    assert rgv_weight(rollout) == pytest.approx(2 / 3), "the best call, not the union of calls"
    passages = OverlapConfig(document="passage")
    assert len(document_tokens(rollout, passages)) == 3
    assert rgv_weight(rollout, OverlapConfig(titles=False)) == pytest.approx(1 / 3)
    assert rgv_weight(make_rollout(answer="Bamako Sand", searches=rollout_hits()), passages) == 0.5


def rollout_hits():
    return [[("Mali", "The capital is Bamako."), ("Chad", "Sand")]]


def test_no_prose_no_documents_no_valid_answer_weigh_nothing(make_rollout):
    hits = [[("Mali", "Bamako")]]
    assert rgv_weight(make_rollout(searches=hits)) == 1.0
    assert rgv_weight(make_rollout(answer=None, searches=hits)) == 0.0
    assert rgv_weight(make_rollout(answer="of the", searches=hits)) == 0.0
    assert rgv_weight(make_rollout()) == 0.0
    assert rgv_weight(make_rollout(valid=False, searches=hits)) == 0.0
