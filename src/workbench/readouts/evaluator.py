"""The evaluator: a frozen snapshot and the two heads fitted on it, one unit (S1 §3.2, §7.2.1).

D reads the answer-commit token of valid searched trajectories, B the last prompt token.  One
no-grad pass of the trajectories through the snapshot gives both; nothing is decoded.

On disk it is one safetensors file: arrays, and in its header what they are, with the hashes
of snapshot, heads and base policy.  It is written under another name and renamed, so whoever
reads sees the old evaluator or the new one, whole; nothing in it is code.

    snapshot/<parameter>            the adapter; none for the base policy
    d/mean  d/scale  d/w0  d/b0 ..  and the same under b/
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
import torch
from torch import nn

from ..agent.trajectory import Trajectory
from ..errors import WorkbenchError
from .contexts import commit_context, is_searched, prompt_context
from .features import FeatureConfig, check_layers, features
from .heads import Head
from .snapshot import Snapshot, tensors_hash

SCHEMA = 1
_HEADS = ("d", "b")


@dataclass(frozen=True, slots=True)
class Scored:
    """What the evaluator says of N trajectories.

    d : float64 [N] in [0, 1], reliance; exactly 0 where ``searched`` is False and it has no
        meaning (never NaN).
    b : float64 [N] in [0, 1], closed-book sufficiency; equal for equal prompts.
    searched : bool [N], valid with at least one search.
    forward_tokens : tokens that went through the snapshot; ``rollout_tokens`` those of the
        trajectories, which one forward pass over the rollouts would have cost.
    """

    d: np.ndarray
    b: np.ndarray
    searched: np.ndarray
    forward_tokens: int
    rollout_tokens: int


@dataclass(frozen=True, slots=True)
class Evaluator:
    """``d`` and ``b`` read the states of ``snapshot``; ``notes`` are JSON-able facts for people.

    (Which step it was fitted at, on how many rows, with what validation AUC.)
    """

    snapshot: Snapshot
    d: Head
    b: Head
    notes: dict = field(default_factory=dict)

    def score(
        self,
        model: nn.Module,
        trajectories: Sequence[Trajectory],
        config: FeatureConfig | None = None,
    ) -> Scored:
        """Score trajectories; ``model`` lends its weights and is left as it was.

        Raises
        ------
        WorkbenchError
            a model of other shape, a layer that it does not have, states that are not finite,
            or a trajectory without prompt or, valid and searched, without commit token.
        """
        layers = sorted({self.d.layer, self.b.layer})
        searched = np.array([is_searched(t) for t in trajectories], dtype=bool)
        prompts = [prompt_context(t) for t in trajectories]
        commits = [commit_context(trajectories[i]) for i in np.flatnonzero(searched)]
        with self.snapshot.in_place(model):
            found = features(model, [*prompts, *commits], layers, config)
        states = found.at(self.b.layer)[: len(prompts)]
        # Equal prompts share one row of states; scoring it once keeps their b equal in every bit.
        first: dict[bytes, int] = {}
        rows = [first.setdefault(p.tobytes(), i) for i, p in enumerate(prompts)]
        distinct = list(first.values())
        b = np.zeros(len(prompts))
        b[distinct] = self.b.score(states[distinct])
        d = np.zeros(len(prompts))
        d[searched] = self.d.score(found.at(self.d.layer)[len(prompts) :])
        total = sum(len(t.tokens) for t in trajectories)
        return Scored(d, b[rows], searched, found.forward_tokens, total)

    def hashes(self) -> dict[str, str]:
        """SHA-256 of what it consists of: "snapshot", "base" and "heads"."""
        return {
            "snapshot": self.snapshot.hash,
            "base": self.snapshot.base,
            "heads": tensors_hash(
                {f"{name}/{key}": torch.from_numpy(a) for name, key, a in self._head_arrays()}
            ),
        }

    def state(self) -> dict[str, object]:
        """All of it as arrays and JSON-able values by name (``methods.base.Stateful``)."""
        record = {
            "schema": SCHEMA,
            "kind": self.snapshot.kind,
            "heads": {
                name: {"architecture": head.architecture, "layer": head.layer}
                for name, head in zip(_HEADS, (self.d, self.b))
            },
            "hashes": self.hashes(),
            "notes": self.notes,
        }
        arrays = {f"{name}/{key}": array for name, key, array in self._head_arrays()}
        snapshot = {f"snapshot/{name}": t for name, t in self.snapshot.tensors.items()}
        return {**snapshot, **arrays, "record": record}

    @classmethod
    def of(cls, state: Mapping[str, object], where: str | Path = "evaluator") -> Evaluator:
        """The evaluator whose ``state()`` this is.

        Raises
        ------
        WorkbenchError : another schema, an array is missing, or a hash does not match.
        """
        record = state.get("record")
        schema = record.get("schema") if isinstance(record, dict) else None
        if schema != SCHEMA:
            raise WorkbenchError(
                f"evaluator schema {schema!r}, this version reads {SCHEMA}",
                where=where,
                fix="fit the evaluator anew",
            )
        parts: dict[str, dict] = {"snapshot": {}, "d": {}, "b": {}}
        try:
            for name, value in state.items():
                part, _, key = name.partition("/")
                if part != "record":
                    parts[part][key] = value
            heads = [Head.of(**record["heads"][n], arrays=_numpy(parts[n])) for n in _HEADS]
        except KeyError as error:
            raise WorkbenchError(
                f"{error.args[0]!r} is missing or unknown",
                where=where,
                fix="fit the evaluator anew",
            ) from None
        tensors = {name: torch.as_tensor(value) for name, value in parts["snapshot"].items()}
        snapshot = Snapshot(record["kind"], record["hashes"]["base"], tensors)
        evaluator = cls(snapshot, *heads, notes=record["notes"])
        evaluator._compare(record["hashes"], where)
        return evaluator

    def save(self, path: Path | str) -> Path:
        """Write the file, replacing the one before it in one step."""
        from safetensors.torch import save_file

        path, state = Path(path), self.state()
        record = json.dumps(state.pop("record"), sort_keys=True)
        tensors = {name: torch.as_tensor(value).clone() for name, value in state.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
        try:
            save_file(tensors, part, metadata={"record": record})
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        return path

    def _head_arrays(self):
        for name, head in zip(_HEADS, (self.d, self.b)):
            for key, array in head.arrays().items():
                yield name, key, np.ascontiguousarray(array)

    def _compare(self, claimed: Mapping[str, str], where: str | Path) -> None:
        found = self.hashes()
        if differing := [name for name in found if found[name] != claimed.get(name)]:
            name = differing[0]
            raise WorkbenchError(
                f"the {' and the '.join(differing)} are not what was written "
                f"({name}: {found[name][:12]}, expected {str(claimed.get(name))[:12]})",
                where=where,
                fix="fit the evaluator anew",
            )


def load_evaluator(path: Path | str, model: nn.Module) -> Evaluator:
    """Read an evaluator for ``model``.

    Raises
    ------
    WorkbenchError
        no such file, a damaged one, another schema, a hash that does not match, or a model
        whose base policy, adapters or layers are not those that the evaluator was fitted on.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    try:
        with safe_open(path, framework="pt") as stream:
            record = json.loads((stream.metadata() or {}).get("record", "null"))
            state = {name: stream.get_tensor(name) for name in stream.keys()}
    except FileNotFoundError:
        raise WorkbenchError("no evaluator here", where=path, fix="fit one first") from None
    except (SafetensorError, ValueError) as error:
        raise WorkbenchError(
            f"not an evaluator: {error}", where=path, fix="fit the evaluator anew"
        ) from None
    evaluator = Evaluator.of({**state, "record": record}, where=path)
    try:
        evaluator.snapshot.check(model)
        check_layers(model, sorted({evaluator.d.layer, evaluator.b.layer}))
    except WorkbenchError as error:
        raise WorkbenchError(error.what, where=path, fix=error.fix) from None
    return evaluator


def _numpy(arrays: Mapping[str, object]) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in arrays.items()}
