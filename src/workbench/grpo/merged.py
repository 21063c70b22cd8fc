"""The update over merged weights: what ``workbench.engines.lean`` is to rollouts, with gradients.

A LoRA layer computes x·Wᵀ + x·Aᵀ·Bᵀ and differentiates both terms.  Here the forward pass and
the gradient of the input use W + B·A at once, and only the gradients of A and B, of rank r, are
products of their own.  Everything else is as in the engine: fused products, packed tokens,
and in the last layer only the predictors of selected tokens go on behind the keys and
values.  Adapters, attention, residual stream and gradients are float32; products with weights
are in ``dtype``.

The gradient is that of the adapter model up to rounding; it equals it to float32 tolerance in
float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..engines.fused import Part, fusible, head_norms, parts, shape_of
from ..engines.lean import padded
from ..engines.replica import plain_model
from .branches import BranchAttention, at, blocks, branches
from .forward import Chunk

Key = tuple[int, str]


def applicable(model: nn.Module) -> bool:
    """Whether a PeftModel's update can run here: a known decoder, no dropout, adapters alone."""
    if plain_model(model) is model or not fusible(model):
        return False
    dropouts = [m for name, m in model.named_modules() if ".lora_dropout." in name]
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    return (
        not any(isinstance(m, nn.Dropout) and m.p > 0 for m in dropouts)
        and not plain_model(model).config.attention_dropout
        and all(".lora_A." in name or ".lora_B." in name for name in trained)
    )


class MergedForward:
    """Hidden states and logits of the policy, and of its reference, for one update.

    ``refresh`` takes over the adapters as they are; ``push_gradients`` hands what ``backward``
    has summed since then on to them.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype):
        self._plain, self._dtype = plain_model(model), dtype
        self._shape = shape_of(self._plain)
        self._parts: dict[Key, Part] = {
            (part.layer, part.name): part for part in parts(self._plain, split_last=True)
        }
        with torch.no_grad():
            self._base = {key: part.base() for key, part in self._parts.items()}
            self._biases = {
                key: None if bias is None else bias.to(dtype)
                for key, (_, bias) in self._base.items()
            }
            self._frozen = {key: weight.to(dtype) for key, (weight, _) in self._base.items()}
            self._norms = head_norms(self._plain)
            self._gain = self._plain.get_decoder().norm.weight.detach().float()
            self._embedding = self._plain.get_input_embeddings().weight.detach()
            head = self._plain.get_output_embeddings()
            self._head = head.weight.detach().to(dtype)
            self._head_bias = None if head.bias is None else head.bias.detach().to(dtype)
        self._turns = self._shape.rotation(self._plain.config.max_position_embeddings)
        self._weights: dict[Key, Tensor] = {}
        self._adapters: dict[Key, tuple[Tensor, Tensor]] = {}
        self._leaves: dict[Key, tuple[Tensor, Tensor]] = {}

    def refresh(self) -> None:
        """Merge the adapters as they are now."""
        self._weights, self._adapters, self._leaves = {}, {}, {}
        for key, part in self._parts.items():
            with torch.enable_grad():
                adapters = part.adapters()
            if adapters is None:
                self._weights[key] = self._frozen[key]
                continue
            down, up = (tensor.detach() for tensor in adapters)
            self._adapters[key] = adapters
            self._leaves[key] = down.requires_grad_(), up.requires_grad_()
            with torch.no_grad():
                merged = torch.addmm(self._base[key][0], up, down)
            self._weights[key] = merged.to(self._dtype)

    def push_gradients(self) -> None:
        """Add the gradients of the fused adapters to those of the adapters themselves."""
        tensors, gradients = [], []
        for key, adapters in self._adapters.items():
            for tensor, leaf in zip(adapters, self._leaves[key], strict=True):
                if leaf.grad is not None and tensor.requires_grad:
                    tensors.append(tensor)
                    gradients.append(leaf.grad)
        if tensors:
            torch.autograd.backward(tensors, gradients)
        self._adapters, self._leaves = {}, {}

    def hidden(self, chunk: Chunk, reference: bool = False) -> Tensor:
        """Final hidden states float32 [u, H] at the predictors of the selected tokens.

        Of the reference policy (no adapters, no gradient) with ``reference``.
        """
        shape = self._shape
        tokens, depth = (
            torch.as_tensor(np.concatenate(parts), dtype=torch.int64)
            for parts in zip(*((tree.tokens, tree.depth) for tree in chunk.trees))
        )
        found = branches(chunk.trees)
        everywhere = blocks(found)
        turn = self._turns[depth][:, None]
        x = self._embedding[tokens].float()
        for layer in range(shape.layers - 1):
            h = _Norm.apply(x, shape.eps, self._dtype)
            query, rest = self._product((layer, "qkv"), h, reference).tensor_split([shape.query], 1)
            query, key, value = self._split(layer, query, rest, turn, turn)
            seen = BranchAttention.apply(query, key, value, everywhere)
            x = self._behind(layer, x, seen, reference)
        # The last layer: keys and values of all tokens, the rest at the predictors.
        layer, nodes = shape.layers - 1, chunk.nodes
        h = _Norm.apply(x, shape.eps, self._dtype)
        rest = self._product((layer, "kv"), h, reference)
        query = self._product((layer, "q"), h[nodes], reference)
        query, key, value = self._split(layer, query, rest, turn[nodes], turn)
        seen = BranchAttention.apply(query, key, value, blocks(at(found, nodes.numpy())))
        x = self._behind(layer, x[nodes], seen, reference)
        return _Norm.apply(x, shape.eps, torch.float32) * self._gain

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits float32 [n, V]."""
        x = hidden.to(self._dtype)
        return _MergedLinear.apply(x, self._head, self._head_bias, None, None).float()

    def _product(self, key: Key, x: Tensor, reference: bool) -> Tensor:
        weight = self._frozen[key] if reference else self._weights[key]
        leaves = self._leaves.get(key, (None, None)) if not reference else (None, None)
        return _MergedLinear.apply(x, weight, self._biases[key], *leaves)

    def _split(
        self, layer: int, query: Tensor, rest: Tensor, query_turn: Tensor, turn: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Query [m, heads, d], key and value [T, kv heads, d], the first two rotated."""
        shape = self._shape
        key, value = rest.unflatten(1, (2, shape.kv_heads, shape.head)).unbind(1)
        query = query.unflatten(1, (shape.heads, shape.head))
        if (gains := self._norms[layer]) is not None:
            query, key = (
                _Norm.apply(x.float(), shape.eps, torch.float32) * gain
                for x, gain in zip((query, key), gains)
            )
        return _Rotate.apply(query, query_turn), _Rotate.apply(key, turn), value.float()

    def _behind(self, layer: int, x: Tensor, attended: Tensor, reference: bool) -> Tensor:
        x = x + self._product((layer, "out"), attended.to(self._dtype), reference)
        h = _Norm.apply(x, self._shape.eps, self._dtype)
        both = self._product((layer, "gate_up"), h, reference)
        return x + self._product((layer, "down"), _Gated.apply(both), reference)


@dataclass(frozen=True, slots=True)
class MergedPass:
    """A ``Pass`` of the policy or its reference."""

    forward: MergedForward
    reference: bool = False

    def hidden(self, chunk: Chunk) -> Tensor:
        return self.forward.hidden(chunk, self.reference)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.forward.logits(hidden)


class _MergedLinear(torch.autograd.Function):
    """x·weightᵀ + bias with weight = W + up·down; gradients for x, down [R, in], up [out, R].

    ``down`` and ``up`` are None where nothing is adapted.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, down, up):
        count, x = len(x), padded(x)
        adapters = () if down is None else (x, down.to(x.dtype), up.to(x.dtype))
        ctx.save_for_backward(weight, *adapters)
        return F.linear(x, weight, bias)[:count]

    @staticmethod
    def backward(ctx, grad):
        weight, *adapters = ctx.saved_tensors
        count, grad = len(grad), padded(grad)
        grad_x = (grad @ weight)[:count] if ctx.needs_input_grad[0] else None
        if not adapters:
            return grad_x, None, None, None, None
        x, down, up = adapters
        grad_down = (grad @ up).t() @ x
        grad_up = (F.linear(x, down).t() @ grad).t()
        return grad_x, None, None, grad_down.float(), grad_up.float()


