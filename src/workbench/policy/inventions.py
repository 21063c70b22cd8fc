"""Made-up search results: real lines under random titles, in sets that never come twice.

The retriever gives a query the same passages every time, and a small policy learns to know
such a set by its other words instead of looking for what was asked: on pages of its training
it named the right one of three in 97 % of the cases, on others in 70 %.  Here only the line
that is asked for, its page's title and lines of the same field elsewhere are given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ..corpus.records import Chunk, Extent
from ..questions.relations import Fact
from .drafts import Made

PASSAGES = 3


class Inventor:
    """Makes results for a search.

    Parameters
    ----------
    facts : every fact of the corpus.
    lines : fact id -> its paragraph, for those of few words (``drafts.short_lines``).
    titles : page titles to choose from.
    """

    def __init__(self, facts: Sequence[Fact], lines: Mapping[str, str], titles: Sequence[str]):
        self._lines, self._titles = lines, titles
        self._all = [f for f in facts if f.fact_id in lines]
        self._of_relation: dict[str, list[Fact]] = defaultdict(list)
        for fact in self._all:
            self._of_relation[fact.relation].append(fact)

    def results(self, fact: Fact, rng: np.random.Generator) -> list[Made] | None:
        """Three passages, one of which says ``fact``; None where its line is too long to stand so.

        Of the others some have the same field with another answer, some the same title.
        """
        if fact.fact_id not in self._lines:
            return None
        found = [self._passage(fact.title, [fact], fact, rng)]
        rivals = [f for f in self._of_relation[fact.relation] if f.answer != fact.answer]
        for _ in range(PASSAGES - 1):
            title = self._titles[rng.integers(len(self._titles))]
            rival = [rivals[rng.integers(len(rivals))]] if rivals and rng.random() < 0.7 else []
            if title == fact.title or rng.random() < 0.3:
                title, rival = fact.title, []
            found.append(self._passage(title, rival, None, rng, fact.relation))
        rng.shuffle(found)
        return found

    def _passage(self, title, own, target, rng, without: str = "") -> Made:
        """The lines of ``own`` and one or two of other relations, in random order."""
        own = list(own)
        taken = {without, *(f.relation for f in own)}
        for _ in range(int(rng.integers(1, 3))):
            other = self._all[rng.integers(len(self._all))]
            if other.relation not in taken and (target is None or other.answer != target.answer):
                taken.add(other.relation)
                own.append(other)
        rng.shuffle(own)
        text = "\n".join(self._lines[f.fact_id] for f in own)
        if target is None:
            return Made(Chunk("", "", title, text, ()))
        extent = Extent(target.paragraph, target.start, target.end)
        return Made(Chunk("", target.page_id, title, text, (extent,)))
