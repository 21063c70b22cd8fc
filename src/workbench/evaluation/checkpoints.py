"""A training run's policies along the way, asked the same questions and read twice.

A run that calibrates leaves its policy at the start of every round (``readouts.refit``), and its
last one in ``final``; the base policy is its beginning.  ``measure`` rolls each of them out on the
same questions with the same random numbers and reads the rollouts' hidden states through the
policy itself and through the base policy.  The second is what a frozen evaluator does: its
snapshot stays the base policy, only the rollouts are the moved policy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..errors import WorkbenchError
from ..grpo.history import seed_folder
from ..methods.shaping import outcomes
from ..readouts.refit import ADAPTER, MODEL, RESULT
from .policies import UNTRAINED, _readable

if TYPE_CHECKING:
    from torch import nn

    from ..agent.config import AgentConfig
    from ..agent.trajectory import Trajectory
    from ..engines.base import Choice
    from ..engines.transformers_engine import TransformersEngine
    from ..questions.graph import Item
    from ..readouts.calibration import Targets
    from ..readouts.config import CalibrationConfig

FINAL = "final"


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A policy after ``step`` updates of a seed's training; the base policy at step 0.

    ``folder`` holds its adapter or all its weights, None the base policy.  ``number`` is the
    calibration round that started there (0 is the calibration before the training), None at
    the end of training.  ``evaluator`` is the file that the round left, ``installed`` the update
    behind which it took over; None where the round failed or was never waited for.
    """

    seed: int
    step: int
    folder: Path | None = None
    number: int | None = None
    evaluator: Path | None = None
    installed: int | None = None


@dataclass(frozen=True)
class Measured:
    """A checkpoint on Q questions with N valid searched rollouts of R.

    ``targets`` holds labels and the states that the checkpoint itself has;
    ``base_prompt_states`` float32 [Q, L, H] and ``base_commit_states`` [N, L, H] are the base
    policy's on the same tokens.  ``rollouts``, one row each: item_id, sample, em, generated
    (tokens), log_ratio (Σ log π - log base over them, nats).
    """

    checkpoint: Checkpoint
    targets: Targets
    base_prompt_states: np.ndarray
    base_commit_states: np.ndarray
    rollouts: pd.DataFrame


def find_checkpoints(
    run: Path, seeds: Sequence[int], history: pd.DataFrame, first: Path | None = None
) -> list[Checkpoint]:
    """The base policy once, then for every seed its rounds in order and its end.

    Parameters
    ----------
    run : a condition's training run, with a folder per seed (``grpo.history.seed_folder``).
    history : its metrics with seed and step; ``refits_started`` rises by one where a round
        starts.  Without that column (frozen readouts, other methods) there are no rounds.
    first : the evaluator that training began with.

    Raises
    ------
    WorkbenchError : a seed without metrics, or weights that the metrics speak of are missing.
    """
    found = [Checkpoint(UNTRAINED, 0, number=0, evaluator=first, installed=0 if first else None)]
    for seed in seeds:
        own = history[history["seed"] == seed].sort_values("step")
        folder = seed_folder(Path(run), seed)
        if own.empty:
            raise WorkbenchError("no metrics of this seed", where=folder, fix="train it first")
        found += _rounds(folder / "calibration", seed, own)
        if not (folder / FINAL).is_dir():
            raise WorkbenchError("no final weights", where=folder, fix="train this seed first")
        found.append(Checkpoint(seed, int(own["step"].max()), folder / FINAL))
    return found


def refits(history: pd.DataFrame, kind: str) -> pd.Series:
    """How many refits were "started", "installed" or "failed" by each step of one seed.

    Index step; empty where the training never refits.
    """
    column = f"refits_{kind}"
    if column not in history.columns:
        return pd.Series(dtype=np.int64)
    return history.set_index("step")[column].dropna().sort_index().astype(np.int64)


