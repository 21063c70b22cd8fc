"""Settings of a GRPO run. Defaults are those of S1 §7.2 and S3 Table 2 where they name one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from ..config import Settings
from ..engines.base import Choice


class ObjectiveConfig(Settings):
    """Coefficients of the objective (S1 Eq. 10 and 13, S3 Table 2).

    ``epsilon`` is the half-width of the ratio clip; ``dual_clip`` bounds the surrogate of
    negative advantages from below by ``dual_clip * A`` (None: no bound, as in S1);
    ``entropy_coefficient`` is α_H, ``kl_coefficient`` β, ``kl_clip`` κ.
    """

    epsilon: float = Field(default=0.2, gt=0, lt=1)
    dual_clip: float | None = Field(default=None, gt=1)
    entropy_coefficient: float = Field(default=0.001, ge=0)
    kl_coefficient: float = Field(default=0.001, ge=0)
    kl_clip: float = Field(default=10.0, gt=0)


class LoraConfig(Settings):
    """Low-rank adapters; ``targets`` is "all-linear" (all but the output head) or names."""

    rank: int = Field(default=8, ge=1)
    alpha: float = Field(default=16.0, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: Literal["all-linear"] | tuple[str, ...] = "all-linear"


class OptimiserConfig(Settings):
    """AdamW; the learning rate rises linearly over the first ``warmup_ratio`` of all updates.

    ``max_grad_norm`` bounds the global gradient norm of an update.
    """

    lr: float = Field(default=1e-6, gt=0)
    warmup_ratio: float = Field(default=0.285, ge=0, le=1)
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)


class GRPOConfig(Settings):
    """One training run.

    Steps and batches: ``steps`` rollout batches of ``questions_per_step`` x ``group_size``
    rollouts, over all workers; each batch is used for ``epochs`` passes of one optimiser
    update per ``mini_batch_questions`` questions (None: the whole batch at once).
    ``micro_batch_rollouts`` is the averaging unit of S1 Eq. 12 per worker (None: the worker's
    whole share), not a memory setting: how many padded tokens go through the model at once is
    ``chunk_tokens`` and how many selected positions through its head ``head_rows``; neither
    changes the gradient.

    ``old_logprobs`` "recomputed" takes the log-probs of the policy that rolled out from the
    training forward pass (so ratios are exactly 1 in the first update of a batch), "rollout"
    takes those the engine recorded.  With ``top_p`` < 1 the engine's are those of the
    truncated distribution, so "rollout" is refused.

    ``trained`` is "lora" or "full".  ``dtype`` is the arithmetic of the update's matrix
    products (trained weights and optimiser stay float32 under "bfloat16"; "auto" is what the
    machine is fastest in, see ``workbench.engines.dtype``).  With ``lean`` a known decoder with
    LoRA on a CPU is updated through merged weights (``workbench.grpo.merged``); everything
    else, and everything without it, runs the transformers model, with ``attention`` as its
    implementation (None: leave the model's).

    ``share_prefixes`` sends what rollouts of a group have in common through the model once
    (``workbench.grpo.trees``).  It needs attention that takes a mask ("eager" or "sdpa"), of
    the square of a group's tokens: a gain for short rollouts, not for long ones.  On a CPU a
    2 M parameter policy is updated fastest with it and chunks of about 1,000 tokens
    (``benchmarks/grpo_step.py``).
    """

    steps: int = Field(ge=1)
    questions_per_step: int = Field(default=128, ge=1)
    group_size: int = Field(default=5, ge=1)
    mini_batch_questions: int | None = Field(default=32, ge=1)
    micro_batch_rollouts: int | None = Field(default=8, ge=1)
    epochs: int = Field(default=1, ge=1)
    temperature: float = Field(default=1.0, gt=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    old_logprobs: Literal["recomputed", "rollout"] = "recomputed"
    objective: ObjectiveConfig = ObjectiveConfig()
    trained: Literal["lora", "full"] = "lora"
    lora: LoraConfig = LoraConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    dtype: Choice = "float32"
    lean: bool = True
    attention: Literal["eager", "sdpa", "flash_attention_2"] | None = None
    share_prefixes: bool = False
    chunk_tokens: int = Field(default=4096, ge=1)
    head_rows: int = Field(default=512, ge=1)
    checkpoint_every: int = Field(default=10, ge=1)
    keep_checkpoints: int = Field(default=2, ge=1)
    eval_every: int | None = Field(default=None, ge=1)
    eval_temperature: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _agree(self) -> GRPOConfig:
        if self.old_logprobs == "rollout" and self.top_p < 1:
            raise ValueError(
                "old_logprobs 'rollout' needs top_p 1.0: the recorded log-probs are those of "
                "the truncated distribution; use 'recomputed'"
            )
        if self.share_prefixes and self.attention == "flash_attention_2":
            raise ValueError("share_prefixes needs attention with a mask: 'eager' or 'sdpa'")
        return self

    @property
    def updates_per_step(self) -> int:
        """Optimiser updates that one rollout batch gives."""
        return self.epochs * -(-self.questions_per_step // self.mini_batch)

    @property
    def mini_batch(self) -> int:
        """Questions of one optimiser update, over all workers."""
        return min(self.mini_batch_questions or self.questions_per_step, self.questions_per_step)

    def learning_rate(self, update: int) -> float:
        """Rate of optimiser update ``update`` (from 0): linear warm-up, then constant."""
        warmup = round(self.optimiser.warmup_ratio * self.steps * self.updates_per_step)
        return self.optimiser.lr * min(1.0, (update + 1) / max(1, warmup))
