"""Attention heads that can copy from the first step.

In a model of this size it takes millions of tokens until previous-token and induction heads
form by themselves, and until then it cannot read a passage at all.  Both are known circuits,
so they are written into the initial weights, and training goes on from there:

* layer 0, heads 0 and 1 attend to the token one and two places back.  Query and key are
  constant (biases); rotary position gives score a^2 cos((m - n - offset) theta), which sums
  over frequencies to a peak at the offset.  They write what they see into subspaces of their
  own, B1 and B2.
* layer 1, head 0 compares the current token (B0) with the token before each key (B1) and
  copies the token that it finds: "what followed this word last time?".

Everything is an ordinary trainable weight of a Qwen2 model; other heads start at random.
"""

from __future__ import annotations

import math

_SHARPNESS = 8.0  # a^2 / sqrt(head size): softmax logits between neighbouring offsets
_FREQUENCIES = 16


def write_copying_heads(model) -> None:
    """Write the heads into ``model`` (Qwen2, two layers and three heads or more), in place.

    Uses torch's global generator for the random subspaces; seed it before.
    """
    import torch

    config = model.config
    size = config.hidden_size // config.num_attention_heads
    width = config.hidden_size // 3
    basis, _ = torch.linalg.qr(torch.randn(config.hidden_size, config.hidden_size))
    own, back_one, back_two = (basis[:, i * width : (i + 1) * width][:, :size] for i in range(3))
    first, second = (model.model.layers[i].self_attn for i in (0, 1))
    theta = config.rope_parameters["rope_theta"] ** (-torch.arange(size // 2) * 2.0 / size)
    embedding_rms = model.get_input_embeddings().weight.std().item()
    with torch.no_grad():
        for head, (offset, target) in enumerate(((1, back_one), (2, back_two))):
            rows = slice(head * size, (head + 1) * size)
            _look_back(first, rows, size, theta, offset)
            first.v_proj.weight[rows] = own.T
            first.o_proj.weight[:, rows] = target * embedding_rms
        rows = slice(0, size)
        second.q_proj.weight[rows] = own.T * 1.6
        second.k_proj.weight[rows] = back_one.T * 1.6
        _without_position(second, rows, size)
        second.v_proj.weight[rows] = own.T
        second.o_proj.weight[:, rows] = own * 2.0 * embedding_rms


def _look_back(attention, rows: slice, size: int, theta, offset: int) -> None:
    """Constant query and key whose rotary score peaks ``offset`` places back."""
    import torch

    amplitude = math.sqrt(_SHARPNESS * math.sqrt(size))
    used = (torch.arange(size // 2) < _FREQUENCIES) * amplitude
    angle = theta * offset
    attention.q_proj.weight[rows] = 0.0
    attention.k_proj.weight[rows] = 0.0
    attention.q_proj.bias[rows] = torch.cat([used, torch.zeros(size // 2)])
    attention.k_proj.bias[rows] = torch.cat([used * angle.cos(), used * angle.sin()])


def _without_position(attention, rows: slice, size: int) -> None:
    """Move the comparison to the slow rotary frequencies, where distance hardly matters."""
    import torch

    order = torch.arange(size)
    slow = torch.cat([torch.arange(size // 4, size // 2), torch.arange(3 * size // 4, size)])
    keep = torch.isin(order, slow)
    for projection in (attention.q_proj, attention.k_proj):
        block = projection.weight[rows].clone()
        block[~keep] = 0.0
        projection.weight[rows] = block * math.sqrt(2.0)
