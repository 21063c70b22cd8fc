"""Checkpoints of a run: all that step k + 1 needs, written whole or not at all.

    checkpoints/step-000040/
        weights.safetensors    the trained tensors
        optimiser.safetensors  AdamW's moments and counts, by tensor name
        method.safetensors     arrays of the method's state, if it has one
        state.json             step, updates, place in metrics.jsonl, identity of the run, the
                               rest of the method's state, and the SHA-256 of the files and of
                               itself

Random generators are named by purpose and step, and questions are drawn by step, so neither
has state to keep.  A checkpoint is written under a hidden name, synced, and renamed.

At start the newest checkpoint is taken.  One that is damaged (a file missing or with another
hash) is passed over with a warning in favour of the one before it; if all that exist are
damaged that is an error, because starting anew would throw a run away silently.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..errors import WorkbenchError
from ..runs import file_hash, stable_hash
from .method_state import load_state, save_state

_WEIGHTS, _OPTIMISER, _STATE = "weights.safetensors", "optimiser.safetensors", "state.json"
_METHOD = "method.safetensors"
_SCHEMA = 1


@dataclass(slots=True)
class State:
    """``step`` steps are done; ``updates`` optimiser updates; ``logged`` bytes by log file.

    ``identity`` is everything the result depends on, as JSON-able data; ``method`` is the
    JSON-able part of the method's state, empty for a method without.
    """

    step: int
    updates: int
    logged: dict[str, int]
    identity: dict
    method: dict = field(default_factory=dict)


def save_checkpoint(
    folder: Path,
    state: State,
    parameters: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    keep: int,
    method: Mapping | None = None,
) -> Path:
    """Write ``folder/step-<n>`` atomically and delete all but the newest ``keep``.

    ``method`` is the method's state (``method_state.state_of``).
    """
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"step-{state.step:06d}"
    part = folder / f".{final.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    save_file({n: p.detach().cpu().contiguous() for n, p in parameters.items()}, part / _WEIGHTS)
    save_file(_moments(parameters, optimiser), part / _OPTIMISER)
    record = {"schema": _SCHEMA, **asdict(state)}
    if method is not None:
        record["method"] = save_state(part / _METHOD, method)
    record["files"] = {path.name: file_hash(path) for path in sorted(part.iterdir())}
    record["sha256"] = stable_hash(record)
    (part / _STATE).write_text(json.dumps(record, indent=1) + "\n")
    for path in (*part.iterdir(), part):
        _sync(path)
    shutil.rmtree(final, ignore_errors=True)
    part.rename(final)
    _sync(folder)
    for old in _steps(folder)[keep:]:
        shutil.rmtree(old)
    return final


def find_checkpoint(folder: Path) -> tuple[Path, State] | None:
    """The newest undamaged checkpoint with its state, or None when there is none at all.

    Raises
    ------
    WorkbenchError : there are checkpoints but every one is damaged.
    """
    damaged = []
    for path in _steps(folder):
        try:
            return path, _read_state(path)
        except WorkbenchError as error:
            damaged.append(str(error))
            warnings.warn(f"checkpoint passed over: {error}", stacklevel=2)
    if damaged:
        raise WorkbenchError(
            "every checkpoint is damaged:\n" + "\n".join(damaged),
            where=folder,
            fix="delete the folder to start the run anew",
        )
    return None


def check_identity(state: State, identity: dict, where: Path) -> None:
    """Refuse to go on with a run that was started with other params, naming what differs."""
    before, now = _flat(state.identity), _flat(json.loads(json.dumps(identity)))
    differing = sorted(k for k in before.keys() | now.keys() if before.get(k) != now.get(k))
    if differing:
        changes = "; ".join(
            f"{k} was {before.get(k, '(absent)')!r}, is {now.get(k, '(absent)')!r}"
            for k in differing
        )
        raise WorkbenchError(
            f"this run was started with other params: {changes}",
            where=where,
            fix="restore them, or start in another folder",
        )


def load_checkpoint(
    path: Path, parameters: dict[str, Tensor], optimiser: torch.optim.Optimizer
) -> None:
    """Copy a checkpoint's tensors into the trained parameters and the optimiser."""
    weights, moments = load_file(path / _WEIGHTS), load_file(path / _OPTIMISER)
    if weights.keys() != parameters.keys():
        odd = sorted(weights.keys() ^ parameters.keys())[0]
        raise WorkbenchError(f"its tensors are not those of this policy ({odd})", where=path)
    with torch.no_grad():
        for name, parameter in parameters.items():
            if weights[name].shape != parameter.shape:
                raise WorkbenchError(f"{name} has another shape", where=path)
            parameter.copy_(weights[name])
    states: dict[str, dict[str, Tensor]] = {}
    for key, value in moments.items():
        name, _, field = key.rpartition("/")
        states.setdefault(name, {})[field] = value
    numbered = {i: states[name] for i, name in enumerate(parameters) if name in states}
    optimiser.load_state_dict({**optimiser.state_dict(), "state": numbered})


def load_method_state(path: Path, state: State) -> dict | None:
    """What the method's ``state()`` returned when the checkpoint was written; None without."""
    return load_state(path / _METHOD, state.method) if state.method else None


def _moments(parameters: dict[str, Tensor], optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    names = list(parameters)
    return {
        f"{names[i]}/{field}": value.detach().cpu().contiguous()
        for i, fields in optimiser.state_dict()["state"].items()
        for field, value in fields.items()
    }


def _read_state(path: Path) -> State:
    try:
        record = json.loads((path / _STATE).read_text())
    except FileNotFoundError:
        raise WorkbenchError(f"no {_STATE}", where=path) from None
    except ValueError:
        raise WorkbenchError("not JSON", where=path / _STATE) from None
    claimed = record.pop("sha256", None) if isinstance(record, dict) else None
    if claimed != stable_hash(record):
        raise WorkbenchError("its hash does not match its content", where=path / _STATE)
    if record.pop("schema") != _SCHEMA:
        raise WorkbenchError(f"another schema than {_SCHEMA}", where=path / _STATE)
    for name, expected in record.pop("files").items():
        if not (path / name).is_file():
            raise WorkbenchError("the file is missing", where=path / name)
        if file_hash(path / name) != expected:
            raise WorkbenchError("the file is not what was written", where=path / name)
    return State(**record)


def _steps(folder: Path) -> list[Path]:
    """Checkpoints, newest first; parts of unfinished ones are not among them."""
    return sorted(folder.glob("step-*"), reverse=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flat(value: object, key: str = "") -> dict[str, object]:
    if not isinstance(value, dict):
        return {key: value}
    flat: dict[str, object] = {}
    for name, inside in value.items():
        flat |= _flat(inside, f"{key}.{name}" if key else name)
    return flat


def weights_hash(parameters: dict[str, Tensor]) -> str:
    """SHA-256 over names, dtypes and bytes of tensors, in order of name."""
    digest = hashlib.sha256()
    for name in sorted(parameters):
        tensor = parameters[name].detach().cpu().contiguous()
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}".encode())
        digest.update(tensor.view(torch.uint8).numpy() if tensor.numel() else b"")
    return digest.hexdigest()
