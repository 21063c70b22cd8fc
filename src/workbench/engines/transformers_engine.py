"""Engine over a transformers causal LM, on CPU or one accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import WorkbenchError
from .base import Choice, Generation, Sampling
from .cache import RowCache
from .dtype import compute_dtype
from .fused import fusible
from .lean import LeanDecoder
from .lean_session import LeanSession
from .replica import Replica, mergeable, plain_model
from .rows import RowSession
from .scoring import score
from .session import TransformersSession
from .stopping import Stopper


class TransformersEngine:
    """Generates with and scores by a causal LM with full attention (Llama, Qwen2, Qwen3, ...).

    Parameters
    ----------
    model : a transformers causal LM, or a PeftModel around one.
    tokenizer : its fast tokenizer.
    max_rows : rows that one session may have.
    max_length : tokens that a row may have; default the model's positions.
    dtype : see ``workbench.engines.dtype``; ``compute`` keeps what was chosen and why.
    prefill_tokens : tokens, padding included, in one forward pass of a block or of ``score``.
    eos : ids that end a turn; default the model's generation config and the tokenizer's.
    merge : run a LoRA model through a plain copy with merged weights.
    lean : on a CPU run the architectures that ``workbench.engines.fused`` knows through the
        forward pass of ``workbench.engines.lean``, with ``merge`` if there are adapters.

    Without ``merge`` to do and with the model in the chosen dtype, changes to its weights are
    seen at once (in the lean pass by the tensors' version counters, which ``.data`` evades);
    otherwise call ``refresh``.

    Attributes
    ----------
    tokens_processed : tokens sent through the model so far, padding excluded.
    tokens_padded : padding and finished rows beside them.

    Raises
    ------
    WorkbenchError
        the model has other than full attention layers or changes its logits after the head.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: object,
        *,
        max_rows: int = 256,
        max_length: int | None = None,
        dtype: Choice = "auto",
        prefill_tokens: int = 2048,
        eos: Sequence[int] | None = None,
        merge: bool = True,
        lean: bool = True,
    ):
        self.tokenizer, self.max_rows, self.prefill_tokens = tokenizer, max_rows, prefill_tokens
        plain = plain_model(model)
        _check_architecture(plain.config)
        self.max_length = max_length or plain.config.max_position_embeddings
        parameter = next(plain.parameters())
        self.device = parameter.device
        weights = sum(p.numel() for p in plain.parameters())
        self._fused = lean and (merge or plain is model) and fusible(model)
        self.compute = compute_dtype(dtype, self.device, weights, lean=self._fused)
        self.tokens_processed = self.tokens_padded = 0
        self._eos = sorted(_eos_ids(plain, tokenizer) if eos is None else eos)
        self._stoppers: dict[tuple[str, ...], Stopper] = {}
        self._copied = parameter.dtype != self.compute.torch or (merge and mergeable(model))
        self._replica: Replica | None = None
        self.lean: LeanDecoder | None = None
        self._stamp: tuple = ()
        self.refresh(model)

    def refresh(self, model: nn.Module | None = None) -> None:
        """Run the weights of ``model`` (default: the same model) as they are now."""
        if model is not None:
            self._source = model
        if self._fused:
            if self.lean is None:
                self.lean = LeanDecoder(self._source, self.compute.torch)
            else:
                self.lean.refresh(self._source)
            self._model = plain_model(self._source)
            self._stamp = self._versions()
        elif not self._copied:
            self._model = plain_model(self._source)
        elif self._replica is None:
            self._replica = Replica(self._source, self.compute.torch)
            self._model = self._replica.model
        else:
            self._replica.refresh(self._source)
        self._decoder = self._model.get_decoder()
        self._head = self._model.get_output_embeddings()

    def open(self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int) -> RowSession:
        """Start a session with one row per prompt; equal prompts share their prefill.

        Raises WorkbenchError for more than ``max_rows`` prompts or an empty one.
        """
        if len(prompts) > self.max_rows:
            raise WorkbenchError(
                f"{len(prompts)} rows, the engine takes {self.max_rows}",
                where="engine.open",
                fix="open several sessions or raise max_rows",
            )
        if empty := [i for i, prompt in enumerate(prompts) if not len(prompt)]:
            raise WorkbenchError(f"prompts {empty} are empty", where="engine.open")
        kind = TransformersSession if self.lean is None else LeanSession
        return kind(self, prompts, sampling, seed)

    def score(
        self, sequences: Sequence[Sequence[int]], masks: Sequence[np.ndarray], top_k: int = 0
    ) -> list[Generation]:
        """Teacher-forced log-probs of the tokens where ``masks`` is True.

        Sequences of similar length go through the model together; logits are computed at the
        masked positions only.  Log-probs are the model's own (temperature 1, no nucleus).

        Returns
        -------
        Per sequence the masked tokens in order, with ``finish`` "scored".

        Raises
        ------
        WorkbenchError
            a mask has another length than its sequence or is True at token 0, which nothing
            predicts; a sequence is longer than ``max_length``; the logits are NaN or infinite.
        """
        with self.evaluating():
            return score(self, sequences, masks, top_k)

    @torch.inference_mode()
    def hidden(self, ids: Tensor) -> Tensor:
        """Last hidden states [n, width, H] of right-padded rows, without a cache.

        Padding is out of sight of causal attention, so there is no mask.
        """
        if self.lean is not None:
            rows, places = torch.ones_like(ids).nonzero(as_tuple=True)
            return self.lean.causal(ids, rows, places).unflatten(0, ids.shape)
        return self._decoder(input_ids=ids.to(self.device), use_cache=False).last_hidden_state

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Logits float32 [n, V] of hidden states [n, H]."""
        if self.lean is not None:
            return self.lean.logits(hidden)
        return self._head(hidden).float()

    @property
    def vocabulary(self) -> int:
        """Columns of the logits."""
        return self._head.weight.shape[0]

    def block(
        self,
        cache: RowCache,
        first: int,
        ids: Tensor,
        lengths: Tensor,
        counts: Sequence[int] | None,
        shown: int,
    ) -> Tensor:
        """Send a block through the model; logits float32 [n, V] behind each row's last token.

        ``ids`` int64 [n, width], right-padded, for the slots from ``first`` on, which have
        ``lengths`` int64 [n] tokens in ``cache``; ``counts`` real tokens per row (None: all).
        ``shown`` is the longest row's length with the block.
        """
        ids, lengths = ids.to(self.device), lengths.to(self.device)
        positions = cache.place(first, lengths, ids.shape[1])
        cache.show(shown)
        visible = torch.arange(shown, device=self.device) <= positions[..., None]
        mask = torch.zeros(visible.shape, dtype=self.compute.torch, device=self.device)
        mask = mask.masked_fill_(~visible, float("-inf"))[:, None]
        hidden = self._decoder(
            input_ids=ids, attention_mask=mask, position_ids=positions, cache=cache, use_cache=True
        ).last_hidden_state
        if counts is None:
            last = hidden[:, -1]
        else:
            ends = torch.tensor(counts, device=self.device) - 1
            last = hidden[torch.arange(len(ids), device=self.device), ends]
        return self.logits(last)

    def chunks(self, counts: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Ranges of consecutive rows with at most ``prefill_tokens`` padded tokens each."""
        start, width = 0, 0
        for place, count in enumerate(counts):
            width = max(width, count)
            if place > start and width * (place + 1 - start) > self.prefill_tokens:
                yield start, place
                start, width = place, count
        if len(counts):
            yield start, len(counts)

    def stopper(self, stop: tuple[str, ...]) -> Stopper:
        """What ends a turn under these stop strings."""
        if stop not in self._stoppers:
            stopper = Stopper(self.tokenizer, stop, self._eos, self.vocabulary)
            stopper.codes = stopper.codes.to(self.device)
            self._stoppers[stop] = stopper
        return self._stoppers[stop]

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Dropout off while the engine runs; a model in training mode goes back to it."""
        if self.lean is not None:
            if not self._copied and self._stamp != self._versions():
                self.refresh()
            yield
            return
        training = self._model.training
        if training:
            self._model.eval()
        try:
            yield
        finally:
            if training:
                self._model.train()

    def _versions(self) -> tuple:
        return tuple((p.data_ptr(), p._version) for p in self._source.parameters())


def _check_architecture(config: object) -> None:
    kinds = getattr(config, "layer_types", None)
    if kinds is None and getattr(config, "sliding_window", None):
        kinds = ["sliding_attention"]
    if kinds := set(kinds or ()) - {"full_attention"}:
        raise WorkbenchError(
            f"the model has {', '.join(sorted(kinds))} layers, the engine's cache holds full "
            "attention only",
            where=config.model_type,
            fix="use a model with full attention in every layer",
        )
    for name, neutral in (
        ("final_logit_softcapping", None), ("logit_scale", 1), ("logits_scaling", 1)
    ):  # fmt: skip
        if getattr(config, name, neutral) not in (neutral, None):
            raise WorkbenchError(
                f"the model changes its logits behind the head ({name})",
                where=config.model_type,
                fix="use a model whose head gives the logits",
            )


def _eos_ids(model: nn.Module, tokenizer: object) -> set[int]:
    found: set[int] = set()
    for ids in (
        getattr(model.generation_config, "eos_token_id", None),
        model.config.eos_token_id,
        tokenizer.eos_token_id,
    ):
        found.update([ids] if isinstance(ids, int) else ids or ())
    return found
