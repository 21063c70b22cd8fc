"""From the work file to a `Knowledge` that fits into memory, and the starts of its graphs.

What KILT grounds is far too much to compose at once, so a part is drawn: statements by hash as
the starts of chains, objects of several subjects for conjunctions with what leads into those
subjects, and from all of them everything that chains of four steps can reach.  The knowledge
base itself is asked in full wherever a number of objects matters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..compose import share, start
from ..enumerate import Starts, shared_pairs
from ..graph import Evidence
from ..statements import Knowledge, Statement
from .cooccurrence import Fact, entity_names, statement_id
from .settings import SourceConfig
from .wording import WORDED, Wording, to_property, wording_of
from .work import Work

STEPS = 3  # after the first hop
_COLUMNS = "s, p, o, page, paragraph, mentions, subject, first"


def stand_in(entity: str) -> str:
    """What stands for a root until it is described."""
    return f"[{entity}]"


@dataclass
class Part:
    """The drawn statements: ``first`` holds the ids of those whose evidence is in the first
    chunk of its page."""

    knowledge: Knowledge
    first: set[str] = field(default_factory=set)


def wordings(work: Work, config: SourceConfig) -> dict[int, tuple[Wording, str | None, float]]:
    """Property -> its wording, its label and its mean number of objects, of those in use."""
    ignored = {int(p[1:]) for p in config.ignored}
    rows = work.db.execute("SELECT pid, label, subjects, objects FROM properties WHERE subjects")
    return {
        pid: (wording, label, objects / subjects)
        for pid, label, subjects, objects in rows
        if pid not in ignored
        and (pid in WORDED or config.properties == "all")
        and (wording := wording_of(pid, label)) is not None
    }


def draw_part(work: Work, config: SourceConfig) -> Part:
    """Draw statements, bounded by ``config.sample``, with all that their graphs need."""
    properties = wordings(work, config)
    rows = _Draw(work, config, properties).rows()
    names = entity_names(work, {q for fact in rows for q in (fact[0], fact[2])})
    statements, first = [], set()
    for fact, (page, paragraph, mentions, subject, in_first) in sorted(rows.items()):
        spans = tuple(map(tuple, json.loads(mentions)))
        evidence = Evidence(str(page), paragraph, spans)
        statement = Statement(
            statement_id(fact), f"Q{fact[0]}", f"P{fact[1]}", f"Q{fact[2]}", names[fact[0]],
            names[fact[2]], evidence, tuple(map(tuple, json.loads(subject))),
        )  # fmt: skip
        statements.append(statement)
        if in_first:
            first.add(statement.statement_id)
    knowledge = Knowledge(
        statements,
        {f"P{pid}": to_property(pid, word, label) for pid, (word, label, _) in properties.items()},
        config.max_objects,
        _facts(work, {fact[0] for fact in rows}),
        {f"P{pid}": mean for pid, (_, _, mean) in properties.items()},
    )
    return Part(knowledge, first)


def _facts(work: Work, subjects: set[int]) -> Iterable[tuple[str, str, str]]:
    shared: dict[int, str] = {}
    query = "SELECT s, p, o FROM facts WHERE s IN ({})"
    for s, p, o in work.select_in(query, sorted(subjects)):
        yield (
            shared.setdefault(s, f"Q{s}"), f"P{p}", shared.setdefault(o, f"Q{o}"),
        )  # fmt: skip


class _Draw:
    def __init__(self, work: Work, config: SourceConfig, properties: dict):
        self._work, self._sample = work, config.sample
        functional = [p for p, (_, _, mean) in properties.items() if mean <= config.max_objects]
        several = [p for p, (wording, _, _) in properties.items() if wording.shared]
        # "+p": the hash decides the order, so the index on it must be walked.
        self._only = f"+p IN ({_numbers(functional)}) AND {_objects('=')}"
        self._many = f"+p IN ({_numbers(several)}) AND {_objects('>')}"
        self._rows: dict[Fact, tuple] = {}

    def rows(self) -> dict[Fact, tuple]:
        """(s, p, o) -> (page, paragraph, mentions, subject's mentions, first)."""
        sample = self._sample
        self._take(f"{self._only} ORDER BY place LIMIT ?", (sample.starts,))
        for subject in self._conjunctions():
            for before in self._into(subject):
                self._into(before)
        frontier = {fact[2] for fact in self._rows}
        met: set[int] = set()
        for _ in range(STEPS):
            met |= frontier
            ahead: set[int] = set()
            for entity in sorted(frontier):
                ahead |= {f[2] for f in self._take(f"s = ? AND {self._only} ORDER BY p", (entity,))}
            frontier = ahead - met
        return self._rows

    def _take(self, condition: str, values: tuple) -> list[Fact]:
        """Add the rows of a query, as far as there is room; their facts."""
        found = []
        query = f"SELECT {_COLUMNS} FROM grounded WHERE {condition}"
        for row in self._work.db.execute(query, values):
            fact = row[:3]
            if fact not in self._rows and len(self._rows) >= self._sample.statements:
                break
            self._rows[fact] = row[3:]
            found.append(fact)
        return found

    def _into(self, entity: int) -> list[int]:
        """Subjects of functional statements that lead into an entity."""
        condition = f"o = ? AND {self._only} ORDER BY place LIMIT ?"
        return [fact[0] for fact in self._take(condition, (entity, self._sample.fan))]

    def _conjunctions(self) -> list[int]:
        """The subjects of drawn objects that at least two subjects have."""
        sample, subjects, seen = self._sample, [], set()
        query = f"SELECT p, o FROM grounded WHERE {self._many} ORDER BY place"
        for p, o in self._work.db.execute(query):
            if len(seen) >= sample.shared or len(self._rows) >= sample.statements:
                break
            if (p, o) in seen:
                continue
            condition = f"p = ? AND o = ? AND {_objects('>')} ORDER BY place LIMIT ?"
            count = self._work.db.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM grounded WHERE {condition})", (p, o, 2)
            ).fetchone()[0]
            if count > 1:
                seen.add((p, o))
                facts = self._take(condition, (p, o, sample.holders))
                subjects += [fact[0] for fact in facts]
        return sorted(set(subjects))


def _objects(relation: str) -> str:
    """SQL: how many objects the knowledge base has for the pair, against one."""
    counted = "SELECT count(*) FROM facts f WHERE f.s = grounded.s AND f.p = grounded.p"
    return f"({counted}) {relation} 1"


def _numbers(values: Iterable[int]) -> str:
    return ",".join(map(str, sorted(values)))


def starts(knowledge: Knowledge, holders: int) -> Starts:
    """One-node graphs over stand-ins: the only object of a subject, and shared objects."""
    properties = knowledge.properties
    singles = [
        start(s, properties[s.relation], stand_in(s.subject))
        for s in knowledge.statements.values()
        if knowledge.only(s.subject, s.relation) is not None
    ]
    conjunctive = [
        share(first, second, properties[first.relation], stand_in(a), stand_in(b))
        for first, second, a, b in shared_pairs(knowledge, holders)
    ]
    return Starts(singles, conjunctive)