def _rounds(calibration: Path, seed: int, own: pd.DataFrame) -> list[Checkpoint]:
    started, installed = refits(own, "started"), refits(own, "installed")
    ended = installed.add(refits(own, "failed"), fill_value=0)
    found = []
    for number in range(1, int(started.max()) + 1 if len(started) else 1):
        place = calibration / f"round-{number:04d}"
        folder = next((place / n for n in (ADAPTER, MODEL) if (place / n).is_dir()), None)
        if folder is None:
            raise WorkbenchError(
                "the metrics speak of this calibration round, but its policy is gone",
                where=place,
                fix="delete the training run and train again",
            )
        file, over = place / RESULT, ended.index[ended >= number]
        worked = file.is_file() and len(over) > 0
        found.append(
            Checkpoint(
                seed, int(started.index[started >= number][0]), folder, number,
                file if worked else None, int(over[0]) if worked else None,
            )
        )  # fmt: skip
    return found


@contextmanager
def policy_at(base: nn.Module, checkpoint: Checkpoint) -> Iterator[nn.Module]:
    """The policy of ``checkpoint`` inside the ``with`` block, in eval mode.

    An adapter is laid on ``base``, the plain base policy, and taken off again.

    Raises
    ------
    WorkbenchError : weights that cannot be read.
    """
    folder = checkpoint.folder
    if folder is None:
        yield base
    elif (folder / "adapter_config.json").is_file():
        from peft import PeftModel

        with _readable(folder):
            model = PeftModel.from_pretrained(base, str(folder))
        try:
            yield model.eval()
        finally:
            model.unload()
    else:
        with _readable(folder):
            model = type(base).from_pretrained(str(folder), dtype=base.dtype)
        yield model.to(base.device).eval()


def measure(
    checkpoint: Checkpoint,
    base: nn.Module,
    tokenizer: object,
    searcher: object,
    items: Sequence[Item],
    agent: AgentConfig,
    closed_book: AgentConfig,
    config: CalibrationConfig,
    seed: int = 0,
    dtype: Choice = "float32",
) -> Measured:
    """Roll out, intervene and read one checkpoint (``readouts.calibration.measure_targets``).

    Give all checkpoints the same ``items``, ``config`` and ``seed``: they share questions and
    random numbers, so what differs is the policy.

    Parameters
    ----------
    base, tokenizer : the base policy, plain; it is left as it was.
    closed_book : the agent with the retrieval-disabled prompt (``policy.recipe``).
    dtype : the engine's arithmetic.

    Raises
    ------
    WorkbenchError : no questions, a layer outside the model, or weights that cannot be read.
    """
    from ..engines.transformers_engine import TransformersEngine
    from ..readouts.calibration import measure_targets
    from ..readouts.contexts import commit_context, prompt_context
    from ..readouts.features import features

    with policy_at(base, checkpoint) as model:
        engine = TransformersEngine(model, tokenizer, dtype=dtype)
        targets = measure_targets(engine, model, searcher, items, agent, closed_book, config, seed)
        own = _log_probs(engine, targets.trajectories)
        if model is base:
            start, states = own, np.concatenate([targets.prompt_states, targets.commit_states])
        else:
            first = {t.item_id: t for t in reversed(targets.trajectories)}
            contexts = [prompt_context(first[item.item_id]) for item in targets.items]
            contexts += [commit_context(t) for t in targets.searched]
            adapted = hasattr(model, "disable_adapter")
            with model.disable_adapter() if adapted else nullcontext():
                engine.refresh(model if adapted else base)
                start = _log_probs(engine, targets.trajectories)
                states = features(base, contexts, config.layers, config.features).values
    by_id = {item.item_id: item for item in targets.items}
    found = outcomes([by_id[t.item_id] for t in targets.trajectories], targets.trajectories)
    rollouts = pd.DataFrame(
        {
            "item_id": found.questions,
            "sample": [t.sample for t in targets.trajectories],
            "em": found.correct.astype(np.float64),
            "generated": [len(values) for values in own],
            "log_ratio": [float(np.sum(a - b)) for a, b in zip(own, start, strict=True)],
        }
    )
    count = len(targets.items)
    return Measured(checkpoint, targets, states[:count], states[count:], rollouts)


def _log_probs(engine: TransformersEngine, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
    """log-probs float64 of the generated tokens of each rollout, at temperature 1."""
    scored = engine.score([t.tokens for t in trajectories], [t.generated for t in trajectories])
    return [generation.logprobs.astype(np.float64) for generation in scored]
