"""BM25 against the formula written out, and the ways a term can be spelled."""

import math
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.retrieval.config import BM25Config, RetrievalConfig
from workbench.retrieval.sparse import BM25Index, build_bm25, fold_accents

PLAIN = BM25Config(k1=1.2, b=0.75, stopwords=None, stemmer=None)


def indexed(texts, folder, bm25=PLAIN, **settings_):
    config = RetrievalConfig(bm25=bm25, **settings_)
    build_bm25(texts, config, folder)
    return BM25Index(folder, config)


def formula(query, texts, k1=1.2, b=0.75):
    """Lucene's BM25 without its constant factor (k1 + 1): float64 [len(texts)]."""
    documents = [text.split() for text in texts]
    average = sum(map(len, documents)) / len(documents)
    scores = []
    for words in documents:
        counts, score = Counter(words), 0.0
        for term in query.split():
            df = sum(term in d for d in documents)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            tf = counts[term]
            score += idf * tf / (tf + k1 * (1 - b + b * len(words) / average))
        scores.append(score)
    return np.array(scores)


def test_three_documents_by_hand(tmp_path):
    index = indexed(["cat sat mat", "cat cat dog sat on", "bird"], tmp_path)
    [(rows, scores)] = index.search(["cat dog"], 3)
    # N 3, average length 3; idf(cat) = ln(1 + 1.5/2.5) = .470004, idf(dog) = ln(1 + 2.5/1.5)
    # = .980829. Row 0: .470004 / (1 + 1.2) = .213638. Row 1, length 5: norm 1.2 * 1.5 = 1.8;
    # .470004 * 2 / 3.8 + .980829 / 2.8 = .247371 + .350296 = .597667.
    assert rows.tolist() == [1, 0]
    assert scores == pytest.approx([0.597667, 0.213638], abs=2e-6)


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6).map(" ".join),
        min_size=1,
        max_size=12,
    ),
    query=st.lists(st.sampled_from("abcdefg"), max_size=4).map(" ".join),
    k=st.integers(1, 14),
)
def test_agrees_with_the_formula(texts, query, k, tmp_path_factory):
    index = indexed(texts, tmp_path_factory.mktemp("bm25"))
    [(rows, scores)] = index.search([query], k)
    wanted = formula(query, texts)
    assert len(rows) == min(k, (wanted > 0).sum())
    assert scores == pytest.approx(wanted[rows], rel=1e-5)
    assert scores == pytest.approx(np.sort(wanted)[::-1][: len(rows)], rel=1e-5)
    pairs = list(zip(-scores, rows, strict=True))
    assert pairs == sorted(pairs)


def test_repeated_query_terms_count_twice(tmp_path):
    index = indexed(["cat", "dog"], tmp_path)
    (_, once), (_, twice) = index.search(["cat", "cat cat"], 1)
    assert twice[0] == pytest.approx(2 * once[0])


def test_equal_scores_keep_row_order_at_the_cut(tmp_path):
    index = indexed(["x"] + ["cat"] * 40 + ["cat cat"], tmp_path)
    [(rows, _)] = index.search(["cat"], 4)
    assert rows.tolist() == [41, 1, 2, 3]


def test_unknown_words_find_nothing_even_beside_empty_documents(tmp_path):
    index = indexed(["...", "cat"], tmp_path)
    found = index.search(["zebra", "???", "zebra cat"], 3)
    assert [rows.tolist() for rows, _ in found] == [[], [], [1]]


def test_a_term_of_zero_weight_is_no_hit(tmp_path):
    atire = PLAIN.model_copy(update={"method": "atire"})  # idf = ln(N / df)
    index = indexed(["cat", "cat dog"], tmp_path, atire)
    found = index.search(["cat", "dog"], 3)
    assert [rows.tolist() for rows, _ in found] == [[], [1]]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Bogotá", "bogota"),
        ("São Tomé", unicodedata.normalize("NFD", "são")),
        ("official languages", "language"),
        ("5 provinces", "5"),
    ],
)
def test_spellings_that_meet(text, query, tmp_path):
    index = indexed([text, "other"], tmp_path, BM25Config())
    assert [r.tolist() for r, _ in index.search([query], 3)] == [[0]]


def test_settings_switch_stopwords_stemming_and_folding_off(tmp_path):
    off = BM25Config(stopwords=None, stemmer=None, fold_accents=False)
    index = indexed(["the languages", "Bogotá"], tmp_path / "off", off)
    found = index.search(["the", "language", "bogota", "bogotá"], 3)
    assert [r.tolist() for r, _ in found] == [[0], [], [], [1]]
    on = indexed(["the languages", "Bogotá"], tmp_path / "on", BM25Config())
    assert [r.tolist() for r, _ in on.search(["the", "language"], 3)] == [[], [0]]


def test_fold_accents_leaves_letters_without_accents():
    assert fold_accents("Łódź ß 東京 plain") == "Łodz ß 東京 plain"


def test_blocks_of_queries_give_the_same_hits(tmp_path, monkeypatch):
    texts = [f"cat w{i % 7}" for i in range(30)]
    index = indexed(texts, tmp_path)
    queries = ["cat", "w1 w2", "", "cat w3", "zebra", "w5"]
    whole = index.search(queries, 3)
    monkeypatch.setattr("workbench.retrieval.sparse._POSTINGS_PER_BLOCK", 10)
    # postings: cat 30, w1 5 or w2 and so on 4 or 5; "cat" alone is over the bound
    assert [len(b) for b in index._blocks([[0], [1, 2], [], [0, 3]])] == [1, 2, 1]
    for (rows, scores), (rows_, scores_) in zip(whole, index.search(queries, 3), strict=True):
        assert rows.tolist() == rows_.tolist()
        assert scores.tolist() == scores_.tolist()


def test_searching_new_words_leaves_the_index_as_it_was(tmp_path):
    index = indexed(["cat languages", "dog"], tmp_path, BM25Config())
    before = index.search(["cat"], 3)[0][1].tolist()
    index.search(["zebra unheard languages words"], 3)
    assert index.search(["cat"], 3)[0][1].tolist() == before
    assert index.search(["zebra"], 3)[0][0].tolist() == []


@pytest.mark.parametrize("bm25", [PLAIN, BM25Config()])
def test_memory_mapped_index_agrees(bm25, tmp_path):
    texts = [f"cat w{i % 7} w{i % 3}" for i in range(30)]
    loaded = indexed(texts, tmp_path, bm25)
    mapped = BM25Index(tmp_path, RetrievalConfig(bm25=bm25, memory_map=True))
    for (rows, scores), (rows_, scores_) in zip(
        loaded.search(["w1 cat", "w2"], 5), mapped.search(["w1 cat", "w2"], 5), strict=True
    ):
        assert rows.tolist() == rows_.tolist()
        assert scores.tolist() == scores_.tolist()


def test_two_builds_write_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        indexed(["cat sat", "on the mat"], tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


@pytest.mark.parametrize(
    ("bm25", "named"),
    [
        (BM25Config(stemmer="klingon"), "klingon"),
        (BM25Config(token_pattern="("), "token_pattern"),
        (BM25Config(token_pattern="never"), "no passage"),
    ],
)
def test_settings_that_cannot_work(bm25, named, tmp_path):
    with pytest.raises(WorkbenchError, match=named):
        indexed(["cat"], tmp_path, bm25)
