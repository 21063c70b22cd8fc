"""Roots are described, never named: what is known of a root, and the template's description.

A description is a noun phrase.  The template takes, in this order, one relation that no other
entity with a page has, two relations that no other has together, or the Wikidata description
if it belongs to no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ...evaluation.answers import contains_phrase, normalise_answer
from ...seeding import seed_of
from .cooccurrence import entity_names
from .wording import Wording
from .work import Work

INSTANCE_OF = 31
NOUNS = {"human": "person"}
MOST_HOLDERS = 1_000  # a relation of more entities than this helps little and is not counted out


@dataclass(frozen=True, slots=True)
class Trait:
    """A relation of a root as a clause: "born in Bath"; ``names`` are those of its object."""

    clause: str
    names: tuple[str, ...]
    prop: int
    object: int
    holders: int


@dataclass(frozen=True, slots=True)
class Root:
    """What a description of ``entity`` may be made from.

    ``names`` must not occur in it; ``noun`` is what the entity is an instance of;
    ``text`` is its Wikidata description, ``alone`` whether no other entity has the same.
    """

    entity: str
    names: tuple[str, ...]
    noun: str
    text: str
    alone: bool
    traits: tuple[Trait, ...]

    def without(self, names: Sequence[str]) -> Root:
        """The root with nothing said of it that mentions one of these names."""
        traits = tuple(t for t in self.traits if not mentions(t.clause, names))
        return replace(self, traits=traits, text="" if mentions(self.text, names) else self.text)


def mentions(text: str, names: Sequence[str]) -> bool:
    """Whether a name stands in the text on word boundaries, both in normal form."""
    normal = normalise_answer(text)
    return any(contains_phrase(normal, normalise_answer(name)) for name in names)


def root_of(
    work: Work, entity: str, wordings: Mapping[int, Wording], most: int = 12
) -> Root:  # fmt: skip
    """Everything about one root, its ``most`` first traits by hash."""
    qid = int(entity[1:])
    facts = work.db.execute("SELECT p, o FROM facts WHERE s = ? AND o > 0", (qid,)).fetchall()
    classes = [o for p, o in facts if p == INSTANCE_OF]
    usable = sorted((f for f in facts if f[0] in wordings), key=lambda f: seed_of("trait", *f))
    names = entity_names(work, [qid, *classes, *(o for _, o in usable)])
    nouns = [names[o][0] for o in sorted(classes) if names[o]]
    noun = nouns[0] if nouns else "entity"
    own = tuple(names[qid])
    traits = [
        Trait(wordings[p].clause.format(o=names[o][0]), names[o], p, o, _holders(work, p, o))
        for p, o in [f for f in usable if names[f[1]]][:most]
    ]
    text, alone = _text(work, qid)
    return Root(
        entity, own, NOUNS.get(noun, noun), text, alone,
        tuple(t for t in traits if not mentions(t.clause, own)),
    )  # fmt: skip


def _holders(work: Work, prop: int, obj: int) -> int:
    query = "SELECT count(*) FROM (SELECT 1 FROM facts WHERE p = ? AND o = ? LIMIT ?)"
    return work.db.execute(query, (prop, obj, MOST_HOLDERS + 1)).fetchone()[0]


def _text(work: Work, qid: int) -> tuple[str, bool]:
    row = work.db.execute("SELECT description FROM terms WHERE qid = ?", (qid,)).fetchone()
    if row is None or not row[0]:
        return "", False
    query = "SELECT count(*) FROM (SELECT 1 FROM terms WHERE description = ? LIMIT 2)"
    return row[0], work.db.execute(query, row).fetchone()[0] == 1


def by_template(work: Work, root: Root) -> str | None:
    """The first description that belongs to this root alone and does not name it."""
    return next((p for p in _phrases(work, root) if not mentions(p, root.names)), None)


def _phrases(work: Work, root: Root) -> Iterator[str]:
    noun = root.noun if not mentions(root.noun, root.names) else "entity"
    for trait in root.traits:
        if trait.holders == 1:
            yield f"the {noun} {trait.clause}"
    rare = [t for t in root.traits if 1 < t.holders <= MOST_HOLDERS]
    for one, two in combinations(sorted(rare, key=lambda t: (t.holders, t.clause)), 2):
        if one.prop != two.prop and _together(work, one, two) == 1:
            yield f"the {noun} {one.clause} and {two.clause}"
    if root.alone and root.text:
        yield f"the {root.text.removeprefix('the ')}"


def _together(work: Work, one: Trait, two: Trait) -> int:
    query = (
        "SELECT count(*) FROM facts a JOIN facts b ON b.s = a.s AND b.p = ? AND b.o = ? "
        "WHERE a.p = ? AND a.o = ?"
    )
    return work.db.execute(query, (two.prop, two.object, one.prop, one.object)).fetchone()[0]
