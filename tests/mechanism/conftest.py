"""Small rollouts of the record, and intervals of few draws."""

import numpy as np
import pytest

from workbench.inference.bootstrap import BootstrapConfig
from workbench.reports.record import Document, Phase, Rollout, TokenStream


@pytest.fixture(scope="session")
def few():
    return BootstrapConfig(draws=200)


@pytest.fixture(scope="session")
def make_rollout():
    """A rollout; ``tokens`` are surfaces, with ``logprobs``, ``topk`` and ``phases`` beside."""

    def make(
        tokens=None, documents=(), question="q", number=0, logprobs=None, topk=None, phases=None,
        **changes,
    ):  # fmt: skip
        stream = None
        if tokens is not None:
            n = len(tokens)
            stream = TokenStream(
                list(tokens),
                np.asarray(np.full(n, -1.0) if logprobs is None else logprobs, np.float32),
                np.asarray(np.full((n, 1), -1.0) if topk is None else topk, np.float32),
                np.asarray(
                    np.full(n, Phase.REASONING) if phases is None else phases, dtype=np.uint8
                ),
            )
        found = [d if isinstance(d, Document) else Document(d) for d in documents]
        fields = {"documents": found, "tokens": stream, "cell": "c"} | changes
        return Rollout(question, str(number), **fields)

    return make
