"""Named random generators: every draw belongs to a purpose, a seed and a place in the run.

A generator is made anew from its name wherever it is needed (``generator("rollout", seed,
step)``) instead of being carried along, so a resumed run draws what an unbroken one drew.
"""

from __future__ import annotations

import hashlib

import numpy as np


def seed_of(purpose: str, *keys: int | str) -> int:
    """A 63-bit seed from a purpose and its keys; the same on every machine."""
    name = "\x1f".join([purpose, *map(str, keys)])
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def generator(purpose: str, *keys: int | str) -> np.random.Generator:
    """NumPy generator (PCG64) named ``purpose`` with ``keys``, e.g. ``("split", 7)``."""
    return np.random.default_rng(seed_of(purpose, *keys))


def torch_generator(purpose: str, *keys: int | str, device: str = "cpu"):
    """torch generator named ``purpose`` with ``keys`` on ``device``."""
    import torch

    return torch.Generator(device=device).manual_seed(seed_of(purpose, *keys))
