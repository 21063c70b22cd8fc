"""All graphs of the ten categories that a body of knowledge carries, sampled deterministically.

Candidates are generated one after the other and only the ``limit`` first by hash are kept for
each category and split, so memory does not grow with their number and adding statements
elsewhere does not reshuffle what was drawn.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ..seeding import seed_of
from .categories import category_of
from .compose import Partial, join, shortcut, step
from .statements import Knowledge, Statement

SPARE = 8  # candidates held for each place of a limited category, so that answers can be varied


@dataclass(frozen=True)
class Starts:
    """Graphs of one node: those with one passage and the conjunctive ones."""

    singles: Sequence[Partial]
    conjunctive: Sequence[Partial]


@dataclass
class Drawn:
    """Graphs by (category, split), and what was left out: reason -> how many, and some ids."""

    graphs: dict[tuple[str, str], list[Partial]]
    excluded: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def leave_out(self, reason: str, graph_id: str) -> None:
        """Count one; the first ten ids of each reason are kept."""
        self.excluded[reason] += 1
        if len(self.examples[reason]) < 10:
            self.examples[reason].append(graph_id)


def draw_graphs(
    knowledge: Knowledge,
    starts: Starts,
    split_of: Callable[[Statement], str],
    limit: Callable[[str, str], int | None],
    refuse: Callable[[Partial], str | None],
    fan: int = 4,
    answer_share: float = 1.0,
    spare: int = SPARE,
    holders: int | None = None,
    tell: Callable[[str, str], None] = lambda reason, graph_id: None,
) -> Drawn:
    """Sample graphs of every category.

    Parameters
    ----------
    split_of : the split of a statement; a graph is kept when all of its statements share one.
    limit : how many graphs of a category and split are kept (None: all).
    refuse : a reason to exclude a graph (missing grounding, an answer in the question), or None.
    fan : starts and continuations of one entity that enter longer graphs.
    answer_share : at most this share of a limited category and split has one answer.
    spare : candidates held for each place of a limited category.
    holders : subjects of one object that are joined with each other (None: all).
    tell : is told the reason and the id of every graph that is excluded (not of those over
        a limit).
    """
    grower = _Grower(knowledge, split_of, fan, holders, Drawn({}))
    drawn = grower.drawn
    heaps: dict[tuple[str, str], list] = defaultdict(list)
    for partial in grower.candidates(starts):
        reason = "graph shortcut" if shortcut(partial, knowledge) else refuse(partial)
        category = category_of(partial.nodes)
        if reason is None and category is None:
            reason = "no category"
        if reason is not None:
            drawn.leave_out(reason, partial.graph_id)
            tell(reason, partial.graph_id)
            continue
        split = split_of(partial.statements[0])
        most, heap = limit(category, split), heaps[category, split]
        heapq.heappush(heap, (-seed_of("graph", partial.graph_id), partial.graph_id, partial))
        if most is not None and len(heap) > spare * most:
            heapq.heappop(heap)
            drawn.excluded["over the limit of its category"] += 1
    for (category, split), heap in heaps.items():
        most = limit(category, split)
        kept = _varied([entry[2] for entry in sorted(heap, reverse=True)], most, answer_share)
        drawn.graphs[category, split] = sorted(kept, key=lambda p: p.graph_id)
        drawn.excluded["over the limit of its category"] += len(heap) - len(kept)
    return drawn


def _varied(partials: list[Partial], most: int | None, share: float) -> list[Partial]:
    """The first ``most`` of which no more than their share has one answer."""
    if most is None:
        return partials
    bound, seen, kept = max(1, int(share * most)), Counter(), []
    for partial in partials:
        if len(kept) < most and seen[partial.entity] < bound:
            seen[partial.entity] += 1
            kept.append(partial)
    return kept


@dataclass(frozen=True)
class _Grower:
    knowledge: Knowledge
    split_of: Callable[[Statement], str]
    fan: int
    holders: int | None
    drawn: Drawn

    def candidates(self, starts: Starts) -> Iterator[Partial]:
        singles = [p for p in starts.singles if self._together(p)]
        conjunctive = [p for p in starts.conjunctive if self._together(p)]
        yield from singles
        yield from conjunctive
        ends = self._by_entity(singles)
        level, twice = [p for own in ends.values() for p in own], {}
        for length in (2, 3, 4):
            grown = [longer for p in level for longer in self._steps(p, None)]
            yield from grown
            onward = self._by_entity(p for p in grown if self.knowledge.relations(p.entity))
            twice = onward if length == 2 else twice
            level = [p for own in onward.values() for p in own]
        wide = [longer for p in conjunctive for longer in self._steps(p, self.fan)]
        yield from wide
        for partial in wide:
            yield from self._steps(partial, self.fan)
        yield from self._joined(ends, twice)

    def _joined(self, ends, twice) -> Iterator[Partial]:
        for first, other, a, b in shared_pairs(self.knowledge, self.holders):
            if not self._one_split((first, other)):
                continue
            split = self.split_of(first)
            left, right = _pick(ends.get((a, split)), b), _pick(ends.get((b, split)), a)
            if left is None or right is None:
                continue
            prop = self.knowledge.properties[first.relation]
            joined = join(left, right, first, other, prop)
            yield joined
            yield from self._steps(joined, self.fan)
            if longer := _pick(twice.get((a, split)), b):
                yield join(longer, right, first, other, prop)
            if longer := _pick(twice.get((b, split)), a):
                yield join(longer, left, other, first, prop)

    def _together(self, partial: Partial) -> bool:
        return self._one_split(partial.statements)

    def _one_split(self, statements: Sequence[Statement]) -> bool:
        one = len({self.split_of(s) for s in statements}) == 1
        self.drawn.excluded["pages in different splits"] += not one
        return one

    def _steps(self, partial: Partial, fan: int | None) -> list[Partial]:
        """The graph with each functional property of its answer that was not used on the way."""
        used = {s.statement_id for s in partial.statements}
        knowledge, found = self.knowledge, []
        for relation in knowledge.relations(partial.entity):
            statement = knowledge.only(partial.entity, relation)
            if statement is None or statement.statement_id in used:
                continue
            if self._one_split((partial.statements[0], statement)):
                found.append((seed_of("step", partial.graph_id, relation), relation, statement))
        chosen = sorted(found) if fan is None else heapq.nsmallest(fan, found)
        return [step(partial, s, knowledge.properties[r]) for _, r, s in chosen]

    def _by_entity(self, partials: Iterable[Partial]) -> dict[tuple[str, str], list[Partial]]:
        """Graphs that end in an entity: the ``fan`` first by hash for each entity and split."""
        found: dict[tuple[str, str], list[Partial]] = defaultdict(list)
        for partial in partials:
            found[partial.entity, self.split_of(partial.statements[0])].append(partial)
        return {
            end: heapq.nsmallest(self.fan, own, key=lambda p: seed_of("end", p.graph_id))
            for end, own in sorted(found.items())
        }


def _pick(partials: Sequence[Partial] | None, key: str) -> Partial | None:
    """One of the graphs, always the same one for the same key."""
    if not partials:
        return None
    return min(partials, key=lambda p: seed_of("pick", p.graph_id, key))


def shared_pairs(
    knowledge: Knowledge, holders: int | None = None
) -> Iterator[tuple[Statement, Statement, str, str]]:
    """Two subjects that share exactly one of their several objects (S3's conjunction rule).

    Neither subject alone determines the answer: both have at least two objects.  With
    ``holders`` only so many subjects of an object, the first by hash, are paired.
    """
    for relation, obj in knowledge.shared_objects():
        if not knowledge.properties[relation].shared:
            continue
        found = knowledge.holders(relation, obj)
        several = [s for s in found if len(knowledge.known(s, relation)) > 1]
        if holders is not None:
            several = heapq.nsmallest(holders, several, key=lambda s: seed_of("holder", s, obj))
        for a, b in combinations(sorted(several), 2):
            if len(knowledge.known(a, relation) & knowledge.known(b, relation)) == 1:
                yield found[a], found[b], a, b


def twin_descriptions(knowledge: Knowledge, most: int) -> Iterator[tuple[Statement, Statement]]:
    """Two objects that each describe several subjects and together exactly one (backwards).

    ``most`` bounds the subjects that one of the two may have.
    """
    loose: Mapping[str, list[Statement]] = defaultdict(list)
    for relation, obj in knowledge.shared_objects():
        holders = knowledge.holders(relation, obj)
        if knowledge.properties[relation].describes and len(holders) <= most:
            for statement in holders.values():
                loose[statement.subject].append(statement)
    for subject in sorted(loose):
        for first, second in combinations(loose[subject], 2):
            if first.relation == second.relation:
                continue
            one = knowledge.holders(first.relation, first.object).keys()
            two = knowledge.holders(second.relation, second.object).keys()
            if one & two == {subject}:
                yield first, second
