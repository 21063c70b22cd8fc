"""A profile: every number of a run, composed from the settings of the rooms."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..config import Settings
from ..corpus.chunking import ChunkConfig
from ..questions.build import QuestionConfig
from ..runs import stable_hash


class MachineConfig(Settings):
    """Where and in which arithmetic a profile runs.

    ``threads`` are those of one notebook; several notebooks run side by side.  With
    ``offline`` nothing is asked of a model hub.
    """

    device: str = "cpu"
    dtype: Literal["float32", "bfloat16"] = "float32"
    threads: int = Field(default=1, ge=1)
    offline: bool = True


class CorpusParams(Settings):
    """Which pages, which of their fields, and how they are cut.

    ``source`` is "embedded" or a path to a corpus in one of the readers' formats; ``fields``
    keeps only the named fields of the embedded pages (all when empty).
    """

    source: str = "embedded"
    fields: tuple[str, ...] = ()
    chunks: ChunkConfig = ChunkConfig()


class Profile(Settings):
    """One file of params/profiles, resolved.

    ``stages`` are the notebooks that ``workbench reproduce`` runs, ``conditions`` the entries
    of params/conditions that are trained and compared, ``seeds`` the training runs of each.
    """

    name: str
    description: str
    stages: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    machine: MachineConfig = MachineConfig()
    corpus: CorpusParams = CorpusParams()
    questions: QuestionConfig = QuestionConfig()

    def part(self, dotted: str) -> object:
        """The settings at a dotted name, e.g. ``"grpo"`` or ``"evaluation.draws"``."""
        value: object = self
        for name in dotted.split("."):
            value = getattr(value, name)
        return value

    def dump(self, dotted: str) -> object:
        """``part`` as plain JSON-able data."""
        value: object = self.model_dump(mode="json")
        for name in dotted.split("."):
            value = value[name]  # type: ignore[index]
        return value

    def digest(self, *parts: str) -> str:
        """Stable hash of some parts: what depends on these only changes when they do."""
        return stable_hash({part: self.dump(part) for part in parts})

    def condition(self, name: str) -> dict:
        """The entry of params/conditions with that name, as plain data."""
        from .load import read_condition

        return read_condition(name)
