"""The update over merged weights: what ``workbench.engines.lean`` is to rollouts, with gradients.

A LoRA layer computes x·Wᵀ + x·Aᵀ·Bᵀ and differentiates both terms.  Here the forward pass and
the gradient of the input use W + B·A at once, and only the gradients of A and B, of rank r, are
products of their own.  Everything else is as in the engine: fused products, packed attention
inputs, and in the last layer only the predictors of selected tokens go on behind the keys and
values.  Adapters, residual stream and gradients are float32; products are in ``dtype``.

The gradient is that of the adapter model up to rounding; it equals it to float32 tolerance in
float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..engines.fused import Part, fusible, head_norms, parts, shape_of
from ..engines.replica import plain_model
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
        rows, width = chunk.ids.shape
        positions = torch.arange(width).expand(rows, width)
        positions = positions if chunk.positions is None else chunk.positions
        if (mask := chunk.mask) is None:
            mask = torch.full((width, width), float("-inf")).triu_(1).expand(rows, 1, -1, -1)
        mask = self._spread(mask)
        turn = self._turns[positions.flatten()][:, None]
        x = self._embedding[chunk.ids.flatten()].float()
        for layer in range(shape.layers - 1):
            h = _Norm.apply(x, shape.eps, self._dtype)
            query, rest = self._product((layer, "qkv"), h, reference).tensor_split([shape.query], 1)
            key, value = rest.tensor_split(2, 1)
            query, key = self._turned(layer, query, key, turn, turn)
            query = query.unflatten(0, (rows, width)).transpose(1, 2)
            x = self._behind(layer, x, self._seen(query, key, value, mask), reference)
        return self._last(chunk, x, turn, mask, reference)

    def _last(self, chunk: Chunk, x: Tensor, turn: Tensor, mask: Tensor, reference: bool) -> Tensor:
        """The last layer: keys and values of all tokens, the rest at the predictors."""
        shape, layer = self._shape, self._shape.layers - 1
        rows, width = chunk.ids.shape
        row, place, at = chunk.batch, chunk.time, chunk.batch * width + chunk.time
        counts = torch.bincount(row, minlength=rows)
        most = int(counts.max())
        seat = row * most + torch.arange(len(at)) - (counts.cumsum(0) - counts)[row]
        h = _Norm.apply(x, shape.eps, self._dtype)
        key, value = self._product((layer, "kv"), h, reference).tensor_split(2, 1)
        query = self._product((layer, "q"), h[at], reference)
        query, key = self._turned(layer, query, key, turn[at], turn)
        seats = query.new_zeros(rows * most, shape.heads, shape.head).index_copy(0, seat, query)
        seats = seats.unflatten(0, (rows, most)).transpose(1, 2)
        seen = torch.zeros(rows * most, dtype=torch.long).index_copy_(0, seat, place)
        groups, heads = shape.heads // shape.kv_heads, shape.kv_heads
        mask = mask.view(rows, heads, groups, width, width)[:, 0, 0]
        mask = mask[torch.arange(rows)[:, None], seen.view(rows, most)][:, None]
        attended = self._seen(seats, key, value, self._spread(mask))[seat]
        x = self._behind(layer, x[at], attended, reference)
        return _Norm.apply(x, shape.eps, torch.float32) * self._gain

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits float32 [n, V]."""
        return F.linear(hidden.to(self._dtype), self._head, self._head_bias).float()

    def _product(self, key: Key, x: Tensor, reference: bool) -> Tensor:
        if reference:
            return F.linear(x, self._frozen[key], self._biases[key])
        leaves = self._leaves.get(key)
        if leaves is None:
            return F.linear(x, self._weights[key], self._biases[key])
        return _MergedLinear.apply(x, self._weights[key], self._biases[key], *leaves)

    def _turned(
        self, layer: int, query: Tensor, key: Tensor, query_turn: Tensor, turn: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Query [m, heads, d] and key [T, kv heads, d], rotated."""
        shape = self._shape
        found = []
        gains = self._norms[layer] or (None, None)
        for x, heads, by, gain in zip(
            (query, key), (shape.heads, shape.kv_heads), (query_turn, turn), gains
        ):
            x = x.unflatten(1, (heads, shape.head))
            if gain is not None:
                x = _Norm.apply(x.float(), shape.eps, torch.float32) * gain
            found.append(_Rotate.apply(x, by, self._dtype))
        return found[0], found[1]

    def _spread(self, mask: Tensor) -> Tensor:
        """Mask [B, 1, w, L] as [B * kv heads, groups * w, L] in the products' dtype."""
        groups = self._shape.heads // self._shape.kv_heads
        mask = mask.to(self._dtype).expand(-1, self._shape.kv_heads, -1, -1)
        return mask.repeat(1, 1, groups, 1).flatten(0, 1)

    def _seen(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """[B * w, heads * d] of query [B, heads, w, d], key and value [B * L, kv heads * d]."""
        shape = self._shape
        rows, _, width, _ = query.shape
        key, value = (
            t.reshape(rows, -1, shape.kv_heads, shape.head).transpose(1, 2).flatten(0, 1)
            for t in (key, value)
        )
        query = query.reshape(len(key), -1, shape.head)
        scores = torch.baddbmm(mask, query, key.transpose(1, 2))
        weights = scores.softmax(-1, torch.float32).to(self._dtype)
        out = torch.bmm(weights, value).view(rows, shape.heads, width, shape.head)
        return out.transpose(1, 2).reshape(rows * width, shape.query)

    def _behind(self, layer: int, x: Tensor, attended: Tensor, reference: bool) -> Tensor:
        x = x + self._product((layer, "out"), attended, reference)
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
    """x·weightᵀ + bias with weight = W + up·down; gradients for x, down [R, in], up [out, R]."""

    @staticmethod
    def forward(ctx, x, weight, bias, down, up):
        ctx.save_for_backward(x, weight, down.to(x.dtype), up.to(x.dtype))
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, grad):
        x, weight, down, up = ctx.saved_tensors
        grad_x = grad @ weight if ctx.needs_input_grad[0] else None
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
    """Pairs (2i, 2i + 1) of x [T, heads, d] turned by complex64 [T, 1, d / 2]."""

    @staticmethod
    def forward(ctx, x, turn, dtype):
        ctx.save_for_backward(turn)
        ctx.dtype = x.dtype
        return _turned(x, turn).to(dtype)

    @staticmethod
    def backward(ctx, grad):
        (turn,) = ctx.saved_tensors
        return _turned(grad, turn.conj()).to(ctx.dtype), None, None


def _turned(x: Tensor, turn: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2)
