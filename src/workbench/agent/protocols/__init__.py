"""Protocols: how a policy says that it searches or answers, and what it hears back."""

from __future__ import annotations

from ..config import AgentConfig
from .base import Action, Observation, Protocol

__all__ = ["Action", "Observation", "Protocol", "build_protocol"]


def build_protocol(config: AgentConfig, tokenizer: object) -> Protocol:
    """The protocol that ``config`` names, with its texts in ``tokenizer``'s ids.

    Raises WorkbenchError for a tokenizer that is not a fast one or, under "native", whose
    chat template cannot carry the conversation.
    """
    from .native import NativeProtocol
    from .tags import TagProtocol

    return {"tag": TagProtocol, "native": NativeProtocol}[config.protocol](tokenizer, config)
