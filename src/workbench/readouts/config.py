"""Settings of the readouts: how states are read and how a calibration round goes."""

from __future__ import annotations

from pydantic import Field

from ..config import Settings
from ..engines.base import Choice
from .selection import SelectionConfig


class FeatureConfig(Settings):
    """``batch_tokens`` padded tokens go through the model at once, in the arithmetic ``dtype``."""

    batch_tokens: int = Field(default=2048, ge=1)
    dtype: Choice = "float32"


class CalibrationConfig(Settings):
    """``questions`` (M of S1) of the calibration split, ``rollouts`` (G) of each.

    ``layers`` are the candidates for both heads, in the numbering of ``readouts.features``.
    A round starts every ``every`` updates (K of S1); its evaluator is installed exactly ``lag``
    updates later, or with None as soon as it is there, which is not reproducible.
    """

    every: int = Field(default=25, ge=1)
    lag: int | None = Field(default=None, ge=0)
    questions: int = Field(default=300, ge=2)
    rollouts: int = Field(default=5, ge=1)
    layers: tuple[int, ...] = Field(default=(21, 24, 27), min_length=1)
    temperature: float = Field(default=1.0, ge=0)
    selection: SelectionConfig = SelectionConfig()
    features: FeatureConfig = FeatureConfig()
