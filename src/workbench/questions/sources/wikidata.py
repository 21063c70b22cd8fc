"""Lines of a Wikidata truthy dump (``latest-truthy.nt``, N-Triples 1.1).

What is used of it:

- ``<http://www.wikidata.org/entity/Q42> <http://www.wikidata.org/prop/direct/P69>
  <http://www.wikidata.org/entity/Q691283> .`` is a fact between two entities; a blank node
  as object (``_:...``) says that there is a value which nobody knows;
- ``rdfs:label``, ``skos:prefLabel`` and ``schema:name`` give an entity's label,
  ``skos:altLabel`` an alias and ``schema:description`` its description, each once a language;
  for ``.../entity/P69`` the label is that of the property.

The lines of one entity follow each other.  Everything else (dates, coordinates, identifiers,
normalised values, ontology) is read over.

A line parser instead of a library: most lines are labels in other languages, which one regular
expression recognises and drops; a library's parser builds a term object for each of them
and stops for good at the first malformed line, where here it is refused with its number.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .kilt import Refused

# Each: plain characters, then (escape, plain characters) repeated, which needs no backtracking.
_U = rb"(?:\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})"
_PLAIN_IRI = rb"[^\x00-\x20<>\"{}|^`\\]*"
_IRI = rb"<" + _PLAIN_IRI + rb"(?:" + _U + _PLAIN_IRI + rb")*>"
_BLANK = rb"_:[^\s<>\"]+"
_PLAIN_TEXT = rb"[^\"\\\n\r]*"
_LITERAL = (
    rb"\"" + _PLAIN_TEXT + rb"(?:(?:\\[tbnrf\"'\\]|" + _U + rb")" + _PLAIN_TEXT + rb")*\""
    rb"(?:@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*|\^\^" + _IRI + rb")?"
)
_TERMS = (
    ("subject", re.compile(rb"[ \t]*(" + _IRI + rb"|" + _BLANK + rb")[ \t]*")),
    ("predicate", re.compile(rb"(" + _IRI + rb")[ \t]*")),
    ("object", re.compile(rb"(" + _IRI + rb"|" + _BLANK + rb"|" + _LITERAL + rb")[ \t]*")),
    ("full stop", re.compile(rb"\.[ \t]*(?:#[^\r\n]*)?\r?\n?$")),
)
_TRIPLE = re.compile(b"".join(pattern.pattern for _, pattern in _TERMS))
_NOTHING = re.compile(rb"[ \t]*(?:#[^\r\n]*)?\r?\n?$")

_ENTITY = b"<http://www.wikidata.org/entity/"
_DIRECT = b"<http://www.wikidata.org/prop/direct/P"
_ITEM = re.compile(re.escape(_ENTITY) + rb"(Q[1-9][0-9]{0,8})>")
_KINDS = {
    b"<http://www.w3.org/2000/01/rdf-schema#label>": "label",
    b"<http://www.w3.org/2004/02/skos/core#prefLabel>": "label",
    b"<http://schema.org/name>": "label",
    b"<http://www.w3.org/2004/02/skos/core#altLabel>": "alias",
    b"<http://schema.org/description>": "description",
}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

UNKNOWN = "unknown"


class Term(NamedTuple):
    """A used line about entity ``subject`` ("Q42", "P69").

    ``kind`` is "label", "alias" or "description" with the text in ``value``, or "fact"; then
    ``prop`` is the property's number and ``value`` the object's id ("Q691283"), `UNKNOWN` for
    a blank node.
    """

    subject: str
    kind: str
    value: str
    prop: int = 0


def parse_line(line: bytes, language: bytes = b"en") -> Term | None:
    """What a line says, or None if it is of no use here.

    Raises
    ------
    Refused
        the line is not N-Triples; the reason names the first term that is missing or broken.
    """
    match = _TRIPLE.match(line)
    if match is None:
        if _NOTHING.match(line):
            return None
        raise _fault(line)
    subject, predicate, value = match.group(1, 2, 3)
    if not subject.startswith(_ENTITY):
        return None
    entity = subject[len(_ENTITY) : -1].decode()
    if predicate.startswith(_DIRECT):
        if value.startswith(b"_:"):
            found = UNKNOWN
        elif match_item := _ITEM.fullmatch(value):
            found = match_item[1].decode()
        else:
            return None
        number = predicate[len(_DIRECT) : -1]
        return Term(entity, "fact", found, int(number)) if number.isdigit() else None
    kind = _KINDS.get(predicate)
    if kind is None or not value.endswith(b"@" + language):
        return None
    text = _unescape(value[1 : -len(language) - 2]).strip()
    return Term(entity, kind, text) if text else None


def _unescape(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Refused("not UTF-8", detail=str(error)) from error
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match) -> str:
    if match[3]:
        return _ESCAPED.get(match[3], match[3])
    code = int(match[1] or match[2], 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise Refused("an escape that is no character", detail=match[0])
    return chr(code)


def _fault(line: bytes) -> Refused:
    """The line that is no triple, with the first term that does not match."""
    at = 0
    for name, pattern in _TERMS:
        if (match := pattern.match(line, at)) is None:
            return Refused(f"not N-Triples: no valid {name}", detail=f"at byte {at}")
        at = match.end()
    return Refused("not N-Triples")
