"""A frozen policy as the tensors that training changes: with LoRA an adapter, no second model.

The model that is being trained computes as the snapshot while its live tensors step aside
(``Snapshot.in_place``); nothing is copied and the live ones come back bit by bit.

The base policy itself is a snapshot without tensors.  A policy trained in full has nothing to
share, so its snapshot holds every parameter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from safetensors.torch import save
from torch import Tensor, nn

from ..engines.replica import plain_model
from ..errors import WorkbenchError

Kind = Literal["base", "adapter", "full"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``tensors`` by parameter name, on the CPU; ``base`` is the hash of the base policy.

    ``base`` is "" for a policy trained in full, of which no base is left.
    """

    kind: Kind
    base: str
    tensors: dict[str, Tensor]

    @property
    def hash(self) -> str:
        """SHA-256 over the tensors."""
        return tensors_hash(self.tensors)

    def check(self, model: nn.Module) -> None:
        """Refuse a model that this snapshot does not belong to.

        Raises
        ------
        WorkbenchError
            the model's base is another one, or its trained tensors have other names or shapes.
        """
        if self.kind != "full" and (found := base_hash(model)) != self.base:
            raise WorkbenchError(
                f"base policy: the model's hashes to {found[:12]}, the snapshot was taken over "
                f"{self.base[:12]}",
                where="snapshot",
                fix="load the policy that the evaluator was fitted on",
            )
        _matched(self.tensors, _live(model, self.kind))

    @contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """``model`` computes as the snapshot inside the ``with`` block; not for training."""
        if self.kind == "base":
            if plain_model(model) is model:
                yield
            else:
                with model.disable_adapter():
                    yield
            return
        live = _live(model, self.kind)
        _matched(self.tensors, live)
        own = {name: parameter.data for name, parameter in live.items()}
        try:
            for name, parameter in live.items():
                parameter.data = self.tensors[name].to(parameter.device, parameter.dtype)
            yield
        finally:
            for name, parameter in live.items():
                parameter.data = own[name]


def take_snapshot(model: nn.Module, full: bool = False) -> Snapshot:
    """Freeze ``model`` as it is now.

    Parameters
    ----------
    model : a PeftModel, whose active adapter is taken, or a transformers model, which is the
        base policy itself.
    full : all parameters of a transformers model, for one that is trained in full.

    Raises
    ------
    WorkbenchError
        more or fewer than one active adapter, a merged one, or ``full`` of a PeftModel.
    """
    adapted = plain_model(model) is not model
    if full and adapted:
        raise WorkbenchError("a PeftModel is not trained in full", where="take_snapshot")
    kind: Kind = "full" if full else "adapter" if adapted else "base"
    tensors = {
        name: parameter.detach().cpu().contiguous().clone()
        for name, parameter in _live(model, kind).items()
    }
    return Snapshot(kind, "" if full else base_hash(model), tensors)


def base_hash(model: nn.Module) -> str:
    """SHA-256 over the weights under the adapters; the same with and without a PeftModel."""
    adapters = set(getattr(model, "peft_config", ()))
    tensors = {}
    for name, parameter in plain_model(model).named_parameters():
        parts = name.split(".")
        if adapters.isdisjoint(parts):
            kept = (part for part in parts if part not in ("base_layer", "original_module"))
            tensors[".".join(kept)] = parameter
    return tensors_hash(tensors)


def tensors_hash(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, dtypes, shapes and bytes, in order of name."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(save({name: tensors[name].detach().cpu().contiguous()}))
    return digest.hexdigest()


def _live(model: nn.Module, kind: Kind) -> dict[str, nn.Parameter]:
    """The parameters that a snapshot of this kind replaces."""
    if kind == "base":
        return {}
    if kind == "full":
        return dict(model.named_parameters())
    active = [] if plain_model(model) is model else model.active_adapters
    if len(active) != 1:
        raise WorkbenchError(
            f"{len(active)} active adapters, expected one",
            where="snapshot",
            fix="give a PeftModel with the trained adapter active",
        )
    if any(getattr(module, "merged", False) is True for module in model.modules()):
        raise WorkbenchError(
            "the adapter is merged into the weights", where="snapshot", fix="unmerge it first"
        )
    return {n: p for n, p in model.named_parameters() if active[0] in n.split(".")}


def _matched(tensors: Mapping[str, Tensor], live: Mapping[str, nn.Parameter]) -> None:
    for name in sorted(tensors.keys() | live.keys()):
        ours = tuple(tensors[name].shape) if name in tensors else "absent"
        theirs = tuple(live[name].shape) if name in live else "absent"
        if ours != theirs:
            raise WorkbenchError(
                f"{name} is {ours} in the snapshot and {theirs} in the model",
                where="snapshot",
                fix="load the policy that the evaluator was fitted on, with the same adapters",
            )
