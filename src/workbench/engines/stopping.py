"""When a row stops: EOS by id, stop strings by the text of its last tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

EOS, MAYBE = 1, 2


class Stopper:
    """Recognises the end of a turn.

    Only a token that holds the last character of a stop string can complete it, so the text
    of a row is looked at just after such a token; ``codes`` tells them apart on the device.

    Attributes
    ----------
    codes : int64 [V]; ``EOS``, ``MAYBE`` (may complete a stop string) or 0 for each token id.
    """

    def __init__(self, tokenizer: object, stop: Sequence[str], eos: Iterable[int], vocabulary: int):
        self._decode = tokenizer.backend_tokenizer.decode
        self._stop = tuple(stop)
        self._window = max((len(s) for s in stop), default=0) + 8
        codes = torch.zeros(vocabulary, dtype=torch.long)
        ends = {s[-1] for s in stop}
        if all(c.isascii() and c.isprintable() and c != " " for c in ends):
            # These characters stand for themselves in every vocabulary.
            for token, index in tokenizer.get_vocab().items():
                if index < vocabulary and not ends.isdisjoint(token):
                    codes[index] = MAYBE
        else:
            codes[:] = MAYBE
        codes[[index for index in eos if index < vocabulary]] = EOS
        self.codes: Tensor = codes

    def stops(self, tokens: Sequence[int]) -> bool:
        """Whether the text of one turn's ``tokens`` ends a stop string in its last token."""
        text = self._decode(tokens[-self._window :], skip_special_tokens=False)
        return any(s in text for s in self._stop)
