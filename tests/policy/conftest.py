"""A world of twelve pages: questions, a real BM25 searcher, the tokenizer and demonstrations."""

from functools import cache
from types import SimpleNamespace

import pytest

from workbench.agent.config import AgentConfig
from workbench.corpus.chunking import ChunkConfig, chunk_pages
from workbench.corpus.embedded import load_pages, select_fields
from workbench.corpus.store import save_corpus
from workbench.policy.config import PolicyConfig
from workbench.policy.model import ModelConfig, build_model
from workbench.policy.recipe import all_facts, build_demonstrator, build_tokenizer
from workbench.questions.build import QuestionConfig, build_items
from workbench.questions.names import page_names
from workbench.questions.relations import FIELDS
from workbench.retrieval.config import RetrievalConfig
from workbench.retrieval.index import build_index
from workbench.retrieval.searcher import load_searcher

PAGES = ("ag", "ml", "fr", "gm", "it", "sp", "ni", "sg", "mo", "ja", "ch", "as")
AGENT = AgentConfig(passage="({rank}) {title}: {text}", separator=" ", max_observation_tokens=400)
SMALL = ModelConfig(hidden_size=48, layers=2, heads=3, intermediate_size=32, max_positions=1024)


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    everything = load_pages()
    pages = [p for p in select_fields(everything, FIELDS) if p.page_id in PAGES]
    chunks = chunk_pages(pages, ChunkConfig(words=30, boundary="paragraph"))
    items = build_items(pages, QuestionConfig(), page_names(everything)).items
    corpus = save_corpus(folder / "corpus.parquet", chunks)
    retrieval = RetrievalConfig(encoder="bm25", top_k=3)
    build_index(corpus, retrieval, folder / "index")
    return SimpleNamespace(
        small=SMALL,
        pages=pages,
        chunks=chunks,
        items=items,
        facts={f.fact_id: f for f in all_facts(pages)},
        searcher=load_searcher(folder / "index", corpus, retrieval),
        tokenizer=build_tokenizer(pages, chunks, items, 2),
        searches={},
    )


@pytest.fixture(scope="session")
def agent():
    return AGENT


@pytest.fixture(scope="session")
def demonstrators(world):
    """A demonstrator for given shares of the mixture; one for each set of them."""

    @cache
    def build(**changes):
        config = PolicyConfig()
        demonstrations = config.demonstrations.model_copy(update=changes)
        config = config.model_copy(update={"demonstrations": demonstrations})
        return build_demonstrator(
            world.tokenizer, world.pages, world.items, world.searcher, AGENT, config
        )

    return build


@pytest.fixture
def small_model(world):
    tokenizer = world.tokenizer
    return build_model(SMALL, len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
