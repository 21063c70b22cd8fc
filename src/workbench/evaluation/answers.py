"""Answer scoring: one normaliser, and EM, F1 and inclusion over it (S1 §4, S3 §4).

The normaliser is SQuAD's: lowercase, delete *ASCII* punctuation, drop the words a/an/the,
collapse whitespace.  Two of its properties are kept for comparability with every published
table: an en dash is not punctuation (``1914–1918`` differs from ``1914-1918``), and deleting
the point makes ``3.5`` equal ``35``.

Every score is the maximum over the accepted answers, lies in [0, 1], and is 0 for a missing
prediction (``None``).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from ..errors import WorkbenchError

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
GUARDED = frozenset({"yes", "no", "noanswer"})  # answers that name nothing


def normalise_answer(text: str) -> str:
    """SQuAD normal form of ``text``: ``"The Spice-Girls "`` -> ``"spicegirls"``."""
    lowered = text.lower().translate(_DELETE_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", lowered).split())


def accepted_answers(answers: str | Sequence[str]) -> list[str]:
    """The accepted answers as a list: a bare string is one answer, blank entries are dropped.

    Raises
    ------
    WorkbenchError : an entry is not text, or no answer is left to score against.
    """
    entries = [answers] if isinstance(answers, str) else list(answers)
    for entry in entries:
        if not isinstance(entry, str):
            raise WorkbenchError(
                f"an accepted answer is {entry!r} ({type(entry).__name__}), not text",
                fix="store answers as strings, also years and numbers",
            )
    kept = [entry for entry in entries if entry.strip()]
    if not kept:
        raise WorkbenchError(
            "a question has no accepted answer, so nothing can be scored against it",
            where=f"answers={entries!r}",
            fix="drop the question or give it at least one answer",
        )
    return kept


def _best(
    score: Callable[[str, str], float], prediction: str | None, answers: str | Sequence[str]
) -> float:
    golds = accepted_answers(answers)
    if prediction is None:
        return 0.0
    normal = normalise_answer(prediction)
    return max(score(normal, normalise_answer(gold)) for gold in golds)


def exact_match(prediction: str | None, answers: str | Sequence[str]) -> float:
    """1.0 if the normalised prediction equals a normalised answer, else 0.0."""
    return _best(lambda p, g: float(p == g), prediction, answers)


def f1_score(prediction: str | None, answers: str | Sequence[str]) -> float:
    """Bag-of-tokens F1 with HotpotQA's guard.

    When either side is yes, no or noanswer, only equality counts.  Two normal forms that are
    both empty (an answer made of articles, such as the band The The) score 1, as in EM.
    """
    return _best(_token_f1, prediction, answers)


def inclusion(prediction: str | None, answers: str | Sequence[str]) -> float:
    """1.0 if a normalised answer stands in the normalised prediction on word boundaries.

    ``no`` is not in ``Nolan Ryan``.  An answer whose normal form is empty is included only in
    a prediction whose normal form is empty too.
    """
    return _best(_included, prediction, answers)


def _token_f1(prediction: str, gold: str) -> float:
    if prediction == gold:
        return 1.0
    if prediction in GUARDED or gold in GUARDED:
        return 0.0
    p, g = Counter(prediction.split()), Counter(gold.split())
    common = (p & g).total()
    return 2.0 * common / (p.total() + g.total()) if common else 0.0


def contains_phrase(text: str, phrase: str) -> bool:
    """Whether ``phrase`` stands in ``text`` on word boundaries; both in normal form.

    An empty phrase stands nowhere.
    """
    at = text.find(phrase) if phrase else -1
    while at >= 0:
        end = at + len(phrase)
        if not (at and _is_word(text[at - 1])) and not (end < len(text) and _is_word(text[end])):
            return True
        at = text.find(phrase, at + 1)
    return False


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _included(prediction: str, gold: str) -> float:
    return float(contains_phrase(prediction, gold) if gold else not prediction)
