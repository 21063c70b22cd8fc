"""Settings of the base policy: where it is, how it was made, how it is measured."""

from __future__ import annotations

from pydantic import Field

from ..config import Settings
from .mixture import DemonstrationConfig
from .model import ModelConfig
from .sft import SFTConfig


class CardConfig(Settings):
    """Test questions per hop count for each measurement of the card, and rollouts per group."""

    searched: int = Field(default=400, ge=1)
    groups: int = Field(default=100, ge=1)
    samples: int = Field(default=5, ge=2)
    seed: int = 0


class FirstDemonstrations(DemonstrationConfig):
    """Reading begins with reasoning that only says where the evidence stands."""

    told: float = Field(default=0.0, ge=0, le=1)


class SecondDemonstrations(DemonstrationConfig):
    """Longer questions, hardly ever cut short, mostly about pages that exist nowhere else."""

    hops: tuple[float, ...] = (0.36, 0.34, 0.18, 0.12)
    named: float = Field(default=0.65, ge=0, le=1)
    stop_early: float = Field(default=0.05, ge=0, le=1)
    early_share: float = Field(default=0.0, ge=0, le=1)
    renamed: float = Field(default=0.85, ge=0, le=1)


class SecondTraining(SFTConfig):
    """Another schedule with a quarter of the statements."""

    steps: int = Field(default=2400, ge=0)
    decay_from: float = Field(default=0.4, ge=0, le=1)
    statements: float = Field(default=0.25, ge=0)
    seed: int = 1


class SecondStage(Settings):
    """Training that goes on from the first stage."""

    demonstrations: SecondDemonstrations = SecondDemonstrations()
    training: SecondTraining = SecondTraining()


class ThirdDemonstrations(SecondDemonstrations):
    """Mostly passages that exist nowhere else either: reading that works on any page."""

    hops: tuple[float, ...] = (0.36, 0.36, 0.18, 0.10)
    named: float = Field(default=0.55, ge=0, le=1)
    invented: float = Field(default=0.65, ge=0, le=1)
    lookups_late: float = Field(default=0.05, ge=0, le=1)


class ThirdTraining(SecondTraining):
    """A short schedule that mostly decays."""

    steps: int = Field(default=1500, ge=0)
    decay_from: float = Field(default=0.3, ge=0, le=1)
    seed: int = 2


class ThirdStage(Settings):
    """Training that goes on from the second stage."""

    demonstrations: ThirdDemonstrations = ThirdDemonstrations()
    training: ThirdTraining = ThirdTraining()


class PolicyConfig(Settings):
    """The policy that everything starts from.

    ``source`` is a folder under the project root, another folder or a hub id;
    ``closed_book_prompt`` is the retrieval-disabled prompt.  The rest is the recipe of the
    embedded base policy (words rarer than ``min_count`` are spelled out) and its card: a first
    stage in which reading begins, a ``second`` one that also tells what was read on the way,
    and a ``third`` one over made-up passages.
    """

    source: str = "data/policy"
    closed_book_prompt: str = "From memory: {question} <think>"
    min_count: int = Field(default=2, ge=1)
    model: ModelConfig = ModelConfig()
    demonstrations: FirstDemonstrations = FirstDemonstrations()
    training: SFTConfig = SFTConfig()
    second: SecondStage = SecondStage()
    third: ThirdStage = ThirdStage()
    card: CardConfig = CardConfig()
