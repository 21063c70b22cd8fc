"""The dense index against a plain product and sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.retrieval.config import RetrievalConfig
from workbench.retrieval.dense import VECTORS, DenseIndex, build_dense

CONFIG = RetrievalConfig(encoder="minilm")


def unit(vectors):
    vectors = np.asarray(vectors, np.float64)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def index_of(table_encoder, tmp_path):
    def make(vectors, config=CONFIG):
        names = [f"t{i}" for i in range(len(vectors))]
        encoder = table_encoder(dict(zip(names, vectors, strict=True)))
        build_dense(names, encoder, tmp_path, progress=False)
        return DenseIndex(tmp_path, config, encoder)

    return make


def by_sorting(vectors, query, k):
    scores = (vectors.astype(np.float64) @ query.astype(np.float64)).round(6)
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:k]
    return order, scores[order]


@pytest.mark.parametrize("rows", [1, 2, 500])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_agrees_with_product_and_sort(rows, k, index_of):
    rng = np.random.default_rng(3)
    vectors, queries = unit(rng.normal(size=(rows, 8))), unit(rng.normal(size=(30, 8)))
    found = index_of(vectors).search_vectors(queries, k)
    assert len(found) == 30
    for (got, scores), query in zip(found, queries, strict=True):
        wanted, values = by_sorting(vectors, query, k)
        assert got.tolist() == wanted
        assert scores.tolist() == values.tolist()


@settings(max_examples=30, deadline=None)
@given(
    picks=st.lists(st.integers(0, 3), min_size=2, max_size=60).filter(lambda p: len(set(p)) > 1),
    k=st.integers(1, 20),
)
def test_many_equal_passages_come_in_row_order(picks, k, table_encoder, tmp_path_factory):
    base = unit(np.random.default_rng(5).normal(size=(4, 6)))
    names = [f"p{p}" for p in picks]
    encoder = table_encoder({f"p{p}": base[p] for p in range(4)})
    folder = tmp_path_factory.mktemp("ties")
    build_dense(names, encoder, folder, progress=False)
    found = DenseIndex(folder, CONFIG, encoder).search_vectors(base, k)
    for (rows, _), query in zip(found, base, strict=True):
        assert rows.tolist() == by_sorting(base[picks], query, k)[0]


def test_a_tie_wider_than_the_spare_candidates(index_of):
    # 60 cosines rise from .1 - 2.4e-7 by 8e-9: equal to 6 decimals, though to FAISS, which
    # offers k + 8 candidates at first, the last rows are the best
    cosines = 0.1 + 8e-9 * (np.arange(60) - 30)
    vectors = np.c_[cosines, np.sqrt(1 - cosines**2)].astype(np.float32)
    vectors = np.r_[vectors, unit([[-1.0, 0.0]])]
    [(rows, _)] = index_of(vectors).search_vectors(unit([[1.0, 0.0]]), 5)
    assert rows.tolist() == [0, 1, 2, 3, 4]


def test_scores_do_not_depend_on_the_size_of_the_batch(index_of):
    rng = np.random.default_rng(9)
    vectors, queries = unit(rng.normal(size=(300, 384))), unit(rng.normal(size=(64, 384)))
    index = index_of(vectors)
    together = index.search_vectors(queries, 5)
    for place, query in enumerate(queries):
        [(rows, scores)] = index.search_vectors(query[None], 5)
        assert rows.tolist() == together[place][0].tolist()
        assert scores.tolist() == together[place][1].tolist()


def test_memory_mapped_index_agrees(index_of, tmp_path):
    vectors = unit(np.random.default_rng(1).normal(size=(100, 8)))
    loaded = index_of(vectors)
    mapped = DenseIndex(tmp_path, RetrievalConfig(encoder="minilm", memory_map=True), None)
    for a, b in zip(
        loaded.search_vectors(vectors[:9], 3), mapped.search_vectors(vectors[:9], 3), strict=True
    ):
        assert a[0].tolist() == b[0].tolist() and a[1].tolist() == b[1].tolist()


def test_memory_map_reads_the_file_and_loading_copies_it_once(index_of, tmp_path):
    vectors = unit(np.random.default_rng(1).normal(size=(1000, 8)))
    loaded = index_of(vectors)
    mapped = DenseIndex(tmp_path, RetrievalConfig(encoder="minilm", memory_map=True), None)
    path = tmp_path / VECTORS
    with path.open("r+b") as file:  # the vectors are the end of the file
        file.seek(path.stat().st_size - vectors.nbytes)
        file.write(bytes(vectors.nbytes))
    assert mapped.search_vectors(vectors[:1], 1)[0][1].tolist() == [0.0]
    assert loaded.search_vectors(vectors[:1], 1)[0][1].tolist() == [1.0]
    assert not loaded._vectors.flags.owndata  # a view of FAISS's memory


def test_vectors_are_written_once_and_hold_no_leftover(index_of, tmp_path):
    index_of(unit(np.random.default_rng(1).normal(size=(20, 8))))
    assert [p.name for p in tmp_path.iterdir()] == [VECTORS]


def test_index_on_gpus_agrees_or_says_that_there_are_none(index_of, tmp_path):
    import faiss

    vectors = unit(np.random.default_rng(1).normal(size=(100, 8)))
    here = index_of(vectors)
    config = RetrievalConfig(encoder="minilm", index_device="gpu")
    if faiss.get_num_gpus() == 0:
        with pytest.raises(WorkbenchError, match="no GPU.*index_device: cpu"):
            DenseIndex(tmp_path, config, None)
    else:
        found = DenseIndex(tmp_path, config, None).search_vectors(vectors, 3)
        for a, b in zip(found, here.search_vectors(vectors, 3), strict=True):
            assert a[0].tolist() == b[0].tolist()


def test_an_encoder_that_tells_nothing_apart_is_refused(index_of):
    with pytest.raises(WorkbenchError, match="12 different texts the same vector"):
        index_of(np.tile(unit([[1.0, 2.0]]), (12, 1)))


def test_two_texts_that_differ_for_no_encoder_are_kept(index_of):
    [(rows, _)] = index_of(unit([[1.0, 2.0], [1.0, 2.0]])).search_vectors(unit([[1.0, 0.0]]), 3)
    assert rows.tolist() == [0, 1]


def test_vectors_of_another_length_are_refused(index_of):
    with pytest.raises(WorkbenchError, match="off 1 by"):
        index_of(np.array([[1.0, 1.0], [0.0, 1.0]], np.float32))


def test_encoder_and_index_of_different_dimension(index_of, table_encoder, tmp_path):
    index_of(unit([[1.0, 2.0], [2.0, 1.0]]))
    other = DenseIndex(tmp_path, CONFIG, table_encoder({"q": np.ones(3, np.float32)}))
    with pytest.raises(WorkbenchError, match="gives 3 numbers.*of 2"):
        other.search(["q"], 1)


def test_an_index_of_another_kind_is_refused(tmp_path):
    import faiss

    index = faiss.IndexFlatL2(4)
    index.add(np.eye(4, dtype=np.float32))
    faiss.write_index(index, str(tmp_path / VECTORS))
    with pytest.raises(WorkbenchError, match="inner-product index is needed"):
        DenseIndex(tmp_path, CONFIG, None)
