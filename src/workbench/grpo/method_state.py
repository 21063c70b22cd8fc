"""What a method carries from step to step, on disk: exact both ways.

``Stateful.state()`` is a dict by name of NumPy arrays, torch tensors and JSON-able values.
Arrays and tensors go to one safetensors file of the checkpoint and come back as what they
were, bit by bit (tensors on the CPU); the rest goes to its ``state.json``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..errors import WorkbenchError
from ..methods.base import Method, Stateful
from ..runs import stable_hash


def state_of(method: Method) -> dict | None:
    """The method's state, or None when it has none.

    Raises
    ------
    WorkbenchError
        a value that would not come back as it was: other than an array of numbers, a tensor,
        or JSON-able data with text keys (lists, no tuples).
    """
    if not isinstance(method, Stateful):
        return None
    state = method.state()
    for name, value in state.items():
        if not isinstance(name, str) or not _is_kept(value):
            raise WorkbenchError(
                f"{name!r} of its state ({type(value).__name__}) cannot be kept in a checkpoint",
                where=f"method {method.name}",
                fix="make it an array of numbers, a tensor, or JSON-able (lists, text keys)",
            )
    return state


def state_hash(state: Mapping) -> str:
    """SHA-256 over names, types and values of a state."""
    tensors, rest = split(state)
    parts = {name: _tensor_hash(tensor) for name, tensor in tensors.items()}
    return stable_hash({"tensors": parts, "rest": rest})


def split(state: Mapping) -> tuple[dict[str, Tensor], dict]:
    """A state as tensors, and as JSON-able data that also says which of them were arrays."""
    arrays = [name for name, value in state.items() if isinstance(value, np.ndarray)]
    tensors = {
        name: torch.from_numpy(value.copy(order="C")) if name in arrays else _own(value)
        for name, value in state.items()
        if isinstance(value, np.ndarray | Tensor)
    }
    values = {name: value for name, value in state.items() if name not in tensors}
    return tensors, {"arrays": sorted(arrays), "values": values}


def save_state(path: Path, state: Mapping) -> dict:
    """Write the tensors of a state to ``path``; its JSON-able part is for ``state.json``."""
    tensors, rest = split(state)
    save_file(tensors, path)
    return rest


def load_state(path: Path, rest: Mapping) -> dict:
    """The state of which ``save_state`` wrote ``path`` and returned ``rest``."""
    tensors = {
        name: value.numpy() if name in rest["arrays"] else value
        for name, value in load_file(path).items()
    }
    return {**tensors, **rest["values"]}


def _is_kept(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf" and value.dtype.isnative and value.dtype != np.longdouble
    if isinstance(value, Tensor):
        return value.layout == torch.strided and not value.is_complex()
    return _is_json(value)


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(type(k) is str and _is_json(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or type(value) in (bool, int, float, str)


def _own(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().clone()


def _tensor_hash(tensor: Tensor) -> str:
    data = tensor.reshape(-1).view(torch.uint8).numpy() if tensor.numel() else b""
    return hashlib.sha256(f"{tensor.dtype}{tuple(tensor.shape)}".encode() + bytes(data)).hexdigest()