class _Norm(torch.autograd.Function):
    """x / rms(x) over the last dimension of a float32 x, in ``dtype``."""

    @staticmethod
    def forward(ctx, x, eps, dtype):
        scale = x.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
        out = torch.mul(x, scale).to(dtype)
        ctx.save_for_backward(out, scale)
        return out

    @staticmethod
    def backward(ctx, grad):
        out, scale = ctx.saved_tensors
        out, grad = out.float(), grad.float()
        along = torch.linalg.vecdot(grad, out).mul_(1 / out.shape[-1]).unsqueeze(-1)
        return torch.addcmul(grad, out, along, value=-1).mul_(scale), None, None


class _Gated(torch.autograd.Function):
    """silu(gate)·up of [T, 2 I]."""

    @staticmethod
    def forward(ctx, both):
        ctx.save_for_backward(both)
        gate, up = both.tensor_split(2, 1)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx, grad):
        (both,) = ctx.saved_tensors
        gate, up = both.tensor_split(2, 1)
        out = torch.empty_like(both)
        grad_gate, grad_up = out.tensor_split(2, 1)
        torch.mul(grad, F.silu(gate), out=grad_up)
        grad_gate.copy_(torch.ops.aten.silu_backward(grad * up, gate))
        return out


class _Rotate(torch.autograd.Function):
    """Pairs (2i, 2i + 1) of x [T, heads, d] turned by complex64 [T, 1, d / 2], in float32."""

    @staticmethod
    def forward(ctx, x, turn):
        ctx.save_for_backward(turn)
        ctx.dtype = x.dtype
        return _turned(x, turn)

    @staticmethod
    def backward(ctx, grad):
        (turn,) = ctx.saved_tensors
        return _turned(grad, turn.conj()).to(ctx.dtype), None


def _turned(x: Tensor, turn: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2)
