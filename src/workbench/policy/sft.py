"""Trains the base policy on demonstrations: the loop, its settings and its log.

Departures from a textbook loop: logits are computed at target positions only; the schedule
counts steps, never seconds, so that the result does not depend on how busy the machine is.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from ..config import Settings
from ..errors import WorkbenchError
from ..seeding import generator
from .demonstrations import Demonstrator
from .drafts import Demonstration

# What reading a truncated, foreign or otherwise broken checkpoint raises.
_UNREADABLE = (
    RuntimeError, EOFError, OSError, ValueError, TypeError, LookupError, AttributeError,
    pickle.UnpicklingError,
)  # fmt: skip


class SFTConfig(Settings):
    """Steps, sizes and schedule.

    A step draws demonstrations until it has ``tokens_per_step`` tokens, padding excluded;
    ``micro_tokens`` bounds those of one forward pass, padding included: small, so that similar
    lengths go together.  ``warmup_steps`` of linear warm-up, ``lr`` until the share
    ``decay_from`` of the steps, then linear decay to ``final_lr`` times ``lr``.  Each fact is
    stated ``statements`` times its exposures, rounded down.
    """

    steps: int = Field(default=2400, ge=0)
    tokens_per_step: int = Field(default=4000, ge=64)
    micro_tokens: int = Field(default=1024, ge=64)
    lr: float = Field(default=2.0e-3, gt=0)
    warmup_steps: int = Field(default=50, ge=0)
    decay_from: float = Field(default=0.5, ge=0, le=1)
    final_lr: float = Field(default=0.02, ge=0, le=1)
    statements: float = Field(default=1.0, ge=0)
    weight_decay: float = Field(default=0.0, ge=0)
    checkpoint_every: int = Field(default=100, ge=1)
    grad_clip: float = Field(default=1.0, gt=0)
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SFTProgress:
    """One logged step: mean target loss (nats), tokens read, learning-rate factor."""

    step: int
    loss: float
    tokens: int
    lr_factor: float


def lr_factor(step: int, config: SFTConfig) -> float:
    """Linear warm-up, constant, then linear decay to ``final_lr`` from ``decay_from`` on."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    start = config.decay_from * config.steps
    if step < start:
        return 1.0
    return 1.0 - (1.0 - config.final_lr) * (step - start) / max(1.0, config.steps - start)


