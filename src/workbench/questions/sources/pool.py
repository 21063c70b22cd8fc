"""Graphs -> items: their roots are described, and what gives an answer away is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from ...evaluation.answers import normalise_answer
from ..checks import usable_items
from ..compose import Partial, fill
from ..graph import Item
from .descriptions import Root, by_template, mentions, root_of
from .endpoint import Endpoint
from .knowledge import stand_in, wordings
from .settings import SourceConfig
from .work import Work

LeaveOut = Callable[[str, str], None]


def roots_of(partial: Partial) -> list[str]:
    """The entities whose stand-ins are in the question."""
    subjects = dict.fromkeys(s.subject for s in partial.statements)
    return [subject for subject in subjects if stand_in(subject) in partial.question]


def met_twice(partial: Partial) -> str | None:
    """An answer that is a root, or that is found twice, makes a part of the graph needless."""
    roots = set(roots_of(partial))
    answers = [entity for entity in partial.path if entity not in roots]
    objects = {s.object for s in partial.statements}
    return "graph shortcut" if objects & roots or len(set(answers)) < len(answers) else None


def eligible(
    described: Iterable[tuple[Partial, Mapping[str, str] | None]],
    categories: Mapping[str, str],
    first: Collection[str],
    leave_out: LeaveOut,
) -> list[tuple[Item, bool]]:
    """The items that can be sampled, each with whether all its evidence is in first chunks.

    Parameters
    ----------
    described : graphs with root -> description (None: a root has none).
    categories : graph id -> category.
    first : ids of the statements whose evidence is in the first chunk of its page.
    leave_out : is told the reason and the id of every graph that is left out.
    """
    kept: list[tuple[Item, bool]] = []
    questions: set[str] = set()
    for partial, words in described:
        reason, item = finished(partial, words, categories[partial.graph_id])
        if item is not None:
            normal = normalise_answer(item.question)
            reason = next(iter(usable_items([item])[1]), None)
            if reason is None and normal in questions:
                reason = "the same question twice"
        if item is None or reason is not None:
            leave_out(reason, partial.graph_id)
            continue
        questions.add(normal)
        kept.append((item, all(s.statement_id in first for s in partial.statements)))
    return kept


def finished(
    partial: Partial, words: dict[str, str] | None, category: str
) -> tuple[str | None, Item | None]:
    """(why it is left out, None) or (None, the item)."""
    if words is None:
        return "a root without description", None
    filled = fill(partial, {stand_in(root): phrase for root, phrase in words.items()})
    if any(mentions(filled.question, node.answers) for node in filled.nodes):
        return "an answer in the question", None
    names = {s.subject: s.subject_names for s in partial.statements}
    if any(mentions(filled.question, names[root]) for root in words):
        return "a root is named", None
    return None, Item(
        f"{len(filled.nodes)}:{filled.graph_id}", filled.question, filled.nodes[-1].answers,
        category, filled.nodes, "train", meta={"roots": words},
    )  # fmt: skip


class Describer:
    """Descriptions of the roots of graphs: the endpoint's where there is one, else a template's."""

    BATCH = 2_000

    def __init__(self, work: Work, config: SourceConfig, out: Path):
        words = {pid: word for pid, (word, _, _) in wordings(work, config).items()}
        self._root = lru_cache(maxsize=20_000)(lambda entity: root_of(work, entity, words))
        self._work, self._used = work, Counter()
        self._endpoint = None
        if config.descriptions.model:
            self._endpoint = Endpoint(config.descriptions, out / "descriptions.jsonl")

    def all(self, pool: list[Partial]) -> Iterator[tuple[Partial, dict[str, str] | None]]:
        """Each graph with root -> description, None where a root has none."""
        from tqdm import tqdm

        bar = tqdm(total=len(pool), desc="graphs", unit="graph", disable=None)
        with bar:
            for begin in range(0, len(pool), self.BATCH):
                some = pool[begin : begin + self.BATCH]
                roots = [self._roots(partial) for partial in some]
                written = {}
                if self._endpoint:
                    written = self._endpoint.describe(r for own in roots for r in own)
                for partial, own in zip(some, roots):
                    yield partial, self._words(partial, own, written)
                    bar.update()

    def report(self) -> dict:
        """How many descriptions came from where, and what failed."""
        asked = {}
        if self._endpoint:
            failures = dict(sorted(self._endpoint.failures.items()))
            asked = {"requests": self._endpoint.asked, "failures": failures}
        return {**dict(sorted(self._used.items())), **asked}

    def _roots(self, partial: Partial) -> list[Root]:
        """The roots without what names an answer of the graph or another root."""
        roots = [self._root(entity) for entity in roots_of(partial)]
        answers = [name for node in partial.nodes for name in node.answers]
        return [
            root.without([*answers, *(n for r in roots if r is not root for n in r.names)])
            for root in roots
        ]

    def _words(self, partial: Partial, roots: list[Root], written) -> dict[str, str] | None:
        words: dict[str, str] = {}
        answers = [name for node in partial.nodes for name in node.answers]
        for root in roots:
            phrase, source = written.get(root), "endpoint"
            if phrase is None or mentions(phrase, answers):
                phrase, source = by_template(self._work, root), "template"
            self._used[source if phrase else "none"] += 1
            if phrase is None:
                return None
            words[root.entity] = phrase
        return words
