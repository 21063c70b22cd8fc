"""Weights of a decoder as a lean forward pass wants them: few products, adapters merged.

Only architectures that are known exactly are fused: Llama, Qwen2 and Qwen3.  What is done to
the weights never changes what they compute beyond rounding:

- query, key and value are one product, gate and up another;
- the gain of an RMSNorm is multiplied into the columns of the products behind it;
- the attention's 1/sqrt(head size) is in the query's rows;
- rows of a query or key head are reordered from transformers' halves (i, i + d/2) to pairs
  (2i, 2i + 1), in which a rotary embedding is one complex product.  Scores are sums over these
  rows, so the order does not matter to them;
- LoRA adapters are B·A of the fused product, with B block-diagonal over its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .replica import mergeable, plain_model

_KNOWN = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


def fusible(model: nn.Module) -> bool:
    """Whether ``model`` (plain, or with ordinary LoRA adapters) is one of the known decoders.

    Quantised or otherwise replaced layers, rotary embeddings other than the default one and
    models on an accelerator run as transformers runs them.
    """
    import transformers

    plain = plain_model(model)
    config = plain.config
    rope = getattr(config, "rope_parameters", None) or {}
    if (
        type(plain) not in [getattr(transformers, name) for name in _KNOWN]
        or (plain is not model and not mergeable(model))
        or config.hidden_act != "silu"
        or rope.get("rope_type") != "default"
        or rope.get("partial_rotary_factor", 1.0) != 1.0
    ):
        return False
    layers = [_base(module) for part in parts(plain) for module in part.modules]
    return all(
        type(layer) is nn.Linear and layer.weight.device.type == "cpu" for layer in layers
    ) and not getattr(plain, "hf_quantizer", None)


@dataclass(slots=True)
class Part:
    """One fused product of layer ``layer``: what it is made of.

    ``gain`` [in] multiplies its columns, ``scale`` float [out] and then ``order`` int64 [out]
    apply to its rows; None leaves them.
    """

    layer: int
    name: str
    modules: list[nn.Module]
    gain: Tensor | None = None
    scale: Tensor | None = None
    order: Tensor | None = None

    def base(self) -> tuple[Tensor, Tensor | None]:
        """Weight [out, in] without adapters and bias [out], float32, new tensors."""
        linears = [_base(module) for module in self.modules]
        weight = self._rows(torch.cat([linear.weight.float() for linear in linears]))
        bias = None
        if any(linear.bias is not None for linear in linears):
            found = [
                linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
                for linear in linears
            ]
            bias = self._rows(torch.cat([part.float() for part in found]))
        return weight if self.gain is None else weight * self.gain.float(), bias

    def adapters(self) -> tuple[Tensor, Tensor] | None:
        """``down`` [R, in] and ``up`` [out, R] with up·down to be added to the weight.

        Differentiable in the adapters' weights; None without active adapters.
        """
        downs, ups = [], []
        for module in self.modules:
            found = list(_active(module))
            downs += [a for a, _ in found]
            blocks = [b for _, b in found]
            ups.append(torch.cat(blocks, 1) if blocks else _base(module).weight.new_zeros(
                _base(module).out_features, 0
            ))  # fmt: skip
        if not downs:
            return None
        down, up = torch.cat(downs).float(), self._rows(torch.block_diag(*ups).float())
        return down if self.gain is None else down * self.gain.float(), up

    def _rows(self, values: Tensor) -> Tensor:
        if self.scale is not None:
            values = values * (self.scale if values.ndim == 1 else self.scale[:, None])
        return values if self.order is None else values[self.order]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a decoder; ``eps`` is that of its norms, ``inverse`` float32 [head/2]."""

    layers: int
    heads: int
    kv_heads: int
    head: int
    eps: float
    inverse: Tensor

    @property
    def query(self) -> int:
        """Columns of all query heads."""
        return self.heads * self.head

    def rotation(self, positions: int) -> Tensor:
        """Rotary factors complex64 [positions, head/2]."""
        angles = torch.arange(positions, dtype=torch.float32)[:, None] * self.inverse
        return torch.complex(angles.cos(), angles.sin())


def shape_of(plain: nn.Module) -> Shape:
    """The sizes of a known decoder."""
    decoder, config = plain.get_decoder(), plain.config
    attention = decoder.layers[0].self_attn
    return Shape(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head=attention.head_dim,
        eps=config.rms_norm_eps,
        inverse=decoder.rotary_emb.inv_freq.float(),
    )


def parts(plain: nn.Module, split_last: bool = False) -> Iterator[Part]:
    """The products "qkv", "out", "gate_up" and "down" of every layer.

    With ``split_last`` the last layer has "q" and "kv" instead of "qkv".
    """
    shape = shape_of(plain)
    pairs = torch.arange(shape.head).view(2, -1).t().flatten()
    normed = getattr(plain.get_decoder().layers[0].self_attn, "q_norm", None) is not None
    for number, layer in enumerate(plain.get_decoder().layers):
        attention, mlp, gain = layer.self_attn, layer.mlp, layer.input_layernorm.weight
        query, key, value = attention.q_proj, attention.k_proj, attention.v_proj
        order = (torch.arange(shape.heads)[:, None] * shape.head + pairs).flatten()
        # Behind a query's own norm the scale would be divided out again: it is in the gain.
        scale = torch.full((shape.query,), 1.0 if normed else shape.head**-0.5)
        size = shape.kv_heads * shape.head
        rest = torch.cat([order[:size], torch.arange(size, 2 * size)])
        if split_last and number == shape.layers - 1:
            yield Part(number, "q", [query], gain, scale, order)
            yield Part(number, "kv", [key, value], gain, None, rest)
        else:
            scale = torch.cat([scale, torch.ones(2 * size)])
            order = torch.cat([order, shape.query + rest])
            yield Part(number, "qkv", [query, key, value], gain, scale, order)
        yield Part(number, "out", [attention.o_proj])
        behind = layer.post_attention_layernorm.weight
        yield Part(number, "gate_up", [mlp.gate_proj, mlp.up_proj], behind)
        yield Part(number, "down", [mlp.down_proj])


def head_norms(plain: nn.Module) -> list[tuple[Tensor, Tensor] | None]:
    """Gains [head] of the query's and key's own norms by layer (Qwen3), else None.

    Reordered like the rows; the query's with 1/sqrt(head size) in it.
    """
    found: list[tuple[Tensor, Tensor] | None] = []
    for layer in plain.get_decoder().layers:
        attention = layer.self_attn
        if getattr(attention, "q_norm", None) is None:
            found.append(None)
            continue
        pairs = torch.arange(attention.head_dim).view(2, -1).t().flatten()
        query = attention.q_norm.weight.float()[pairs] * attention.head_dim**-0.5
        found.append((query, attention.k_norm.weight.float()[pairs]))
    return found


def _base(module: nn.Module) -> nn.Module:
    return module.get_base_layer() if hasattr(module, "get_base_layer") else module


def _active(module: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """A [r, in] and scaled B [out, r] of each active adapter of a LoRA layer."""
    if not hasattr(module, "get_base_layer") or module.merged or module.disable_adapters:
        return
    for name in module.active_adapters:
        if name in module.lora_A:
            up = module.lora_B[name].weight * module.scaling[name]
            yield module.lora_A[name].weight, up
