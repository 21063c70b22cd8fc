"""Hidden states at the last token of contexts, for every candidate layer in one pass.

Layers are numbered as in transformers' ``hidden_states``: 0 are the embeddings, l the output
of block l, and the last one is taken behind the final norm.  Only the states that are asked
for are kept (hooks on the blocks pick them), and no block above the highest layer runs.

A causal state depends on nothing behind its token.  So equal contexts go through the model
once, and one that is a prefix of another (a prompt, of its rollouts) is read off the pass of
the longer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from ..engines.dtype import compute_dtype
from ..engines.replica import plain_model
from ..errors import WorkbenchError
from .config import FeatureConfig


@dataclass(frozen=True, slots=True)
class Features:
    """``values`` float32 [N, L, H] of ``layers``; ``forward_tokens`` the model has seen."""

    values: np.ndarray
    layers: tuple[int, ...]
    forward_tokens: int

    def at(self, layer: int) -> np.ndarray:
        """float32 [N, H] of one of the layers."""
        return self.values[:, self.layers.index(layer)]


@torch.no_grad()
def features(
    model: nn.Module,
    contexts: Sequence[np.ndarray],
    layers: Sequence[int],
    config: FeatureConfig | None = None,
) -> Features:
    """Read ``model`` (a transformers causal LM or a PeftModel of one, in eval mode).

    Parameters
    ----------
    contexts : N sequences of token ids; the state of the last one is read.
    layers : which hidden states, 0 to the number of blocks.

    Raises
    ------
    WorkbenchError
        a layer outside the model, an empty context or one longer than the model takes, a model
        in training mode, or a state that is NaN or infinite.
    """
    config, layers = config or FeatureConfig(), tuple(layers)
    plain = plain_model(model)
    check_layers(plain, layers)
    arrays = [np.asarray(context) for context in contexts]
    _check(plain, model, arrays)
    values = np.empty((len(arrays), len(layers), plain.config.hidden_size), dtype=np.float32)
    device = plain.get_input_embeddings().weight.device
    dtype = compute_dtype(config.dtype, device, sum(p.numel() for p in plain.parameters())).torch
    readers: dict[int, list[int]] = {}
    for row, carrier in enumerate(carriers(arrays)):
        readers.setdefault(carrier, []).append(row)
    for batch in _batches({row: len(arrays[row]) for row in readers}, config.batch_tokens):
        ids = np.zeros((len(batch), len(arrays[batch[0]])), dtype=np.int64)
        for line, row in enumerate(batch):
            ids[line, : len(arrays[row])] = arrays[row]
        lines, rows = zip(*((line, r) for line, row in enumerate(batch) for r in readers[row]))
        places = [len(arrays[row]) - 1 for row in rows]
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            states = _states(plain, torch.as_tensor(ids, device=device), lines, places, layers)
        values[list(rows)] = states.cpu().numpy()
    if len(bad := np.argwhere(~np.isfinite(values))):
        row, place = bad[0][:2]
        raise WorkbenchError(
            f"the hidden state is NaN or infinite in {len(set(map(tuple, bad[:, :2])))} places",
            where=f"context {row}, layer {layers[place]}",
            fix="the weights or the arithmetic broke: check the last update and dtype",
        )
    return Features(values, layers, sum(len(arrays[row]) for row in readers))


def check_layers(model: nn.Module, layers: Sequence[int]) -> None:
    """Refuse layers that ``model`` does not have.

    Raises
    ------
    WorkbenchError : a layer outside 0..blocks, one twice, or none at all.
    """
    depth = plain_model(model).config.num_hidden_layers
    outside = [layer for layer in layers if not 0 <= layer <= depth]
    if outside or not layers or len(set(layers)) < len(layers):
        what = f"{outside} are not layers" if outside else f"{list(layers)} are no set of layers"
        raise WorkbenchError(
            f"{what} of a model of {depth} blocks",
            where="layers",
            fix=f"name distinct numbers from 0 (embeddings) to {depth} (behind the final norm)",
        )


def carriers(contexts: Sequence[np.ndarray]) -> list[int]:
    """For every context the one, possibly itself, in whose pass its last state is found.

    In lexicographic order all extensions of a context follow it at once.
    """
    keys = [np.asarray(context, dtype=">u4").tobytes() for context in contexts]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    found = list(range(len(keys)))
    for row, following in reversed(list(pairwise(order))):
        if keys[following].startswith(keys[row]):
            found[row] = found[following]
    return found


def _batches(lengths: dict[int, int], budget: int) -> Iterator[list[int]]:
    """Rows, longest first, with at most ``budget`` padded tokens together (or a row alone)."""
    order = sorted(lengths, key=lambda row: (-lengths[row], row))
    while order:
        take = max(1, budget // lengths[order[0]])
        yield order[:take]
        order = order[take:]


class _Reached(Exception):
    """The highest layer is there; what is above need not run."""


def _states(
    plain: nn.Module,
    ids: Tensor,
    lines: Sequence[int],
    places: Sequence[int],
    layers: tuple[int, ...],
) -> Tensor:
    """float32 [n, L, H] at (line, place) of right-padded ids, which causal layers never look at."""
    decoder, top = plain.get_decoder(), max(layers)
    at = tuple(torch.as_tensor(index, device=ids.device) for index in (lines, places))
    found: dict[int, Tensor] = {}

    def keep(layer: int, hidden: Tensor) -> None:
        if layer in layers:
            found[layer] = hidden[at].float()
        if layer == top:
            raise _Reached

    with ExitStack() as hooks:
        blocks = decoder.layers
        first = blocks[0].register_forward_pre_hook(_input_hook(keep), with_kwargs=True)
        hooks.callback(first.remove)
        for layer, block in enumerate(blocks[: plain.config.num_hidden_layers - 1], start=1):
            hooks.callback(block.register_forward_hook(_output_hook(keep, layer)).remove)
        try:
            output = decoder(input_ids=ids, use_cache=False)
            keep(plain.config.num_hidden_layers, output.last_hidden_state)
        except _Reached:
            pass
    return torch.stack([found[layer] for layer in layers], dim=1)


def _input_hook(keep: Callable[[int, Tensor], None]):
    def hook(module, args, kwargs):
        keep(0, args[0] if args else kwargs["hidden_states"])

    return hook


def _output_hook(keep: Callable[[int, Tensor], None], layer: int):
    def hook(module, args, output):
        keep(layer, output[0] if isinstance(output, tuple) else output)

    return hook


def _check(plain: nn.Module, model: nn.Module, arrays: Sequence[np.ndarray]) -> None:
    limit, vocabulary = plain.config.max_position_embeddings, plain.config.vocab_size
    if model.training:
        raise WorkbenchError(
            "the model is in training mode, where dropout changes its states",
            where="features",
            fix="call model.eval() first",
        )
    for row, array in enumerate(arrays):
        fits = array.ndim == 1 and 0 < len(array) <= limit
        if not fits or array.dtype.kind not in "iu":
            raise WorkbenchError(
                f"{array.dtype} {array.shape}, expected 1 to {limit} token ids",
                where=f"context {row}",
            )
        if array.min() < 0 or array.max() >= vocabulary:
            raise WorkbenchError(
                f"token ids from {array.min()} to {array.max()}, the model knows 0 to "
                f"{vocabulary - 1}",
                where=f"context {row}",
            )
