"""A lean forward pass of known decoders (``workbench.engines.fused``) for inference on a CPU.

At a few million parameters a transformers model spends most of a decoding step in Python and
in small kernels.  Here a layer is four products and some twenty small operations, tokens are
packed without padding, and in the last layer only the positions that are asked for go on
behind the keys and values.  Products with weights are in the engine's dtype; the residual
stream, the cache and attention are float32, in which reading a cache on a CPU was measured to be
fastest.  Results equal the transformers model's up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .fused import Part, Shape, head_norms, parts, shape_of
from .replica import plain_model

# (layer, query [m, heads, d], key and value [T, kv heads, d]) -> [m, heads * d], all float32
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


class LeanDecoder:
    """Fused copies of a model's weights in ``dtype``; ``refresh`` takes them over anew."""

    def __init__(self, model: nn.Module, dtype: torch.dtype):
        self.dtype = dtype
        self.shape: Shape = shape_of(plain_model(model))
        self._weights: dict[tuple[int, str], Tensor] = {}
        self._biases: dict[tuple[int, str], Tensor | None] = {}
        self._turns = torch.empty(0, self.shape.head // 2, dtype=torch.complex64)
        self.refresh(model)

    @torch.no_grad()
    def refresh(self, model: nn.Module) -> None:
        """Take over the weights as they are now, active adapters merged."""
        plain = plain_model(model)
        for part in parts(plain):
            self._take(part)
        self._norms = head_norms(plain)
        self._embedding = plain.get_input_embeddings().weight
        self._gain = plain.get_decoder().norm.weight.float()
        head = plain.get_output_embeddings()
        self.head = head.weight.detach().to(self.dtype)
        self._head_bias = None if head.bias is None else head.bias.detach().to(self.dtype)

    def _take(self, part: Part) -> None:
        weight, bias = part.base()
        if (adapters := part.adapters()) is not None:
            down, up = adapters
            weight = torch.addmm(weight, up, down)
        self._weights[part.layer, part.name] = weight.to(self.dtype)
        self._biases[part.layer, part.name] = None if bias is None else bias.to(self.dtype)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits float32 [n, V] of hidden states [n, H]."""
        return product(hidden.to(self.dtype), self.head, self._head_bias).float()

    def causal(self, ids: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        """Final hidden states float32 [m, H] at (rows, places) of right-padded ids [n, width]."""
        count, width = ids.shape
        positions = torch.arange(width).expand(count, width).flatten()
        groups = self.shape.heads > self.shape.kv_heads

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            batch = (t.unflatten(0, (count, width)).transpose(1, 2) for t in (query, key, value))
            out = F.scaled_dot_product_attention(
                *batch, is_causal=True, scale=1.0, enable_gqa=groups
            )
            return out.transpose(1, 2).flatten(2).flatten(0, 1)

        return self.run(ids.flatten(), positions, attend)[rows * width + places]

    def run(
        self, ids: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None = None
    ) -> Tensor:
        """Packed tokens int64 [T] at ``positions`` int64 [T] through all layers.

        ``attend`` sees each layer's query, key and value, rotated and the query scaled; in the
        last layer it gets the queries of ``wanted`` int64 [m] only.  Returns final hidden
        states float32 [m, H], or [T, H] when ``wanted`` is None.
        """
        shape = self.shape
        x = self._embedding[ids].float()
        turn = self._turn(positions)
        for layer in range(shape.layers):
            weight, bias = self._weights[layer, "qkv"], self._biases[layer, "qkv"]
            h, split, query_turn = self._normed(x), shape.query, turn
            if wanted is not None and layer == shape.layers - 1:
                query = product(h[wanted], weight[:split], None if bias is None else bias[:split])
                rest = product(h, weight[split:], None if bias is None else bias[split:])
                query_turn, x = turn[wanted], x[wanted]
            else:
                both = product(h, weight, bias)
                query, rest = both[:, :split], both[:, split:]
            key, value = rest.float().unflatten(-1, (2, shape.kv_heads, shape.head)).unbind(1)
            query = query.float().unflatten(-1, (shape.heads, shape.head))
            if (gains := self._norms[layer]) is not None:
                query, key = (self._head_norm(t, g) for t, g in zip((query, key), gains))
            query, key = _rotate(query, query_turn), _rotate(key, turn)
            seen = attend(layer, query, key, value).to(self.dtype)
            x += self._linear(layer, "out", seen)
            both = self._linear(layer, "gate_up", self._normed(x))
            size = both.shape[-1] // 2
            x += self._linear(layer, "down", F.silu(both[:, :size]).mul_(both[:, size:]))
        scale = x.square().mean(-1, keepdim=True).add_(shape.eps).rsqrt_()
        return x.mul_(scale).mul_(self._gain)

    def _linear(self, layer: int, name: str, x: Tensor) -> Tensor:
        return product(x, self._weights[layer, name], self._biases[layer, name])

    def _normed(self, x: Tensor) -> Tensor:
        scale = x.square().mean(-1, keepdim=True).add_(self.shape.eps).rsqrt_()
        return torch.mul(x, scale).to(self.dtype)

    def _head_norm(self, x: Tensor, gain: Tensor) -> Tensor:
        return x * x.square().mean(-1, keepdim=True).add_(self.shape.eps).rsqrt_() * gain

    def _turn(self, positions: Tensor) -> Tensor:
        needed = int(positions.max()) + 1
        if needed > len(self._turns):
            self._turns = self.shape.rotation(max(needed, 2 * len(self._turns)))
        return self._turns[positions][:, None]


def rounded(rows: int) -> int:
    """At least ``rows``, at most an eighth more: one of eight numbers per power of two."""
    step = max(8, 2 ** (rows.bit_length() - 4))
    return -(-rows // step) * step


def padded(x: Tensor) -> Tensor:
    """Rows [n, ...] of a bfloat16 tensor filled up with zeros to ``rounded`` many.

    oneDNN, which multiplies bfloat16 matrices, compiles a kernel for each new shape, in about
    the time that the product of 1,000 rows takes.  Rollouts would bring new shapes for ever.
    """
    more = rounded(len(x)) - len(x) if x.dtype == torch.bfloat16 else 0
    return F.pad(x, (0, 0, 0, more)) if more else x


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x [n, in] · weightᵀ + bias, without gradient."""
    return F.linear(padded(x), weight, bias)[: len(x)]


def _rotate(x: Tensor, turn: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2)
