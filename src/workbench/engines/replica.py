"""A plain copy of a policy for inference: adapters merged, dtype its own.

Running a LoRA model costs two more products per linear layer and step.  A replica has the
weights W + scale·B·A in the plain architecture, so rollouts pay nothing for the adapters, and
the trained parameters are never touched.  ``refresh`` takes milliseconds for small models.

Exactness: in float32 the replica's log-probs agree with the adapter model's to about 1e-5
(one rounding of W + scale·B·A against two products summed); equal adapters give equal bits.
"""

from __future__ import annotations

import copy

import torch
from torch import nn


def plain_model(model: nn.Module) -> nn.Module:
    """The transformers causal LM inside ``model`` (itself unless a PeftModel)."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def mergeable(model: nn.Module) -> bool:
    """Whether ``model`` has nothing but ordinary LoRA adapters on linear layers.

    DoRA and other variants, adapted embeddings, adapted tied heads and ``modules_to_save``
    run as they are instead.
    """
    from peft.tuners.lora import Linear
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils import ModulesToSaveWrapper, TrainableTokensWrapper

    base = plain_model(model)
    if base is model:
        return False
    heads = {id(base.get_input_embeddings()), id(base.get_output_embeddings())}
    for module in base.modules():
        if isinstance(module, ModulesToSaveWrapper | TrainableTokensWrapper):
            return False
        if isinstance(module, BaseTunerLayer):
            ordinary = type(module) is Linear and isinstance(module.get_base_layer(), nn.Linear)
            if not ordinary or module.lora_variant or any(module.lora_bias.values()):
                return False
            if id(module) in heads and base.config.tie_word_embeddings:
                return False
    return True


class Replica:
    """Copy of ``model`` as a plain causal LM in ``dtype``, frozen and in eval mode.

    ``model`` is a plain transformers model or a ``mergeable`` PeftModel.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype):
        plain = copy.deepcopy(model)
        if plain_model(model) is not model:
            plain = plain.unload()
        for parameter in plain.parameters():
            parameter.grad = None
        self.model = plain.requires_grad_(False).to(dtype).eval()
        self.refresh(model)

    @torch.no_grad()
    def refresh(self, model: nn.Module) -> None:
        """Take over the weights of ``model`` as they are now, active adapters merged."""
        from peft.tuners.lora import Linear

        base = plain_model(model)
        modules = dict(base.named_modules())
        for name, target in self.model.named_modules():
            source = modules[name]
            adapted = isinstance(source, Linear)
            origin = source.get_base_layer() if adapted else source
            for key, parameter in target.named_parameters(recurse=False):
                parameter.copy_(getattr(origin, key))
            if adapted and not (source.merged or source.disable_adapters):
                for adapter in source.active_adapters:
                    if adapter in source.lora_A:
                        weight = target.weight.data
                        weight.copy_(origin.weight + source.get_delta_weight(adapter))
