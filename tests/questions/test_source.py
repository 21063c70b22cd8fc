"""Where a profile's questions and chunks come from: the embedded corpus, or files."""

import pytest

from workbench.corpus.embedded import select_fields
from workbench.corpus.records import Chunk, Extent
from workbench.corpus.source import CorpusConfig, read_chunks, read_pages
from workbench.corpus.store import save_corpus
from workbench.errors import WorkbenchError
from workbench.params import load_profile
from workbench.questions.build import QuestionConfig, build_items
from workbench.questions.graph import Evidence, Item, Node
from workbench.questions.source import read_questions
from workbench.questions.store import save_items
from workbench.runs import project_root

NODE = Node("v1", "Who?", ("Åse",), (Evidence("7", 1, ((0, 3),)),), (), "Q1-P2-Q3")
ITEM = Item("1:a", "Who?", ("Åse",), "1-hop, single", (NODE,), "test")


def test_questions_and_chunks_of_files(tmp_path):
    chunks = [Chunk("7#0", "7", "T", "Åse was.", (Extent(1, 0, 8),))]
    save_corpus(tmp_path / "c.parquet", chunks)
    save_items(tmp_path / "i.jsonl", [ITEM])
    corpus = CorpusConfig(source=str(tmp_path / "c.parquet"))
    assert read_chunks(corpus) == chunks
    made = read_questions(corpus, QuestionConfig(source=str(tmp_path / "i.jsonl")))
    assert made.items == [ITEM] and made.excluded == {}


def test_paths_are_relative_to_the_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkbenchError, match=f"{project_root()}/data/none.jsonl: no questions"):
        read_questions(CorpusConfig(), QuestionConfig(source="data/none.jsonl"))
    with pytest.raises(WorkbenchError, match=f"{project_root()}/data/none.parquet: no corpus"):
        read_chunks(CorpusConfig(source="data/none.parquet"))


def test_chunks_without_pages_cannot_be_asked_about():
    with pytest.raises(WorkbenchError, match="no pages.*questions.source"):
        read_questions(CorpusConfig(source="c.parquet"), QuestionConfig())
    with pytest.raises(WorkbenchError, match="no pages"):
        read_pages(CorpusConfig(source="c.parquet"))


def test_the_paper_s_profile_reads_what_the_command_writes():
    profile = load_profile("paper-qwen3-4b")
    folders = {str(p).rpartition("/")[0] for p in (profile.corpus.source, profile.questions.source)}
    assert folders == {"data/external/kilt-2019"}
    assert profile.corpus.source.endswith("/chunks.parquet")
    assert profile.questions.source.endswith("/items.jsonl")


def test_questions_of_the_embedded_corpus_know_the_names_of_all_pages(all_pages, names):
    corpus, config = CorpusConfig(fields=("Capital", "Independence")), QuestionConfig()
    made = read_questions(corpus, config)
    assert made.items == build_items(select_fields(all_pages, corpus.fields), config, names).items
    assert len(made.items) > 300
