"""Which words of the prose carry RGV's signal (S2 §6.1, Fig. 2a).

RGV is computed on the prose's tokens of one class only, with the best document of that class:

- ``digit`` tokens hold a digit (years, codes, identifiers);
- ``capitalised`` ones are no digit tokens and stand with a capital somewhere in the prose; the
  first word of a sentence or heading is among them;
- ``content`` is the rest.

A rollout whose prose has no token of a class has no score of that class (NaN); one without
documents scores 0.  S2 does not define its classes more closely than by these names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..reports.record import Rollout
from ..voting.tokens import token_set
from .frames import rollout_frame

CLASSES = ("digit", "capitalised", "content")
_SPLIT = re.compile(r"[\s*`|~{}\[\]\"]+")  # where ``token_set`` may cut
_ENDS = re.compile(r"^[\W_]+|[\W_]+$")


def best_recall(tokens: frozenset[str], documents: Sequence[frozenset[str]]) -> float:
    """Largest share of ``tokens`` in one document: RGV of a token set; 0 without either."""
    return max((len(tokens & d) / len(tokens) for d in documents), default=0.0) if tokens else 0.0


def document_sets(rollout: Rollout) -> list[frozenset[str]]:
    """T(d) of each document of the rollout, in order."""
    return [token_set(document.text) for document in rollout.documents]


def capitalised_tokens(text: str) -> frozenset[str]:
    """The members of ``token_set(text)`` that stand in ``text`` with a leading capital."""
    pieces = (_ENDS.sub("", p) for p in _SPLIT.split(unicodedata.normalize("NFKC", text)))
    return frozenset(p.lower() for p in pieces if p[:1].isupper()) & token_set(text)


def token_classes(text: str) -> dict[str, frozenset[str]]:
    """``token_set(text)`` parted into ``CLASSES``."""
    tokens = token_set(text)
    digit = frozenset(t for t in tokens if any(c.isdigit() for c in t))
    capitalised = capitalised_tokens(text) - digit
    return {
        "digit": digit, "capitalised": capitalised, "content": tokens - digit - capitalised
    }  # fmt: skip


def class_scores(rollouts: Sequence[Rollout]) -> pd.DataFrame:
    """RGV of each rollout on all its prose tokens and on those of each class.

    Returns
    -------
    question_id, rollout_id, cell, correct; w_rgv and w_<class> in [0, 1] (a class without
    tokens is NaN); n_<class> (tokens); tokens (|T(P)|), documents.  ``verdicts.verdict_gaps``
    of the score columns is Fig. 2a.
    """
    rows = []
    for rollout in rollouts:
        documents = document_sets(rollout)
        classes = token_classes(rollout.prose)
        rows.append(
            {
                "w_rgv": best_recall(token_set(rollout.prose), documents),
                **{
                    f"w_{name}": best_recall(tokens, documents) if tokens else np.nan
                    for name, tokens in classes.items()
                },
                **{f"n_{name}": len(tokens) for name, tokens in classes.items()},
                "tokens": sum(map(len, classes.values())),
                "documents": len(documents),
            }
        )
    names = [f"{kind}_{name}" for kind in "wn" for name in CLASSES]
    columns = ["w_rgv", *names, "tokens", "documents"]
    return pd.concat([rollout_frame(rollouts), pd.DataFrame(rows, columns=columns)], axis=1)
