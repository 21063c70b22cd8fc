"""A corpus of a few pages, its questions, and a calibration task of the committed policy on it.

Loaded by path, because tests are not a package.
"""

from dataclasses import dataclass
from pathlib import Path

from workbench.agent.config import AgentConfig
from workbench.corpus.chunking import ChunkConfig, chunk_pages
from workbench.corpus.embedded import load_pages, select_fields
from workbench.corpus.store import save_corpus
from workbench.policy.recipe import closed_book_agent
from workbench.questions.build import QuestionConfig, build_items
from workbench.questions.graph import Item
from workbench.questions.names import page_names
from workbench.questions.relations import FIELDS
from workbench.questions.store import save_items
from workbench.readouts.config import CalibrationConfig
from workbench.readouts.refit import RefitTask
from workbench.readouts.selection import SelectionConfig
from workbench.retrieval.config import RetrievalConfig
from workbench.retrieval.index import build_index
from workbench.retrieval.searcher import load_searcher

POLICY = "data/policy"
PAGES = ("ag", "ml", "fr", "gm", "it", "ek", "sw", "no")
AGENT = AgentConfig(
    passage="({rank}) {title}: {text}", separator=" ", max_observation_tokens=160,
    max_rounds=3, max_start_tokens=160, max_prompt_tokens=700, max_response_tokens=64,
    max_total_tokens=800,
)  # fmt: skip


@dataclass
class RefitWorld:
    """``task`` calibrates on ``items`` questions of the corpus that ``searcher`` searches."""

    task: RefitTask
    searcher: object
    items: list[Item]


def refit_world(folder: Path, **calibration) -> RefitWorld:
    everything = load_pages()
    pages = [p for p in select_fields(everything, FIELDS) if p.page_id in PAGES]
    chunks = chunk_pages(pages, ChunkConfig(words=30, boundary="paragraph"))
    corpus = save_corpus(folder / "corpus.parquet", chunks)
    retrieval = RetrievalConfig(encoder="bm25", top_k=3)
    build_index(corpus, retrieval, folder / "index")
    found = build_items(pages, QuestionConfig(), page_names(everything)).items
    items = [item for item in found if item.hops == 1]
    save_items(folder / "items.jsonl", items)
    settings = {
        "questions": 30, "rollouts": 1, "layers": (2,),
        "selection": SelectionConfig(folds=2, architectures=["logistic"]),
    }  # fmt: skip
    task = RefitTask(
        policy=POLICY, corpus=str(folder / "corpus.parquet"), index=str(folder / "index"),
        questions=str(folder / "items.jsonl"), item_ids=tuple(i.item_id for i in items),
        retrieval=retrieval, agent=AGENT,
        closed_book=closed_book_agent(AGENT, "From memory: {question} <think>"),
        calibration=CalibrationConfig(**(settings | calibration)), seed=3,
    )  # fmt: skip
    return RefitWorld(task, load_searcher(folder / "index", corpus, retrieval), items)


def running_in(folder: Path) -> list[int]:
    """Processes that were started with a path under ``folder``, ended ones not counted."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                command = (place / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended meanwhile
            if str(folder).encode() in command:
                found.append(int(place.name))
    return found
