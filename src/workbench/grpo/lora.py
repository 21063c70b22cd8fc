"""The trained policy and its reference.

With LoRA the reference policy is the same model with its adapters disabled; trained in full,
it is a frozen copy.  How rollouts run the policy is the engine's matter: it is told to
``refresh`` after each step.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

import torch
from torch import nn

from ..engines.dtype import compute_dtype
from ..errors import WorkbenchError
from ..seeding import seed_of
from .config import GRPOConfig
from .merged import applicable


class Policy:
    """A causal LM under training.

    Attributes
    ----------
    model : what is trained (a PeftModel under "lora").
    parameters : the trained tensors by name, float32.
    lean : whether it is updated through ``workbench.grpo.merged``.
    compute : the arithmetic of the update's products and why.
    """

    def __init__(self, model: nn.Module, config: GRPOConfig, seed: int):
        self._lora = config.trained == "lora"
        self._frozen: nn.Module | None = None
        self._attention = config.attention
        if self._lora:
            self.model = _wrap(model, config, seed)
        else:
            if config.objective.kl_coefficient:
                self._frozen = copy.deepcopy(model).eval().requires_grad_(False)
            self.model = model.requires_grad_(True)
        first = next(model.parameters())
        weights = sum(p.numel() for p in model.parameters())
        self.lean = config.lean and applicable(self.model)
        self.compute = compute_dtype(config.dtype, first.device, weights, lean=self.lean)
        self.parameters = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        for name, parameter in self.parameters.items():
            if parameter.dtype != torch.float32:
                raise WorkbenchError(
                    f"the trained weights must be float32, {name} is {parameter.dtype}",
                    fix="load the policy in float32; grpo.dtype sets the update's arithmetic",
                )
        self.model.eval()

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

    @contextmanager
    def updating(self) -> Iterator[None]:
        """The update's attention implementation, inside a ``with`` block."""
        models = [m for m in (self.causal_lm, self._frozen) if m is not None]
        before = self.causal_lm.config._attn_implementation
        if self._attention not in (None, before):
            for model in models:
                model.set_attn_implementation(self._attention)
        try:
            yield
        finally:
            if self._attention not in (None, before):
                for model in models:
                    model.set_attn_implementation(before)

    def arithmetic(self) -> AbstractContextManager:
        """Context of the update's matrix products: autocast under "bfloat16"."""
        if self.compute.name == "float32":
            return nullcontext()
        stack = ExitStack()
        if self._lora:
            from peft.helpers import disable_input_dtype_casting

            # peft would cast each adapter's input to float32 and autocast would cast it back.
            stack.enter_context(disable_input_dtype_casting(self.model))
        device = next(iter(self.parameters.values())).device.type
        stack.enter_context(torch.autocast(device, torch.bfloat16))
        return stack

    def save(self, folder: Path) -> None:
        """The adapter (peft's format) or, fully trained, the model, as safetensors.

        Equal weights are equal files: peft writes the names of layers in the order of a set,
        which differs from process to process; here they are sorted.
        """
        self.model.save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)  # peft's empty model card
        config = folder / "adapter_config.json"
        if config.is_file():
            settings = json.loads(config.read_text())
            for name, value in settings.items():
                if name.endswith("_modules") and isinstance(value, list):
                    settings[name] = sorted(value)
            replace = config.with_name(f".{config.name}.part")
            replace.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")
            replace.rename(config)


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
