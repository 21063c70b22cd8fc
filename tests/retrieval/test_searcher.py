"""Searching in batches: what a query finds depends on the query alone."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.retrieval import RetrievalConfig, build_index, load_searcher
from workbench.retrieval.searcher import Searcher

QUERIES = ["capital of Mali", "copper exports", "languages", "", "  ", "zebra", "Norway", "Mali"]


@pytest.fixture(scope="module", params=["bm25", "e5"])
def searcher(request, e5_folder, corpus, tmp_path_factory):
    encoder = "bm25" if request.param == "bm25" else str(e5_folder)
    config = RetrievalConfig(encoder=encoder)
    folder = build_index(corpus, config, tmp_path_factory.mktemp("index") / "index")
    return load_searcher(folder, corpus, config)


@pytest.fixture(scope="module")
def minilm(corpus, tmp_path_factory):
    config = RetrievalConfig(encoder="minilm")
    folder = build_index(corpus, config, tmp_path_factory.mktemp("index") / "index")
    return load_searcher(folder, corpus, config)


@settings(max_examples=30, deadline=None)
@given(batch=st.lists(st.sampled_from(QUERIES), max_size=12), data=st.data())
def test_hits_depend_on_neither_order_nor_repetition(searcher, batch, data):
    hits = searcher.search(batch)
    by_query = dict(zip(batch, hits, strict=True))
    assert [by_query[q] for q in batch] == hits
    again = data.draw(st.permutations(batch)) + batch[:2]
    assert searcher.search(again) == [by_query[q] for q in again]


def test_top_3_and_k(searcher):
    [hits], [more], [one] = (
        searcher.search(["capital languages exports"], k) for k in (None, 99, 1)
    )
    assert len(hits) == 3 and len(more) == 6 and one == hits[:1] and hits == more[:3]
    assert [h.score for h in more] == sorted((h.score for h in more), reverse=True)
    assert isinstance(hits[0].score, float)


def test_blank_queries_inside_a_batch(searcher):
    hits = searcher.search(["", "Mali", " \n\t ", "Mali "])
    assert [bool(h) for h in hits] == [False, True, False, True]
    assert hits[1] == hits[3]
    assert searcher.search([]) == [] and searcher.search([" "]) == [[]]


def test_lone_surrogates_and_long_queries_are_survived(searcher):
    hits = searcher.search(["Mali \ud800", "Mali " * 3000, "\x00", "Mali"])
    assert len(hits) == 4 and hits[0] and hits[1] and hits[3]


def test_the_hits_of_equal_queries_are_not_one_list(searcher):
    first, second = searcher.search(["Mali", "Mali"])
    first.clear()
    assert second


@pytest.mark.parametrize(
    ("queries", "k", "named"),
    [
        ("capital", None, "one string"),
        (["a", None], None, "query 1 is a NoneType"),
        (["a"], 0, "positive"),
        (["a"], 2.5, "positive"),
    ],
)
def test_wrong_arguments(searcher, queries, k, named):
    with pytest.raises(WorkbenchError, match=named):
        searcher.search(queries, k)


def test_equal_queries_reach_the_index_once(corpus):
    class Counting:
        seen: list = []

        def search(self, queries, k):
            import numpy as np

            self.seen.append(list(queries))
            return [(np.array([2]), np.array([1.0]))] * len(queries)

    index = Counting()
    hits = Searcher(corpus.chunks, index).search(["b", "a", "b ", "", "a"])
    assert index.seen == [["a", "b"]]
    assert [[h.chunk.title for h in hs] for hs in hits] == [["Kenya"]] * 3 + [[]] + [["Kenya"]]


@pytest.mark.parametrize(
    ("query", "title"),
    [("capital of Mali", "Mali"), ("Norwegian language", "Norway"), ("cobalt exporter", "Zambia")],
)
def test_each_query_finds_its_own_passage(query, title, corpus, minilm, tmp_path):
    config = RetrievalConfig()
    bm25 = load_searcher(build_index(corpus, config, tmp_path / "i"), corpus, config)
    for searcher in (bm25, minilm):
        assert searcher.search([query])[0][0].chunk.title == title


def test_the_title_is_searched_too(searcher, corpus_of, tmp_path):
    config = RetrievalConfig()
    other = corpus_of([("Fiji", "sugar"), ("Cuba", "nickel")])
    found = load_searcher(build_index(other, config, tmp_path / "i"), other, config)
    assert [h.chunk.title for h in found.search(["cuba"])[0]] == ["Cuba"]


def test_importing_retrieval_loads_no_heavy_library():
    code = (
        "import sys, workbench.retrieval; "
        "print([m for m in ('torch', 'transformers', 'faiss', 'bm25s', 'scipy') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