def step_batches(
    demonstrator: Demonstrator, config: SFTConfig, start: int = 0
) -> Iterator[list[Demonstration]]:
    """The demonstrations of each step from ``start`` on: its statements, then the mixture.

    A schedule too short for all statements gives them half of each step and drops the rest.
    """
    queue = [i for i in demonstrator.single for _ in range(int(i.exposures * config.statements))]
    generator("statements", config.seed).shuffle(queue)
    early_until = demonstrator.config.early_share * config.steps
    for step in range(start, config.steps):
        rng = generator("demonstrations", config.seed, step)
        first, last = (len(queue) * s // config.steps for s in (step, step + 1))
        batch: list[Demonstration] = []
        used = 0
        for item in queue[first:last]:
            if used >= config.tokens_per_step / 2:
                break
            batch.append(demonstrator.statement(item, rng))
            used += len(batch[-1].tokens)
        while used < config.tokens_per_step:
            batch.append(demonstrator.draw(rng, early=step < early_until))
            used += len(batch[-1].tokens)
        yield batch


def micro_batches(batch: list[Demonstration], limit: int) -> Iterator[list[Demonstration]]:
    """Sequences of similar length together, at most ``limit`` tokens with padding each.

    A sequence longer than that stands alone; none is cut or dropped.
    """
    part: list[Demonstration] = []
    for d in sorted(batch, key=lambda d: len(d.tokens)):
        if part and len(d.tokens) * (len(part) + 1) > limit:
            yield part
            part = []
        part.append(d)
    if part:
        yield part


def target_loss(model, part: list[Demonstration], pad: int, dtype=None):
    """Summed cross-entropy (nats) of the target tokens of a padded micro-batch."""
    import torch
    import torch.nn.functional as F

    length = max(len(d.tokens) for d in part)
    tokens = np.full((len(part), length), pad, dtype=np.int64)
    mask = np.zeros((len(part), length), dtype=bool)
    for row, d in enumerate(part):
        tokens[row, : len(d.tokens)] = d.tokens
        mask[row, : len(d.mask)] = d.mask
    ids, targets = torch.from_numpy(tokens), torch.from_numpy(mask[:, 1:])
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bfloat16"):
        # right padding: causal attention alone keeps padding out of every target
        hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        logits = model.lm_head(hidden[targets]).float()
    return F.cross_entropy(logits, ids[:, 1:][targets], reduction="sum")


def train(
    model,
    demonstrator: Demonstrator,
    config: SFTConfig,
    on_step: Callable[[SFTProgress], None] = lambda progress: None,
    checkpoint: Path | None = None,
) -> None:
    """Train ``model`` in place; ``on_step`` sees every step.

    With a ``checkpoint`` file, the state is kept there every ``checkpoint_every`` steps, and a
    killed training goes on from it to the same weights; ``on_step`` then sees the steps before
    again, from the file.

    Raises
    ------
    WorkbenchError
        a checkpoint that cannot be read, or one of other settings, demonstrations or model.
    """
    import torch

    optimiser = torch.optim.AdamW(
        model.parameters(), lr=config.lr, betas=(0.9, 0.98), weight_decay=config.weight_decay
    )
    settings = {
        "training": config.model_dump(mode="json"),
        "demonstrations": demonstrator.config.model_dump(mode="json"),
    }
    log = _resume(checkpoint, model, optimiser, settings)
    for progress in log:
        on_step(progress)
    pad = model.config.pad_token_id
    model.train()
    for step, batch in enumerate(step_batches(demonstrator, config, len(log)), start=len(log)):
        targets = sum(int(d.mask[1:].sum()) for d in batch)
        total = 0.0
        for part in micro_batches(batch, config.micro_tokens):
            loss = target_loss(model, part, pad, config.dtype)
            (loss / targets).backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
        factor = lr_factor(step, config)
        for group in optimiser.param_groups:
            group["lr"] = config.lr * factor
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        log.append(SFTProgress(step, total / targets, sum(len(d.tokens) for d in batch), factor))
        on_step(log[-1])
        if checkpoint is not None and len(log) % config.checkpoint_every == 0:
            _keep(checkpoint, model, optimiser, settings, log)
    model.eval()


def _keep(path: Path, model, optimiser, settings: dict, log: list[SFTProgress]) -> None:
    """Write the training state, complete or not at all."""
    import torch

    state = {
        "settings": settings,
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "log": [astuple(progress) for progress in log],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    torch.save(state, part)
    os.replace(part, path)


def _resume(path: Path | None, model, optimiser, settings: dict) -> list[SFTProgress]:
    """Load a kept state into model and optimiser; the steps that it has behind it."""
    import torch

    if path is None or not path.is_file():
        return []
    anew = "delete it to start anew"
    try:
        state = torch.load(path, weights_only=True)
        log = [SFTProgress(*values) for values in state["log"]]
        kept, weights, moments = state["settings"], state["model"], state["optimiser"]
    except _UNREADABLE as error:
        raise WorkbenchError(f"not a readable checkpoint: {error}", where=path, fix=anew) from error
    if kept != settings:
        raise WorkbenchError("the checkpoint is of other settings", where=path, fix=anew)
    try:
        model.load_state_dict(weights)
        optimiser.load_state_dict(moments)
    except (RuntimeError, ValueError, KeyError) as error:
        raise WorkbenchError("the checkpoint is of another model", where=path, fix=anew) from error
    return log
