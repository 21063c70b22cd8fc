"""Which arithmetic an engine runs in, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import torch

from .base import Choice

_LARGE = 50_000_000  # weights from which AVX512-BF16 alone pays outside the lean pass


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


def compute_dtype(
    choice: Choice = "auto",
    device: torch.device | str = "cpu",
    parameters: int = 0,
    lean: bool = False,
) -> ComputeDtype:
    """Resolve ``choice`` on ``device`` for a model of ``parameters`` weights.

    "auto" takes bfloat16 where the hardware multiplies it natively and it was measured to
    pay.  That is so on CUDA devices that support it and on CPUs with AMX.  On a CPU core with
    AVX512-BF16 alone it depends on the size, because attention over the cache gets slower:

    ========== ================= =====================================
    parameters prefill           a decoding step
    ========== ================= =====================================
    2.6 M      1.6 times as fast 0.7 times as fast (40 rows)
    8.7 M      2.0 times         1.0 times (40 rows)
    109 M      1.9 times         1.4 times (16 rows, grouped queries)
    ========== ================= =====================================

    so models under 50 M weights stay in float32, in which sampled log-probs also equal a
    float32 trainer's to 1e-4; in bfloat16 they differ by about 1e-2.  In the ``lean`` pass
    (``workbench.engines.lean``), whose cache is float32, bfloat16 products alone are in
    question, and with AVX512-BF16 they are 1.5 to 2.5 times as fast at any size.
    """
    device = torch.device(device).type
    if choice != "auto":
        return ComputeDtype(choice, choice, device, "asked for")
    if device == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        name, why = ("bfloat16", "has") if native else ("float32", "lacks")
        return ComputeDtype(choice, name, device, f"the GPU {why} bfloat16 arithmetic")
    has = torch.cpu.get_capabilities() if device == "cpu" else {}
    if has.get("amx_bf16", False):
        return ComputeDtype(choice, "bfloat16", device, "the CPU has AMX for bfloat16")
    if has.get("avx512_bf16", False) and (lean or parameters >= _LARGE):
        gains = "its products gain" if lean else "the model is large enough to gain"
        reason = f"the CPU has AVX512-BF16 and {gains}"
        return ComputeDtype(choice, "bfloat16", device, reason)
    reason = f"a model of {parameters:,} weights gains nothing from bfloat16 on this {device}"
    return ComputeDtype(choice, "float32", device, reason)
