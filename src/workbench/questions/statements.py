"""Statements: relations between entities, each with the passage that says it (S3 section 2.1).

A *statement* is one subject-property-object triple and its source passage.  Whatever corpus
and knowledge base they come from (the embedded profiles, KILT pages and Wikidata), question
graphs are composed from statements and properties alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from ..errors import WorkbenchError
from .graph import Evidence


@dataclass(frozen=True, slots=True)
class Property:
    """How a relation is worded.

    Attributes
    ----------
    name : its id ("capital", "P36").
    kind : type of its objects, for replacements of the same type.
    asks : question templates over ``{s}``, the name or description of the subject.
    phrase : the object as a noun phrase over ``{s}``: "the capital of {s}".
    describes : the subject as a noun phrase over ``{o}``: "the country whose capital is {o}";
        empty where an object says little about a subject.
    shared : the object that two subjects have in common, over ``{a}`` and ``{b}``: "the country
        that borders both {a} and {b}"; empty where that is never asked.
    leads : whether its objects are entities that have statements of their own.
    """

    name: str
    kind: str
    asks: tuple[str, ...]
    phrase: str
    describes: str = ""
    shared: str = ""
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """``relation`` holds between ``subject`` and ``object``; ``evidence`` mentions the object.

    ``subject`` and ``object`` are ids of entities (page ids, Wikidata ids) or of literals;
    ``answers`` are the names of the object, the main one first; ``subject_names`` those
    of the subject.  ``mentions_subject`` are the spans of the subject's names in the same
    passage, empty where only the page's title names it.
    """

    statement_id: str
    subject: str
    relation: str
    object: str
    subject_names: tuple[str, ...]
    answers: tuple[str, ...]
    evidence: Evidence
    mentions_subject: tuple[tuple[int, int], ...] = ()


class Knowledge:
    """Statements by subject and by object, and which properties map a subject to one object.

    Parameters
    ----------
    statements : any order; kept in order of id.
    properties : the wording of every relation that occurs.
    max_objects : a property is *functional* when its subjects have at most this many objects
        on average (S3 App. B: 1.5).
    facts : (subject, property, object) that a knowledge base holds beyond the statements; they
        count where it matters how many objects there are, and as shortcuts.
    mean_objects : objects per subject over the whole knowledge base, by property; without it
        the statements are counted.

    Raises
    ------
    WorkbenchError
        a statement without source passage, without an answer, of an unknown property, or two
        of one id; the record's id is named.  `usable` counts and leaves out such records
        instead.
    """

    def __init__(
        self,
        statements: Iterable[Statement],
        properties: Mapping[str, Property],
        max_objects: float = 1.5,
        facts: Iterable[tuple[str, str, str]] = (),
        mean_objects: Mapping[str, float] | None = None,
    ) -> None:
        self.properties = dict(properties)
        self.statements: dict[str, Statement] = {}
        self._objects: dict[str, dict[str, dict[str, Statement]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._subjects: dict[tuple[str, str], dict[str, Statement]] = defaultdict(dict)
        self._linked: dict[str, set[str]] = defaultdict(set)
        for statement in sorted(statements, key=lambda s: s.statement_id):
            if reason := refusal(statement, self.properties):
                raise WorkbenchError(reason, where=f"statement {statement.statement_id}")
            if statement.statement_id in self.statements:
                raise WorkbenchError(
                    "two statements have one id", where=f"statement {statement.statement_id}"
                )
            self.statements[statement.statement_id] = statement
            own = self._objects[statement.subject][statement.relation]
            own.setdefault(statement.object, statement)
            self._subjects[statement.relation, statement.object].setdefault(
                statement.subject, statement
            )
            self._linked[statement.subject].add(statement.object)
        self._beyond: dict[tuple[str, str], set[str]] = defaultdict(set)
        for subject, relation, obj in facts:
            self._linked[subject].add(obj)
            if obj not in self.objects(subject, relation):
                self._beyond[subject, relation].add(obj)
        if mean_objects is None:
            mean_objects = self._mean_objects()
        self._functional = {r for r, mean in mean_objects.items() if mean <= max_objects}

    def _mean_objects(self) -> dict[str, float]:
        counts: dict[str, list[int]] = defaultdict(list)
        for subject, relations in self._objects.items():
            for relation in relations:
                counts[relation].append(len(self.known(subject, relation)))
        return {relation: sum(n) / len(n) for relation, n in counts.items()}

    def subjects(self) -> list[str]:
        """Every entity that has a statement, in order of id."""
        return sorted(self._objects)

    def relations(self, subject: str) -> list[str]:
        """The relations that a subject has, sorted."""
        return sorted(self._objects.get(subject, {}))

    def objects(self, subject: str, relation: str) -> dict[str, Statement]:
        """Object id -> the statement that gives it."""
        return self._objects.get(subject, {}).get(relation, {})

    def known(self, subject: str, relation: str) -> Set[str]:
        """All objects of a subject, also those that no passage grounds."""
        own = self.objects(subject, relation).keys()
        beyond = self._beyond.get((subject, relation))
        return own | beyond if beyond else own

    def holders(self, relation: str, obj: str) -> dict[str, Statement]:
        """Subject id -> its statement, for all subjects of one object."""
        return self._subjects.get((relation, obj), {})

    def shared_objects(self) -> list[tuple[str, str]]:
        """Every (relation, object) that more than one subject has, sorted."""
        return sorted(key for key, holders in self._subjects.items() if len(holders) > 1)

    def only(self, subject: str, relation: str) -> Statement | None:
        """The one statement of a functional property, or None (S3: exactly one object)."""
        found = self.objects(subject, relation)
        if relation not in self._functional or len(found) != 1:
            return None
        if (subject, relation) in self._beyond:
            return None
        return next(iter(found.values()))

    def linked(self, subject: str, obj: str) -> bool:
        """Whether any relation leads from ``subject`` straight to ``obj``."""
        return obj in self._linked.get(subject, ())


def refusal(statement: Statement, properties: Mapping[str, Property]) -> str | None:
    """Why a statement cannot be used, or None."""
    if statement.relation not in properties:
        return f"unknown property {statement.relation!r}"
    if not statement.evidence.page_id or not statement.evidence.mentions:
        return "no source passage"
    if any(not 0 <= start < end for start, end in statement.evidence.mentions):
        return "a mention outside its passage"
    if not statement.answers or not all(a.strip() for a in statement.answers):
        return "an empty answer"
    if not statement.subject_names or not all(n.strip() for n in statement.subject_names):
        return "a subject without name"
    return None


def usable(
    statements: Iterable[Statement], properties: Mapping[str, Property]
) -> tuple[list[Statement], dict[str, list[str]]]:
    """The statements that `Knowledge` takes, and the ids of the others by reason."""
    kept: list[Statement] = []
    refused: dict[str, list[str]] = defaultdict(list)
    seen: set[str] = set()
    for statement in statements:
        reason = refusal(statement, properties)
        if reason is None and statement.statement_id in seen:
            reason = "two statements have one id"
        if reason is None:
            kept.append(statement)
            seen.add(statement.statement_id)
        else:
            refused[reason].append(statement.statement_id)
    return kept, dict(refused)
