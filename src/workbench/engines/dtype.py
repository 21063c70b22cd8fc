"""Which arithmetic an engine runs in, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import torch

Choice = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class ComputeDtype:
    """The arithmetic of a model's forward pass; ``reason`` is one sentence for the record."""

    choice: Choice
    name: Literal["float32", "bfloat16"]
    device: str
    reason: str

    @property
    def torch(self) -> torch.dtype:
        """The torch dtype."""
        return getattr(torch, self.name)

    def record(self) -> dict[str, str]:
        """As plain data for a run's manifest."""
        return asdict(self)


def compute_dtype(choice: Choice = "auto", device: torch.device | str = "cpu") -> ComputeDtype:
    """Resolve ``choice`` on ``device``.

    "auto" takes bfloat16 where the hardware multiplies it natively *and* it was measured to
    pay: on CUDA devices that support it and on CPUs with AMX.  On CPUs with AVX512-BF16 alone
    it does not for rollouts: products of 1,000 rows run 2.2 times as fast, but attention over
    the cache, which decoding spends most of its time in, runs at half speed
    (``benchmarks/rollout.py --dtype bfloat16`` measures both).  Sampled log-probs then also
    differ from a float32 trainer's by about 1e-2.
    """
    device = torch.device(device).type
    if choice != "auto":
        return ComputeDtype(choice, choice, device, "asked for")
    if device == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        name, why = ("bfloat16", "has") if native else ("float32", "lacks")
        return ComputeDtype(choice, name, device, f"the GPU {why} bfloat16 arithmetic")
    if device == "cpu" and torch.cpu.get_capabilities().get("amx_bf16", False):
        return ComputeDtype(choice, "bfloat16", device, "the CPU has AMX for bfloat16")
    return ComputeDtype(choice, "float32", device, f"the {device} gains nothing from bfloat16")
