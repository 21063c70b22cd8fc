"""Token sets T(X) of Retrieval-Grounded Voting (S2 App. A).

S2's rule, in its order: NFKC and lowercase; strip markdown, URLs, code fences and JSON
delimiters; split on whitespace; drop stopwords; drop what is shorter than two characters or
pure punctuation once normalised.  No stemming.  S2 leaves three points open; here

- a token's normal form is the token without punctuation and symbols at its ends, so that
  ``Bamako.`` meets ``bamako``; inside a token they stay (``1,234``, ``u.s``);
- stripping a code fence removes its lines of backticks or tildes, not the text between;
- a markdown link keeps its text and loses its address.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from .stopwords import STOPWORDS

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+")
_DELIMITERS = re.compile(r"[*`|~{}\[\]\"]")  # markdown emphasis, code, tables; JSON
_ENDS = re.compile(r"^[\W_]+|[\W_]+$")


@lru_cache(maxsize=65_536)
def token_set(text: str) -> frozenset[str]:
    """T(text); texts are cached, because rollouts of a question fetch the same passages."""
    text = unicodedata.normalize("NFKC", text).lower()
    text = _URL.sub(" ", _LINK.sub(r" \1 ", _FENCE.sub(" ", text)))
    tokens = (_ENDS.sub("", token) for token in _DELIMITERS.sub(" ", text).split())
    return frozenset(t for t in tokens if len(t) >= 2 and t not in STOPWORDS)
