"""Bookkeeping of one turn of decoding."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..errors import WorkbenchError
from .base import Generation, Sampling
from .sampling import top_logprobs
from .stopping import EOS, Stopper


class Turn:
    """One ``generate``: who decodes, what was sampled, how it ended.

    ``rows`` are the session rows in the decoding batch, by place; ``unfinished`` counts those
    that go on, ``steps`` the tokens that they have sampled.
    """

    def __init__(
        self, order: list[int], limits: list[int], sampling: Sampling, device: torch.device
    ):
        self.rows = list(order)
        self.device = device
        self.steps = 0
        self.unfinished = len(order)
        self.tokens: dict[int, list[int]] = {row: [] for row in order}
        self.finish: dict[int, str] = dict.fromkeys(order, "")
        self._limits = dict(zip(order, limits, strict=True))
        self._line = {row: line for line, row in enumerate(order)}
        self._lines = torch.arange(len(order), device=device)
        self._k = sampling.top_k_logprobs
        size = max(limits)
        self._logprobs = torch.empty(len(order), size, device=device)
        self._top_ids = torch.empty(len(order), size, self._k, dtype=torch.int32, device=device)
        self._top = torch.empty(len(order), size, self._k, device=device)

    def record(self, ids: Tensor, logprobs: Tensor, logits: Tensor, stopper: Stopper) -> None:
        """Take in one sampled token per place and see which rows end with it."""
        place = self._lines, torch.full_like(self._lines, self.steps)
        self._logprobs[place] = logprobs
        if self._k:
            top_ids, self._top[place] = top_logprobs(logits, self._k)
            self._top_ids[place] = top_ids.int()
        broken = ~logprobs.isfinite()
        seen = torch.stack([ids, stopper.codes[ids], broken.long()]).tolist()
        self.steps += 1
        ended = 0
        for row, token, code, bad in zip(self.rows, *seen, strict=True):
            if self.finish[row]:
                continue
            if bad:
                raise WorkbenchError(
                    f"the model's logits are NaN or infinite at token {self.steps} of row {row}",
                    where="generate",
                    fix="the weights or the arithmetic broke: check the last update and dtype",
                )
            tokens = self.tokens[row]
            tokens.append(token)
            if code == EOS:
                self.finish[row] = "eos"
            elif code and stopper.stops(tokens):
                self.finish[row] = "stop"
            elif len(tokens) >= self._limits[row]:
                self.finish[row] = "length"
            ended += bool(self.finish[row])
        self.unfinished -= ended

    def narrow(self, places: list[int]) -> Tensor:
        """Go on with the rows at ``places`` only, in that order."""
        keep = torch.tensor(places, device=self.device)
        self.rows = [self.rows[place] for place in places]
        self._lines = self._lines[keep]
        return keep

    def generations(self) -> dict[int, Generation]:
        """What every row generated."""
        logprobs = self._logprobs.cpu().numpy()
        top_ids, top = self._top_ids.cpu().numpy(), self._top.cpu().numpy()
        result = {}
        for row, line in self._line.items():
            count = len(self.tokens[row])
            result[row] = Generation(
                np.array(self.tokens[row], np.int32),
                logprobs[line, :count].copy(),
                top_ids[line, :count].copy(),
                top[line, :count].copy(),
                self.finish[row],
            )
        return result
