"""Real rollouts of the committed policy in a world of a few pages, and a scripted engine."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from workbench.agent.config import AgentConfig
from workbench.agent.rollout import rollout
from workbench.corpus.chunking import ChunkConfig, chunk_pages
from workbench.corpus.embedded import load_pages, select_fields
from workbench.corpus.store import save_corpus
from workbench.engines.base import Generation, Sampling
from workbench.engines.transformers_engine import TransformersEngine
from workbench.policy.recipe import all_facts
from workbench.policy.store import load_policy
from workbench.questions.build import QuestionConfig, build_items
from workbench.questions.names import page_names
from workbench.questions.relations import FIELDS
from workbench.retrieval.config import RetrievalConfig
from workbench.retrieval.index import build_index
from workbench.retrieval.searcher import load_searcher

PAGES = ("ag", "ml", "fr", "gm", "it", "ek")
AGENT = AgentConfig(
    passage="({rank}) {title}: {text}", separator=" ", max_observation_tokens=120,
    max_rounds=6, max_start_tokens=160, max_prompt_tokens=900, max_response_tokens=96,
    max_total_tokens=1000,
)  # fmt: skip


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Questions, searcher, the policy, and sampled and greedy rollouts of some questions.

    Observations are short, so that some are cut.
    """
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("world")
    everything = load_pages()
    pages = [p for p in select_fields(everything, FIELDS) if p.page_id in PAGES]
    chunks = chunk_pages(pages, ChunkConfig(words=30, boundary="paragraph"))
    items = build_items(pages, QuestionConfig(), page_names(everything)).items
    corpus = save_corpus(folder / "corpus.parquet", chunks)
    retrieval = RetrievalConfig(encoder="bm25", top_k=3)
    build_index(corpus, retrieval, folder / "index")
    searcher = load_searcher(folder / "index", corpus, retrieval)
    model, tokenizer = load_policy()
    engine = TransformersEngine(model, tokenizer, dtype="float32", max_rows=64)
    kinds = {}
    for item in items:
        kinds.setdefault((item.category, item.roots), []).append(item)
    asked = [item for pool in kinds.values() for item in pool[:: max(1, len(pool) // 5)][:5]]
    sampled = rollout(engine, searcher, asked, AGENT, Sampling(), seed=5)
    greedy = rollout(engine, searcher, asked, AGENT, Sampling(temperature=0.0), seed=0)
    return SimpleNamespace(
        items=items, asked=asked, by_id={i.item_id: i for i in items}, agent=AGENT,
        facts={f.fact_id: f for f in all_facts(pages)}, searcher=searcher, engine=engine,
        tokenizer=tokenizer, sampled=[t for t in sampled if t.valid],
        greedy=[t for t in greedy if t.valid],
    )  # fmt: skip


@pytest.fixture(scope="session")
def byte_tokenizer():
    """Byte-level BPE in which one token holds the end of a tag and the letter behind it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    from tokenizers.trainers import BpeTrainer

    tokenizer.train_from_iterator(
        [">P"] * 9,
        BpeTrainer(
            vocab_size=260, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<eos>"], show_progress=False,
        ),
    )  # fmt: skip
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")


@dataclass
class FakeEngine:
    """Says ``say(context text, session seed, row)`` behind each context; records sessions."""

    tokenizer: object
    say: object
    max_rows: int = 64
    max_length: int = 999
    tokens_processed: int = 0
    opened: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    def open(self, prompts, sampling, seed):
        assert len(prompts) <= self.max_rows
        texts = [self.tokenizer.decode(list(p)) for p in prompts]
        self.opened.append(SimpleNamespace(texts=texts, sampling=sampling, seed=seed))
        return self

    def generate(self, rows, max_new_tokens, stop):
        session = self.opened[-1]
        self.asked.append(SimpleNamespace(rows=list(rows), limits=list(max_new_tokens), stop=stop))
        return [self._said(self.say(session.texts[row], session.seed, row)) for row in rows]

    def _said(self, text):
        ids = self.tokenizer(text, add_special_tokens=False).input_ids
        none = np.zeros((len(ids), 0))
        finish = "stop" if text.endswith(">") else "length"
        return Generation(np.array(ids, np.int32), np.zeros(len(ids)), none, none, finish)


@pytest.fixture(scope="session")
def fake(world):
    """Builds a ``FakeEngine`` over the committed policy's tokenizer."""

    def build(say, tokenizer=None, **sizes):
        return FakeEngine(tokenizer or world.tokenizer, say, **sizes)

    return build
