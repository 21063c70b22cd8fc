"""Retrieval signals of saved trajectories beside a plain loop over the definitions.

    python benchmarks/coverage.py

10,000 trajectories (2,000 questions x 5 rollouts) of 4 searches x 3 chunks of the embedded corpus
are scored for Cov, Cov-Dep and AM.  Questions have one to six nodes with one or two required
passages each, fan-ins included; half of the retrieved chunks hold required passages.  The rival
asks, after each search, every required passage against every chunk so far, and normalises every
document anew.  Both must give the same potentials.

Times are CPU seconds of this process on one core, because a busy machine stretches the wall;
rounds visit the contenders in turn, each begins with nothing remembered, and the table shows the
median round.  Writes benchmarks/results/coverage.json.
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from workbench.agent.trajectory import SearchRecord, Segment, Trajectory
from workbench.corpus.chunking import ChunkConfig, chunk_pages
from workbench.corpus.embedded import load_pages
from workbench.corpus.records import Chunk
from workbench.evaluation.answers import inclusion, normalise_answer
from workbench.methods import signals
from workbench.methods.coverage import CoverageReader, coverage, covered_nodes, dependent_coverage
from workbench.methods.signals import AnswerMatch, CoverageSignal
from workbench.questions.graph import Evidence, Item, Node
from workbench.seeding import generator

RESULTS = Path(__file__).parent / "results" / "coverage.json"
QUESTIONS, ROLLOUTS, SEARCHES, PASSAGES = 2_000, 5, 4, 3
ROUNDS = 5
NAMES = ("cov", "cov_dep", "am")
Potentials = dict[str, list[list[float]]]


def questions(chunks: list[Chunk], rng: np.random.Generator) -> list[Item]:
    """Graphs whose required passages stand in random chunks of the corpus."""
    items = []
    for number in range(QUESTIONS):
        nodes: list[Node] = []
        for place in range(int(rng.integers(1, 7))):
            evidence = []
            for _ in range(int(rng.integers(1, 3))):
                chunk = chunks[rng.integers(len(chunks))]
                extent = chunk.extents[0]
                start = int(rng.integers(extent.start, extent.end))
                evidence.append(Evidence(chunk.page_id, extent.paragraph, ((start, start + 5),)))
            before = [node.node_id for node in nodes]
            needs = rng.choice(before, min(len(before), 2), replace=False) if before else ()
            nodes.append(Node(f"v{place}", "?", ("x",), tuple(evidence), tuple(map(str, needs))))
        words = normalise_answer(chunks[rng.integers(len(chunks))].text).split()
        answers = (words[0] if words else "none", " ".join(words[:2]) or "nothing")
        items.append(Item(f"q{number}", "?", answers, "4-hop-3, fan-in", tuple(nodes), "train"))
    return items


def rollouts(items: list[Item], chunks: list[Chunk], rng: np.random.Generator) -> list[Trajectory]:
    """Five trajectories of a question, one after another."""
    holders: dict[tuple[str, int], list[Chunk]] = {}
    for chunk in chunks:
        for extent in chunk.extents:
            holders.setdefault((chunk.page_id, extent.paragraph), []).append(chunk)
    made = []
    for item in items:
        gold = [
            chunk
            for node in item.nodes
            for evidence in node.evidence
            for chunk in holders[evidence.page_id, evidence.paragraph]
        ]
        for sample in range(ROLLOUTS):
            records = []
            for turn in range(SEARCHES):
                found = [
                    pool[rng.integers(len(pool))]
                    for pool in (gold if rng.random() < 0.5 else chunks for _ in range(PASSAGES))
                ]
                records.append(
                    SearchRecord(
                        "a query", turn, (1, 2), (1, 2), (2, 3),
                        [c.chunk_id for c in found], [1.0] * PASSAGES,
                        [c.title for c in found], [c.text for c in found],
                    )
                )  # fmt: skip
            made.append(trajectory(item.item_id, sample, records))
    return made


def trajectory(item_id: str, sample: int, records: list[SearchRecord]) -> Trajectory:
    """A trajectory of which only the searches matter here."""
    segments = np.array([Segment.PROMPT, Segment.QUERY, Segment.OBSERVATION], np.uint8)
    nothing = np.zeros((3, 0), np.int32)
    return Trajectory(
        item_id, item_id, sample, 0, np.arange(3, dtype=np.int32), segments,
        np.zeros(3, np.float32), nothing, nothing.astype(np.float32), records, None, None, -1,
        False, "no answer", False, SEARCHES + 1, 0,
    )  # fmt: skip


def workbench(items: list[Item], trajectories: list[Trajectory], corpus) -> Potentials:
    """As methods and evaluation do: nothing is remembered from an earlier round."""
    signals._normal.cache_clear()
    reader = CoverageReader(corpus)
    scorers = [CoverageSignal(reader), CoverageSignal(reader, dependencies=True), AnswerMatch()]
    return {
        scorer.name: [scorer.potentials(i, t) for i, t in zip(items, trajectories, strict=True)]
        for scorer in scorers
    }


def plain(items: list[Item], trajectories: list[Trajectory], corpus) -> Potentials:
    """The definitions, search by search."""
    found: Potentials = {name: [] for name in NAMES}
    for item, one in zip(items, trajectories, strict=True):
        rows: dict[str, list[float]] = {name: [] for name in NAMES}
        for t in range(len(one.searches)):
            seen = one.searches[: t + 1]
            covered = covered_nodes(item.nodes, [corpus[c] for s in seen for c in s.chunk_ids])
            rows["cov"].append(coverage(item.nodes, covered))
            rows["cov_dep"].append(dependent_coverage(item.nodes, covered))
            texts = [text for s in seen for text in (*s.titles, *s.texts)]
            rows["am"].append(float(any(inclusion(text, item.answers) for text in texts)))
        for name in NAMES:
            found[name].append(rows[name])
    return found


def main() -> None:
    """Measure, check that both agree, print and write the results."""
    start = time.perf_counter()
    chunks = chunk_pages(load_pages(), ChunkConfig(words=30, boundary="paragraph"))
    corpus = {chunk.chunk_id: chunk for chunk in chunks}
    rng = generator("benchmark-coverage")
    items = questions(chunks, rng)
    trajectories = rollouts(items, chunks, rng)
    asked = [item for item in items for _ in range(ROLLOUTS)]
    contenders = {"workbench": workbench, "plain loop": plain}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    outputs: dict[str, Potentials] = {}
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            began = time.process_time()
            outputs[name] = work(asked, trajectories, corpus)
            seconds[name].append(time.process_time() - began)
    ours, theirs = outputs.values()
    result = {
        "machine": {
            "processor": platform.machine(),
            "cpus": os.cpu_count(),
            "threads": os.environ["OMP_NUM_THREADS"],
            "python": platform.python_version(),
            "load_average": round(os.getloadavg()[0], 1),
            "seconds": round(time.perf_counter() - start, 1),
        },
        "trajectories": len(trajectories),
        "searches": SEARCHES,
        "passages": PASSAGES,
        "nodes": sum(len(item.nodes) for item in items),
        "corpus_chunks": len(chunks),
        "rounds": ROUNDS,
        "same_potentials": ours == theirs,
        "mean_final_potential": {n: float(np.mean([p[-1] for p in ours[n]])) for n in NAMES},
        "contenders": {
            name: {
                "cpu_seconds": round(median(s), 3),
                "fastest": round(min(s), 3),
                "slowest": round(max(s), 3),
                "workbench_is_faster_by": round(
                    median(a / b for a, b in zip(s, seconds["workbench"], strict=True)), 2
                ),
            }
            for name, s in seconds.items()
        },
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
