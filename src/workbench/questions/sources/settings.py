"""What the question graphs of KILT and Wikidata are made with; the defaults are S3's numbers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from ...config import Settings
from ...corpus.chunking import ChunkConfig
from ..categories import CATEGORIES

TRAIN = (1200, 1300, 2400, 900, 2000, 700, 2200, 1000, 1300, 1000)  # S3 Table 4
DEV = (150, 150, 150, 100, 150, 50, 150, 100, 100, 100)
VALIDATION = 10


class DescriptionConfig(Settings):
    """How a root is described without being named.

    By default from its relations and its Wikidata description.  With a ``model`` an
    OpenAI-compatible endpoint is asked first (S3: GPT-5.6 Luna), at temperature 0, and the
    template is what remains when it fails.

    Attributes
    ----------
    base_url : the endpoint; empty for the client's own default.
    key_variable : the environment variable that holds the key; a local server needs none.
    timeout : seconds an answer may take.
    retries : attempts after the first, with growing pauses.
    workers : requests at the same time.
    """

    model: str = ""
    base_url: str = ""
    key_variable: str = "OPENAI_API_KEY"
    timeout: float = Field(default=60.0, gt=0)
    retries: int = Field(default=5, ge=0)
    workers: int = Field(default=8, ge=1)


class SampleConfig(Settings):
    """How much of what is grounded is composed at a time, so that it fits into memory.

    ``starts`` statements begin chains; ``shared`` objects of several subjects begin
    conjunctions, each with at most ``holders`` subjects; ``fan`` bounds what leads into one
    subject; ``statements`` bounds all.  The pool from which a category is
    sampled is ``pool`` times as large as what is wanted of it.
    """

    starts: int = Field(default=100_000, ge=1)
    shared: int = Field(default=20_000, ge=0)
    holders: int = Field(default=6, ge=2)
    fan: int = Field(default=4, ge=1)
    statements: int = Field(default=600_000, ge=1)
    pool: float = Field(default=3.0, ge=1)


class SourceConfig(Settings):
    """The construction of S3 section 2.1 and appendix B.

    Attributes
    ----------
    seed : of every draw.
    language : of labels, aliases and descriptions in the dump.
    subjects : "sentence" if the page's own entity must be named in a sentence to occur in it
        (the first sentence of a page always is about it), "page" if it occurs in all of them.
    properties : "worded" for the properties of `wording.WORDED`, "all" for every one that has
        a label, worded by it.
    ignored : properties that never become a statement; they still count as shortcuts.
    max_objects : most objects of a subject, on average over the dump, for a property to be
        used in chains (S3: 1.5); the chosen pair always has exactly one.
    chunks : S3: 100 words.
    corpus_pages : pages that are cut into chunks beside those that hold evidence, drawn by
        hash; None for all, as in S3.
    counts : questions by split and category; S3's development questions are the split "test",
        and a few of "validation" serve the learning curve, which S3 has none for.
    shard_lines : lines between two commits, of KILT; of the dump ``dump_shard_lines``.
    """

    seed: int = 0
    language: str = Field(default="en", pattern=r"^[a-z]{2,3}(-[a-z0-9]+)*$")
    subjects: Literal["sentence", "page"] = "sentence"
    properties: Literal["worded", "all"] = "worded"
    ignored: tuple[str, ...] = ("P31", "P279", "P361", "P527", "P155", "P156", "P910", "P1889")
    max_objects: float = Field(default=1.5, ge=1)
    chunks: ChunkConfig = ChunkConfig(words=100, boundary="word")
    corpus_pages: int | None = Field(default=None, ge=0)
    counts: dict[Literal["train", "test", "validation"], dict[str, int]] = {
        "train": dict(zip(CATEGORIES, TRAIN)),
        "test": dict(zip(CATEGORIES, DEV)),
        "validation": dict.fromkeys(CATEGORIES, VALIDATION),
    }
    sample: SampleConfig = SampleConfig()
    descriptions: DescriptionConfig = DescriptionConfig()
    shard_lines: int = Field(default=2_000, ge=1)
    dump_shard_lines: int = Field(default=5_000_000, ge=1)

    @model_validator(mode="after")
    def _categories(self) -> SourceConfig:
        for split, counts in self.counts.items():
            if unknown := sorted(set(counts) - set(CATEGORIES)):
                known = ", ".join(CATEGORIES)
                raise ValueError(f"counts.{split}: no category {unknown[0]!r}; one of {known}")
            if any(count < 0 for count in counts.values()):
                raise ValueError(f"counts.{split} must not be negative")
        if wrong := [p for p in self.ignored if not (p[:1] == "P" and p[1:].isdecimal())]:
            raise ValueError(f"ignored: {wrong[0]!r} is no property id such as P31")
        return self

    def wanted(self, category: str) -> int:
        """Questions of a category over all splits."""
        return sum(counts.get(category, 0) for counts in self.counts.values())
