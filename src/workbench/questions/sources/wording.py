"""How Wikidata properties are said in a question (S3: "What is the name of the ...?").

Each entry gives the object as a noun phrase over ``{s}``, the subject as a clause over ``{o}``
that follows a noun ("the person born in {o}"), and, for properties with several objects, the
object that ``{a}`` and ``{b}`` share.  Other properties take their label as a noun.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..compose import NAME_OF
from ..statements import Property


@dataclass(frozen=True, slots=True)
class Wording:
    """``phrase`` over {s}, ``clause`` over {o}, ``shared`` over {a} and {b}."""

    phrase: str
    clause: str
    shared: str = ""


# fmt: off
WORDED: dict[int, Wording] = {
    6: Wording("the head of government of {s}", "whose head of government is {o}"),
    17: Wording("the country of {s}", "located in the country {o}"),
    19: Wording("the place of birth of {s}", "born in {o}"),
    20: Wording("the place of death of {s}", "who died in {o}"),
    22: Wording("the father of {s}", "whose father is {o}"),
    25: Wording("the mother of {s}", "whose mother is {o}"),
    26: Wording("the spouse of {s}", "married to {o}"),
    27: Wording("the country of citizenship of {s}", "with citizenship of {o}",
                "the country whose citizens both {a} and {b} are"),
    30: Wording("the continent of {s}", "on the continent {o}",
                "the continent that both {a} and {b} lie on"),
    35: Wording("the head of state of {s}", "whose head of state is {o}"),
    36: Wording("the capital of {s}", "whose capital is {o}"),
    37: Wording("the official language of {s}", "whose official language is {o}",
                "the language that is official in both {a} and {b}"),
    38: Wording("the currency of {s}", "whose currency is {o}",
                "the currency that is used in both {a} and {b}"),
    39: Wording("the position held by {s}", "who held the position {o}",
                "the position that both {a} and {b} held"),
    40: Wording("the child of {s}", "whose child is {o}"),
    47: Wording("the neighbour of {s}", "bordering {o}",
                "the place that borders both {a} and {b}"),
    50: Wording("the author of {s}", "written by {o}", "the author who wrote both {a} and {b}"),
    54: Wording("the sports team of {s}", "who played for {o}",
                "the sports team that both {a} and {b} played for"),
    57: Wording("the director of {s}", "directed by {o}",
                "the director who directed both {a} and {b}"),
    58: Wording("the screenwriter of {s}", "whose screenplay is by {o}",
                "the screenwriter who wrote both {a} and {b}"),
    61: Wording("the discoverer or inventor of {s}", "discovered or invented by {o}"),
    69: Wording("the university or school that {s} attended", "who attended {o}",
                "the university or school that both {a} and {b} attended"),
    84: Wording("the architect of {s}", "designed by {o}"),
    86: Wording("the composer of {s}", "with music by {o}",
                "the composer who wrote the music of both {a} and {b}"),
    101: Wording("the field of work of {s}", "who works in the field of {o}",
                 "the field in which both {a} and {b} work"),
    102: Wording("the political party of {s}", "who belongs to the party {o}",
                 "the political party that both {a} and {b} belonged to"),
    106: Wording("the occupation of {s}", "whose occupation is {o}",
                 "the occupation of both {a} and {b}"),
    108: Wording("the employer of {s}", "employed by {o}",
                 "the employer of both {a} and {b}"),
    112: Wording("the founder of {s}", "founded by {o}", "the founder of both {a} and {b}"),
    119: Wording("the place of burial of {s}", "buried in {o}"),
    127: Wording("the owner of {s}", "owned by {o}", "the owner of both {a} and {b}"),
    131: Wording("the administrative area in which {s} is located", "located in {o}"),
    136: Wording("the genre of {s}", "of the genre {o}", "the genre of both {a} and {b}"),
    138: Wording("the namesake of {s}", "named after {o}"),
    140: Wording("the religion of {s}", "whose religion is {o}"),
    159: Wording("the place of the headquarters of {s}", "with headquarters in {o}"),
    161: Wording("the leading actor of {s}", "with {o} in the cast",
                 "the actor who appears in both {a} and {b}"),
    162: Wording("the producer of {s}", "produced by {o}", "the producer of both {a} and {b}"),
    166: Wording("the award that {s} received", "who received {o}",
                 "the award that both {a} and {b} received"),
    170: Wording("the creator of {s}", "created by {o}"),
    175: Wording("the performer of {s}", "performed by {o}",
                 "the performer of both {a} and {b}"),
    176: Wording("the manufacturer of {s}", "made by {o}"),
    178: Wording("the developer of {s}", "developed by {o}"),
    184: Wording("the doctoral advisor of {s}", "whose doctoral advisor was {o}"),
    190: Wording("the twin town of {s}", "twinned with {o}",
                 "the town that is twinned with both {a} and {b}"),
    206: Wording("the body of water beside {s}", "beside {o}",
                 "the body of water that both {a} and {b} lie beside"),
    264: Wording("the record label of {s}", "signed to the label {o}",
                 "the record label of both {a} and {b}"),
    276: Wording("the location of {s}", "located at {o}"),
    286: Wording("the head coach of {s}", "whose head coach is {o}"),
    403: Wording("the water that {s} flows into", "flowing into {o}"),
    463: Wording("the organisation that {s} is a member of", "that is a member of {o}",
                 "the organisation that both {a} and {b} are members of"),
    495: Wording("the country of origin of {s}", "that comes from {o}"),
    551: Wording("the place of residence of {s}", "who lived in {o}",
                 "the place in which both {a} and {b} lived"),
    641: Wording("the sport of {s}", "in the sport of {o}"),
    710: Wording("the participant of {s}", "in which {o} took part",
                 "the participant of both {a} and {b}"),
    737: Wording("the influence on {s}", "influenced by {o}",
                 "the influence on both {a} and {b}"),
    740: Wording("the place where {s} was formed", "formed in {o}"),
    800: Wording("the notable work of {s}", "known for {o}"),
    1303: Wording("the instrument that {s} plays", "who plays the {o}",
                  "the instrument that both {a} and {b} play"),
    1344: Wording("the event that {s} took part in", "who took part in {o}",
                  "the event that both {a} and {b} took part in"),
    1376: Wording("the place whose capital is {s}", "that is the capital of {o}"),
    1412: Wording("the language that {s} speaks", "who speaks {o}",
                  "the language that both {a} and {b} speak"),
    4552: Wording("the mountain range of {s}", "in the mountain range {o}"),
}
# fmt: on


def wording_of(pid: int, label: str | None) -> Wording | None:
    """The wording of a property: its entry, else one made of its label, else None."""
    if pid in WORDED:
        return WORDED[pid]
    if not label:
        return None
    label = label.replace("{", "").replace("}", "")
    return Wording(
        f"the {label} of {{s}}",
        f"whose {label} is {{o}}",
        f"the {label} that {{a}} and {{b}} have in common",
    )


def to_property(pid: int, wording: Wording, label: str | None) -> Property:
    """The property as question graphs see it; every question asks for a name."""
    return Property(
        f"P{pid}", label or f"P{pid}", (NAME_OF.format(s=wording.phrase),), wording.phrase,
        shared=wording.shared, leads=True,
    )  # fmt: skip
