"""Names and answers of one token, by kind, and sequences rewritten with others of their kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..questions.graph import Item
from ..questions.relation_table import RELATIONS
from ..questions.relations import BY_NAME, Fact


class Names:
    """What can stand for what in demonstrations.

    Parameters
    ----------
    ids : text -> token ids.
    facts : every fact of the corpus.
    items : questions, whose answers tell which names are of one entity.
    spoken : texts of the protocol; their words and those of questions and queries are never
        renamed.

    Attributes
    ----------
    titles, title_tokens : page titles of one token, sorted, and their tokens.
    answers : kind -> the tokens of its answers, sorted.
    """

    def __init__(
        self,
        ids: Callable[[str], list[int]],
        facts: Sequence[Fact],
        items: Iterable[Item],
        spoken: Iterable[str],
    ) -> None:
        self._ids = ids
        self.titles = [n for n in sorted({f.title for f in facts}) if len(ids(n)) == 1]
        self.title_tokens = [ids(n)[0] for n in self.titles]
        found: dict[str, set[int]] = defaultdict(set)
        for fact in facts:
            if len(tokens := ids(fact.answer)) == 1:
                found[BY_NAME[fact.relation].kind].add(tokens[0])
        self.answers = {kind: sorted(tokens) for kind, tokens in found.items()}
        fixed = {t for item in items for name in self._aliases(item) for t in ids(name)}
        fixed.update(t for text in (*spoken, *_wordings()) for t in ids(text))
        self._renamable: list[np.ndarray] = []
        for tokens in (found["country"] | set(self.title_tokens), *found.values()):
            free = np.asarray(sorted(tokens - fixed), dtype=np.int64)
            fixed |= tokens  # a token of two kinds belongs to the first
            self._renamable.append(free)

    def of_kind(self, fact: Fact) -> list[int]:
        """Tokens of answers of the kind that the fact's answer has."""
        return self.answers.get(BY_NAME[fact.relation].kind, [])

    def _aliases(self, item: Item) -> set[str]:
        """Names that stand beside another one-token name of the same entity."""
        found: set[str] = set()
        for node in item.nodes:
            short = {name for name in node.answers if len(self._ids(name)) == 1}
            found |= short if len(short) > 1 else set()
        return found

    def rename(self, tokens: np.ndarray, rng: np.random.Generator) -> None:
        """Replace every name and answer in place, one for one, by another of its kind."""
        most = max([int(tokens.max()), *(int(k[-1]) for k in self._renamable if len(k))])
        table = np.arange(most + 1)
        for kind in self._renamable:
            table[kind] = rng.permutation(kind)
        tokens[:] = table[tokens]

    def swap(
        self,
        tokens: np.ndarray,
        item: Item,
        facts: Sequence[Fact],
        answers: bool,
        subjects: bool,
        rng: np.random.Generator,
    ) -> None:
        """Replace answers and subjects of the facts in place by others that are not in sight."""
        aliased, present = self._aliases(item), set(tokens.tolist())
        jobs = [(f.answer, self.of_kind(f)) for f in facts if answers]
        jobs += [(t, self.title_tokens) for t in dict.fromkeys(f.title for f in facts) if subjects]
        taken: set[int] = set()
        for name, pool in jobs:
            old = self._ids(name)
            if name in aliased or len(old) != 1 or old[0] in taken or len(pool) < 2:
                continue
            for _ in range(8):
                new = int(pool[rng.integers(len(pool))])
                if new not in present:
                    tokens[tokens == old[0]] = new
                    present.add(new)
                    taken.add(new)
                    break


def _wordings() -> list[str]:
    """What questions and queries say beside names."""
    texts: list[str] = []
    for r in RELATIONS:
        for text in (*r.questions, r.query, r.phrase, r.described, r.shared, r.field):
            texts.append(text.format(s="", o="", a="", b=""))
    return texts
