"""Dense index: FAISS flat inner product over unit vectors, exact and rescored.

FAISS picks candidates; their scores are then computed once more in float64.  A matrix product
rounds a row differently with the number of queries and its place among them, so FAISS alone
would let two equal passages change places from batch to batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import WorkbenchError
from .config import RetrievalConfig
from .encoders import Encoder
from .ranking import top_rows

VECTORS = "vectors.faiss"
_BLOCK = 8192  # texts encoded between two writes
_FEW = 10  # so many different texts cannot all have one vector; fewer may (case, cut)
_SPARE = 8  # candidates beyond k
_BLAS_FROM = 2048  # query numbers (n x dimension) per thread from which BLAS beats FAISS's own loop
_GPU_CANDIDATES = 2048  # FAISS's limit for k on a GPU
_DECIMALS = 6  # scores that agree so far are a tie: float32 encoders repeat to about 1e-7


def build_dense(texts: Sequence[str], encoder: Encoder, folder: Path, progress: bool) -> int:
    """Encode ``texts`` into ``folder/vectors.faiss``; returns the dimension.

    Vectors go to disk block by block and into FAISS in one piece, so the memory holds them
    once.  Equal texts of a block are encoded once and have equal vectors.

    Raises
    ------
    WorkbenchError
        the encoder gives all texts the same vector, so that every query would find the same
        passages, or vectors that are not of unit length.
    """
    import faiss
    from tqdm import tqdm

    part = folder / "vectors.part"
    shape = (len(texts), encoder.dimension)
    vectors = np.memmap(part, dtype=np.float32, mode="w+", shape=shape)
    distinct, spread = 0, 0.0
    with tqdm(total=len(texts), disable=not progress, desc="encode") as bar:
        for start in range(0, len(texts), _BLOCK):
            block = texts[start : start + _BLOCK]
            place = {text: i for i, text in enumerate(dict.fromkeys(block))}
            unique = encoder.encode(list(place), "passage")
            _check_length(unique)
            vectors[start : start + len(block)] = unique[[place[text] for text in block]]
            distinct += len(place)
            spread = max(spread, float(np.abs(unique - vectors[0]).max()))
            bar.update(len(block))
    if distinct >= _FEW and spread < 1e-5:
        raise WorkbenchError(
            f"the encoder gives {distinct} different texts the same vector",
            where="retrieval.encoder",
            fix="check the encoder's weights and tokenizer",
        )
    index = faiss.IndexFlatIP(encoder.dimension)
    index.add(vectors)
    faiss.write_index(index, str(folder / VECTORS))
    del vectors
    part.unlink()
    return encoder.dimension


def _check_length(vectors: np.ndarray) -> None:
    worst = float(np.abs(np.linalg.norm(vectors, axis=1) - 1).max())
    if worst > 1e-3:
        raise WorkbenchError(
            f"a vector's length is off 1 by {worst:.2g}",
            where="retrieval.encoder",
            fix="check the encoder's weights",
        )


class DenseIndex:
    """A loaded dense index with the encoder of its queries.

    Raises
    ------
    WorkbenchError
        at construction: the file is missing or corrupt, or a GPU is asked for and not there;
        at the first search: encoder and vectors differ in dimension.
    """

    def __init__(self, folder: Path, config: RetrievalConfig, encoder: Encoder):
        import faiss

        path, gpu = folder / VECTORS, config.index_device == "gpu"
        # on its way to a GPU the file is only mapped, so the vectors are never in RAM as well
        flags = faiss.IO_FLAG_MMAP_IFC if config.memory_map or gpu else 0
        try:
            flat = faiss.read_index(str(path), flags)
        except RuntimeError as error:
            raise WorkbenchError(
                f"not a whole FAISS index: {str(error).splitlines()[-1]}",
                where=path,
                fix="delete the folder and build the index again",
            ) from error
        if not isinstance(flat, faiss.IndexFlat) or flat.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise WorkbenchError(
                f"holds a {type(flat).__name__}, a flat inner-product index is needed", where=path
            )
        self.rows, self.dimension = flat.ntotal, flat.d
        self._encoder, self._flat = encoder, flat
        self._vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d)
        self._vectors = self._vectors.reshape(flat.ntotal, flat.d)
        _use_blas_early()
        self._index = _on_gpus(flat, config.gpu_float16) if gpu else flat
        self._limit = min(self.rows, _GPU_CANDIDATES) if gpu else self.rows
        self._tolerance = 4e-3 if gpu and config.gpu_float16 else 1e-5

    def search(self, queries: Sequence[str], k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows int [m] and scores float64 [m] (cosines), m = min(k, rows), of each query."""
        if not len(queries):
            return []
        if self._encoder.dimension != self.dimension:
            raise WorkbenchError(
                f"the encoder gives {self._encoder.dimension} numbers, the index holds vectors "
                f"of {self.dimension}",
                where="retrieval.encoder",
                fix="build the index again",
            )
        return self.search_vectors(self._encoder.encode(queries, "query"), k)

    def search_vectors(self, vectors: np.ndarray, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same for query vectors float32 [n, dimension]."""
        found: list = [None] * len(vectors)
        open_, width = np.arange(len(vectors)), k + _SPARE
        while len(open_):
            width = min(width, self._limit)
            coarse, rows = self._index.search(vectors[open_], width)
            left = []
            for place, floor, candidates in zip(open_, coarse[:, -1], rows, strict=True):
                found[place] = self._rescore(vectors[place], candidates, k)
                # a row not seen scores at most `floor`: could it still tie with the k-th?
                if width < self._limit and floor + self._tolerance >= found[place][1][-1]:
                    left.append(place)
            open_, width = np.array(left, dtype=np.int64), width * 4
        return found

    def _rescore(self, query: np.ndarray, rows: np.ndarray, k: int):
        exact = np.einsum("nd,d->n", self._vectors[rows].astype(np.float64), query.astype("f8"))
        return top_rows(rows, exact.round(_DECIMALS), k)


def _use_blas_early() -> None:
    """Lower FAISS's switch to matrix products, process-wide, if it is tuned for many threads.

    FAISS 1.15 switches at n x dimension = 128000 whatever the number of threads, which costs
    a batch of 100 queries of 384 numbers five sixths of its speed on one core
    (facebookresearch/faiss pull request 5109).
    """
    import faiss

    threads = faiss.omp_get_max_threads()
    current = faiss.cvar.distance_compute_blas_threshold
    faiss.cvar.distance_compute_blas_threshold = min(current, _BLAS_FROM * threads)


def _on_gpus(flat, float16: bool):
    """The index sharded over all GPUs."""
    import faiss

    if not hasattr(faiss, "GpuMultipleClonerOptions") or faiss.get_num_gpus() == 0:
        raise WorkbenchError(
            "index_device is gpu, but this FAISS sees no GPU",
            where="retrieval.index_device",
            fix="install faiss-gpu on a machine with a GPU, or use index_device: cpu",
        )
    options = faiss.GpuMultipleClonerOptions()
    options.shard, options.useFloat16 = True, float16
    return faiss.index_cpu_to_all_gpus(flat, co=options)
