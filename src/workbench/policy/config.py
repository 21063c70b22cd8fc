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


class PolicyConfig(Settings):
    """The policy that everything starts from.

    ``source`` is a folder under the project root, another folder or a hub id;
    ``closed_book_prompt`` is the retrieval-disabled prompt.  The rest is the recipe of the
    embedded base policy (words rarer than ``min_count`` are spelled out) and its card.
    """

    source: str = "data/policy"
    closed_book_prompt: str = "From memory: {question} <think>"
    min_count: int = Field(default=2, ge=1)
    model: ModelConfig = ModelConfig()
    demonstrations: DemonstrationConfig = DemonstrationConfig()
    training: SFTConfig = SFTConfig()
    card: CardConfig = CardConfig()
