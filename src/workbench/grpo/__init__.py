"""GRPO: objective, reduction, update, trainer, checkpoints."""

from .config import GRPOConfig, LoraConfig, ObjectiveConfig, OptimiserConfig
from .runlog import read_log

__all__ = [
    "GRPOConfig",
    "LoraConfig",
    "ObjectiveConfig",
    "OptimiserConfig",
    "Trainer",
    "read_log",
]


def __getattr__(name: str):
    # The trainer imports torch; settings and logs are read without it.
    if name == "Trainer":
        from .trainer import Trainer

        return Trainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
