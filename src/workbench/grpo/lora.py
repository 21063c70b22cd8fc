"""The trained policy, its reference and the copy that rolls out.

With LoRA the reference policy is the same model with its adapters disabled, and rollouts run
on a plain copy whose weights are W + scale·B·A, so that decoding pays nothing for the
adapters; the base weights themselves are never touched.  Fully trained, the reference is a
frozen copy and the model rolls out itself.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import torch
from torch import nn

from ..errors import WorkbenchError
from ..seeding import seed_of
from .config import GRPOConfig


class Policy:
    """A causal LM under training.

    Attributes
    ----------
    model : what is trained (a PeftModel under "lora").
    rollout_model : what the engine runs; ``sync`` brings it up to date.
    parameters : the trained tensors by name, float32.
    """

    def __init__(self, model: nn.Module, config: GRPOConfig, seed: int):
        self._lora = config.trained == "lora"
        self._frozen: nn.Module | None = None
        if self._lora:
            self.rollout_model = copy.deepcopy(model).eval().requires_grad_(False)
            self.model = _wrap(model, config, seed)
        else:
            if config.objective.kl_coefficient:
                self._frozen = copy.deepcopy(model).eval().requires_grad_(False)
            self.model = self.rollout_model = model.requires_grad_(True)
        if config.attention is not None:
            for trained in filter(None, (self.causal_lm, self._frozen)):
                trained.set_attn_implementation(config.attention)
        self.parameters = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        for name, parameter in self.parameters.items():
            if parameter.dtype != torch.float32:
                raise WorkbenchError(
                    f"the trained weights must be float32, {name} is {parameter.dtype}",
                    fix="load the policy in float32; grpo.dtype sets the update's arithmetic",
                )
        self.model.eval()
        self.sync()

    @property
    def causal_lm(self) -> nn.Module:
        """The transformers model inside."""
        return self.model.get_base_model() if self._lora else self.model

    @contextmanager
    def reference(self) -> Iterator[nn.Module]:
        """The causal LM computing as the reference policy, inside a ``with`` block."""
        if self._lora:
            with self.model.disable_adapter():
                yield self.causal_lm
        elif self._frozen is None:
            raise WorkbenchError("no reference policy is kept when kl_coefficient is 0")
        else:
            yield self._frozen

    def arithmetic(self, dtype: str):
        """Context of the update's matrix products: autocast under "bfloat16"."""
        if dtype == "float32":
            return nullcontext()
        stack = ExitStack()
        if self._lora:
            from peft.helpers import disable_input_dtype_casting

            # peft would cast each adapter's input to float32 and autocast would cast it back.
            stack.enter_context(disable_input_dtype_casting(self.model))
        device = next(iter(self.parameters.values())).device.type
        stack.enter_context(torch.autocast(device, torch.bfloat16))
        return stack

    @torch.no_grad()
    def sync(self) -> None:
        """Write W + scale·B·A into the rollout model."""
        if not self._lora:
            return
        from peft.tuners.lora import LoraLayer

        for name, layer in self.causal_lm.named_modules():
            if isinstance(layer, LoraLayer):
                merged = layer.get_base_layer().weight + layer.get_delta_weight("default")
                self.rollout_model.get_submodule(name).weight.copy_(merged)

    def save(self, folder: Path) -> None:
        """The adapter (peft's format) or, fully trained, the model, as safetensors."""
        self.model.save_pretrained(folder)


def _wrap(model: nn.Module, config: GRPOConfig, seed: int) -> nn.Module:
    import peft

    targets = config.lora.targets
    adapters = peft.LoraConfig(
        r=config.lora.rank,
        lora_alpha=config.lora.alpha,
        lora_dropout=config.lora.dropout,
        target_modules=targets if isinstance(targets, str) else list(targets),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of("lora-init", seed))
        try:
            wrapped = peft.get_peft_model(model, adapters)
        except ValueError as error:
            raise WorkbenchError(
                str(error), where="grpo.lora.targets", fix="name linear layers of the model"
            ) from None
    # The folder a policy was loaded from says nothing to a reader of the adapter elsewhere.
    wrapped.peft_config["default"].base_model_name_or_path = None
    return wrapped
