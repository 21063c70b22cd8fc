"""An index folder is whole, and belongs to its corpus, or is refused."""

import json
import shutil

import numpy as np
import pytest

from workbench.corpus.store import Corpus
from workbench.errors import WorkbenchError
from workbench.retrieval import BM25Config, RetrievalConfig, build_index, load_searcher
from workbench.retrieval.dense import VECTORS


@pytest.fixture(params=["bm25", "e5"])
def config(request, e5_folder):
    return RetrievalConfig(encoder="bm25" if request.param == "bm25" else str(e5_folder))


@pytest.fixture
def folder(config, corpus, tmp_path):
    return build_index(corpus, config, tmp_path / "index")


def edit_meta(folder, **changes):
    path = folder / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_round_trip_and_meta(folder, config, corpus, tmp_path):
    searcher = load_searcher(folder, corpus, config)
    [hits] = searcher.search(["Exports copper"], k=2)
    assert len(hits) == 2 and hits[0].score >= hits[1].score
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["schema_version"] == 1
    assert meta["encoder"] == config.encoder
    assert meta["corpus_sha256"] == corpus.sha256
    assert meta["rows"] == 6
    assert meta["dimension"] > 0
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


def test_building_again_replaces_the_index(folder, config, corpus_of):
    other = corpus_of([("Fiji", "Exports: sugar"), ("Cuba", "Exports: nickel")])
    build_index(other, config, folder)
    [hits] = load_searcher(folder, other, config).search(["sugar nickel exports"], 6)
    assert {h.chunk.title for h in hits} == {"Fiji", "Cuba"}


def test_other_content_is_refused_with_both_hashes(folder, config, corpus, corpus_of):
    pairs = [(c.title, c.text) for c in corpus.chunks]
    other = corpus_of([*pairs[:-1], ("Peru", "something else")])
    with pytest.raises(WorkbenchError, match="does not belong here") as raised:
        load_searcher(folder, other, config)
    assert corpus.sha256 in str(raised.value) and other.sha256 in str(raised.value)


def test_a_reordered_corpus_is_refused(folder, config, corpus, corpus_of):
    pairs = [(c.title, c.text) for c in corpus.chunks]
    with pytest.raises(WorkbenchError, match="corpus_sha256"):
        load_searcher(folder, corpus_of(pairs[::-1]), config)


def test_another_row_count_is_refused_with_both_numbers(folder, config, corpus):
    fewer = Corpus(corpus.chunks[:4], corpus.sha256)
    with pytest.raises(WorkbenchError, match="rows: index 6, here 4"):
        load_searcher(folder, fewer, config)


def test_more_vectors_than_rows_are_refused(e5_folder, corpus, tmp_path):
    import faiss

    config = RetrievalConfig(encoder=str(e5_folder))
    folder = build_index(corpus, config, tmp_path / "index")
    index = faiss.read_index(str(folder / VECTORS))
    index.add(np.eye(16, dtype=np.float32)[:5])
    faiss.write_index(index, str(folder / VECTORS))
    with pytest.raises(WorkbenchError, match="holds 11 rows.*say 6"):
        load_searcher(folder, corpus, config)


def test_bm25_of_another_row_count_is_refused(corpus, corpus_of, tmp_path):
    config = RetrievalConfig()
    folder = build_index(corpus, config, tmp_path / "index")
    other = build_index(corpus_of([("Fiji", "sugar")]), config, tmp_path / "other")
    shutil.copy(folder / "meta.json", other / "meta.json")
    with pytest.raises(WorkbenchError, match="holds 1 rows.*say 6"):
        load_searcher(other, corpus, config)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema_version": 99}, "99.*reads 1"),
        ({"encoder": "minilm"}, "encoder: index 'minilm'"),
        ({"dimension": 3}, "dimensions.*say 3"),
        ({"settings": {"k1": 9}}, "settings: index"),
    ],
)
def test_meta_that_differs(folder, config, corpus, changes, named):
    edit_meta(folder, **changes)
    with pytest.raises(WorkbenchError, match=named):
        load_searcher(folder, corpus, config)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1}'])
def test_meta_that_is_broken(folder, config, corpus, text):
    (folder / "meta.json").write_text(text)
    with pytest.raises(WorkbenchError, match="meta.json"):
        load_searcher(folder, corpus, config)


def test_other_settings_are_refused(corpus, tmp_path):
    folder = build_index(corpus, RetrievalConfig(), tmp_path / "index")
    other = RetrievalConfig(bm25=BM25Config(k1=1.5))
    with pytest.raises(WorkbenchError, match="settings.*0.9.*1.5"):
        load_searcher(folder, corpus, other)


def test_settings_of_the_search_alone_may_differ(folder, config, corpus):
    other = config.model_copy(update={"top_k": 1, "batch_tokens": 7, "memory_map": True})
    assert [len(h) for h in load_searcher(folder, corpus, other).search(["copper"])] == [1]


@pytest.mark.parametrize("memory_map", [False, True])
@pytest.mark.parametrize("damage", ["missing", "empty", "half", "garbage"])
def test_every_file_is_needed_whole(config, corpus, tmp_path, damage, memory_map):
    config = config.model_copy(update={"memory_map": memory_map})
    names = [p.name for p in build_index(corpus, config, tmp_path / "whole").iterdir()]
    for name in names:
        folder = tmp_path / f"{damage} {name}"
        shutil.copytree(tmp_path / "whole", folder)
        path, whole = folder / name, (folder / name).read_bytes()
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(
                {"empty": b"", "half": whole[: len(whole) // 2], "garbage": b"\x00abc" * 40}[damage]
            )
        with pytest.raises(WorkbenchError):
            load_searcher(folder, corpus, config)


def test_parts_of_different_indices_are_refused(corpus, corpus_of, tmp_path):
    config = RetrievalConfig()
    folder = build_index(corpus, config, tmp_path / "index")
    other = build_index(corpus_of([("Fiji", "sugar")] * 6), config, tmp_path / "other")
    shutil.copy(other / "vocab.index.json", folder / "vocab.index.json")
    with pytest.raises(WorkbenchError, match="not whole"):
        load_searcher(folder, corpus, config)


def test_no_index(corpus, tmp_path):
    with pytest.raises(WorkbenchError, match="no index here.*build_index"):
        load_searcher(tmp_path / "none", corpus, RetrievalConfig())


def test_an_empty_corpus_is_refused(corpus_of, tmp_path):
    with pytest.raises(WorkbenchError, match="empty corpus"):
        build_index(corpus_of([]), RetrievalConfig(), tmp_path / "index")


def test_a_folder_with_something_else_is_left_alone(corpus, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("words")
    (tmp_path / "file").write_text("words")
    for name in ("thesis", "file"):
        with pytest.raises(WorkbenchError, match="not an index"):
            build_index(corpus, RetrievalConfig(), tmp_path / name)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "words"


def test_a_build_that_fails_leaves_the_old_index(folder, config, corpus, tmp_path):
    broken = RetrievalConfig(encoder=str(tmp_path / "none"))
    with pytest.raises(WorkbenchError, match="cannot be loaded"):
        build_index(corpus, broken, folder)
    assert load_searcher(folder, corpus, config).search(["copper"])[0]
    assert [p.name for p in tmp_path.iterdir()] == ["index"]
