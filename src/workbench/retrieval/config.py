"""Settings of retrieval: which encoder, how its index is kept and how many passages come back."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from ..config import Settings


class BM25Config(Settings):
    """How text becomes terms and terms become scores (used when ``encoder`` is "bm25").

    ``k1`` and ``b`` are BM25's term saturation and length normalisation.  The defaults are
    Anserini's and suit short passages: with 1.5 and 0.75 a passage that repeats the country's
    name outweighs the one with the word that was asked for.  ``method`` is one of the bm25s
    variants whose scores are zero exactly for passages that share no term with the query or
    only terms of zero weight.  ``token_pattern`` is a regular expression for one word of
    lower-cased text, ``stopwords`` a bm25s list (Lucene's 33 words for "en") and ``stemmer`` a
    Snowball language; None switches either off.  ``fold_accents`` makes "Bogotá" and "Bogota"
    one term, in whichever Unicode normal form they are written.
    """

    k1: float = Field(default=0.9, gt=0)
    b: float = Field(default=0.4, ge=0, le=1)
    method: Literal["lucene", "robertson", "atire"] = "lucene"
    token_pattern: str = r"\w+"
    stopwords: Literal["en", "en_plus"] | None = "en"
    stemmer: str | None = "english"
    fold_accents: bool = True


class RetrievalConfig(Settings):
    """What is searched with what.

    Attributes
    ----------
    encoder : "bm25", "minilm" (all-MiniLM-L6-v2 from an installed package, 384 dimensions), or
        an E5-type model as a hub id (``"intfloat/e5-base-v2"``) or local folder (``"./e5"``):
        anything with a slash.
    top_k : passages per query.
    max_length : tokens of a query or passage that an encoder reads, prefix included.
    batch_tokens : padded tokens per encoder batch; 512 suits one CPU core, 65536 a GPU.
    device, dtype : where and in what precision the encoder runs; vectors are float32 always.
    index_device : "gpu" puts the FAISS index on all GPUs, sharded (needs faiss-gpu).
    gpu_float16 : store the vectors on the GPU in half precision; candidates are rescored in
        full precision.
    memory_map : read the index from disk as it is needed instead of loading it.
    """

    encoder: str = "bm25"
    top_k: int = Field(default=3, ge=1)
    max_length: int = Field(default=256, ge=8)
    batch_tokens: int = Field(default=512, ge=1)
    device: str = Field(default="cpu", pattern=r"^(cpu|mps|cuda(:\d+)?)$")
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    index_device: Literal["cpu", "gpu"] = "cpu"
    gpu_float16: bool = False
    memory_map: bool = False
    bm25: BM25Config = BM25Config()

    @field_validator("encoder")
    @classmethod
    def _known(cls, value: str) -> str:
        if value in ("bm25", "minilm") or "/" in value:
            return value
        raise ValueError(
            f"unknown encoder {value!r}: give 'bm25', 'minilm', a hub id such as "
            "'intfloat/e5-base-v2', or a folder such as './e5'"
        )

    def index_settings(self) -> dict:
        """The settings an index depends on; others may change without rebuilding it."""
        if self.encoder == "bm25":
            return self.bm25.model_dump()
        return {"max_length": self.max_length}
