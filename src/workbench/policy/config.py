"""Settings of the base policy: where it is, how it was made, how it is measured."""

from __future__ import annotations

from pydantic import Field

from ..config import Settings
from .demonstrations import DemonstrationConfig
from .model import ModelConfig
from .sft import SFTConfig


class CardConfig(Settings):
    """Test questions per hop count for each measurement of the card, and rollouts per group."""

    searched: int = Field(default=400, ge=1)
    groups: int = Field(default=100, ge=1)
    samples: int = Field(default=5, ge=2)
    seed: int = 0


class SecondStage(Settings):
    """Training that goes on from the first stage: longer questions, fewer statements."""

    demonstrations: DemonstrationConfig = DemonstrationConfig(
        early_share=0.0, hops=(0.38, 0.30, 0.18, 0.14), stop_early=0.05
    )
    training: SFTConfig = SFTConfig(steps=900, lr=1.0e-3, decay_from=0.3, statements=0.25, seed=1)


class PolicyConfig(Settings):
    """The policy that everything starts from.

    ``source`` is a folder under the project root, another folder or a hub id;
    ``closed_book_prompt`` is the retrieval-disabled prompt.  The rest is the recipe of the
    embedded base policy (words rarer than ``min_count`` are spelled out) and its card: a first
    stage in which reading begins, and a ``second`` one that also tells what was read on the way.
    """

    source: str = "data/policy"
    closed_book_prompt: str = "From memory: {question} <think>"
    min_count: int = Field(default=2, ge=1)
    model: ModelConfig = ModelConfig()
    demonstrations: DemonstrationConfig = DemonstrationConfig(told=0.0)
    training: SFTConfig = SFTConfig()
    second: SecondStage = SecondStage()
    card: CardConfig = CardConfig()
