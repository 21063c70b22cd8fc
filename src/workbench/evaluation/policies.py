"""The base policy and everything trained from it, asked the same questions by one engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from ..agent.config import AgentConfig
from ..agent.rollout import rollout
from ..agent.storage import save_trajectories
from ..agent.trajectory import Trajectory
from ..engines.base import Engine, Sampling
from ..errors import WorkbenchError
from ..questions.graph import Item
from .evidence import EvidenceReader
from .metrics import evaluate
from .selection import stratum

UNTRAINED = -1
_ADAPTER = "adapter_config.json"


@dataclass(frozen=True, slots=True, order=True)
class PolicyName:
    """Which policy: its condition and training seed, ``UNTRAINED`` for the base policy."""

    condition: str
    seed: int = UNTRAINED

    def __str__(self) -> str:
        return self.condition if self.seed == UNTRAINED else f"{self.condition}-seed{self.seed}"


BASE = PolicyName("base")


def trained_policies(
    runs: Mapping[str, Path], seeds: Sequence[int], seeds_of: Mapping[str, Sequence[int]] = {}
) -> dict[PolicyName, Path]:
    """Folder of every condition's and seed's final weights; ``runs`` is folder by condition.

    ``seeds_of`` holds the seeds of conditions that have others.

    Raises
    ------
    WorkbenchError : a run without such weights.
    """
    folders = {
        PolicyName(condition, seed): folder / f"seed-{seed}" / "final"
        for condition, folder in runs.items()
        for seed in seeds_of.get(condition, seeds)
    }
    for folder in folders.values():
        if not folder.is_dir():
            raise WorkbenchError("no final weights", where=folder, fix="train this seed first")
    return folders


class PolicyBank:
    """Base weights once, adapters beside them; the engine runs one policy at a time.

    Parameters
    ----------
    model, tokenizer : the base policy; adapters are added to ``model``.
    trained : folder by name, with a LoRA adapter (peft) or a whole model.
    engine : further arguments of ``TransformersEngine``.

    Raises
    ------
    WorkbenchError : weights that are missing, damaged or of another shape.
    """

    def __init__(self, model, tokenizer, trained: Mapping[PolicyName, Path], **engine):
        from ..engines.transformers_engine import TransformersEngine

        self._folders = dict(trained)
        self._base, self._peft = model, None
        for name, folder in self._folders.items():
            if (folder / _ADAPTER).is_file():
                self._add(name, folder)
        self._engine = TransformersEngine(self._peft or model, tokenizer, **engine)

    @property
    def names(self) -> list[PolicyName]:
        """The base policy first, then the trained ones in the order given."""
        return [BASE, *self._folders]

    @contextmanager
    def using(self, name: PolicyName) -> Iterator[Engine]:
        """The engine, running this policy inside the ``with`` block."""
        if name != BASE and name not in self._folders:
            known = ", ".join(map(str, self.names))
            raise WorkbenchError(f"no policy {name}", fix=f"one of {known}")
        if name == BASE and self._peft is not None:
            with self._peft.disable_adapter():
                self._engine.refresh(self._peft)
                yield self._engine
        elif name == BASE:
            self._engine.refresh(self._base)
            yield self._engine
        elif (self._folders[name] / _ADAPTER).is_file():
            self._peft.set_adapter(str(name))
            self._engine.refresh(self._peft)
            yield self._engine
        else:
            self._engine.refresh(self._whole(name))
            yield self._engine

    def _add(self, name: PolicyName, folder: Path) -> None:
        with _readable(folder):
            if self._peft is None:
                from peft import PeftModel

                adapter = {"adapter_name": str(name)}
                self._peft = PeftModel.from_pretrained(self._base, str(folder), **adapter)
            else:
                self._peft.load_adapter(str(folder), adapter_name=str(name))
        self._peft.eval()

    def _whole(self, name: PolicyName):
        from transformers import AutoModelForCausalLM

        folder = self._folders[name]
        with _readable(folder):
            model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=self._base.dtype)
        return model.to(self._base.device).eval()


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Errors of peft, transformers and safetensors told as one: these weights cannot be read."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, RuntimeError, TypeError, KeyError, SafetensorError) as error:
        raise WorkbenchError(
            f"no trained weights that can be read: {error}",
            where=folder,
            fix="delete the training run and train again",
        ) from error


@dataclass(frozen=True, slots=True)
class Decoding:
    """How questions are asked: ``samples`` rollouts each, drawn by ``sampling``."""

    sampling: Sampling
    samples: int = 1


def ask(
    engine: Engine,
    searcher: object,
    items: Sequence[Item],
    agent: AgentConfig,
    decodings: Mapping[str, Decoding],
    folder: Path,
    name: PolicyName,
    reader: EvidenceReader | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Roll out one policy, keep its predictions, score them.

    Writes ``<name>-<decoding>.parquet`` (``agent.storage``) for each decoding into ``folder``.
    All policies asked with the same ``seed`` share their random draws.

    Parameters
    ----------
    reader : reads what was retrieved; None for questions that have no graph.

    Returns
    -------
    The frame of ``evaluate``, with a ``reader`` that of ``EvidenceReader.read``, and the columns
    condition, training_seed, decoding and stratum.
    """
    frames = []
    score = evaluate if reader is None else reader.read
    by_id = {item.item_id: item for item in items}
    for decoding, how in decodings.items():
        trajectories = rollout(
            engine, searcher, items, agent, how.sampling, seed, samples_per_item=how.samples
        )
        save_predictions(prediction_path(folder, name, decoding), trajectories)
        frames.append(score(items, trajectories, how.samples).assign(decoding=decoding))
    whole = pd.concat(frames, ignore_index=True)
    return whole.assign(
        condition=name.condition,
        training_seed=name.seed,
        stratum=[stratum(by_id[i]) for i in whole["item_id"]],
    )


def prediction_path(folder: Path, name: PolicyName, decoding: str) -> Path:
    """Where ``ask`` keeps the trajectories of a policy."""
    return folder / f"{name}-{decoding}.parquet"


def save_predictions(path: Path, trajectories: Sequence[Trajectory]) -> Path:
    """Write trajectories without their wall times, so that equal predictions are equal files."""
    return save_trajectories(path, [replace(t, seconds=0.0) for t in trajectories])
