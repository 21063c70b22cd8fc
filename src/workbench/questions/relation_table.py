# ruff: noqa: E501 -- a pattern reads best on one line
"""The relations of the embedded corpus: which field says them, how they are asked.

A relation is a regular expression over one paragraph of the embedded corpus whose group
``answer`` is the object; the page is the subject.
"""

from __future__ import annotations

from dataclasses import dataclass

from .statements import Property


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation of the embedded corpus.

    ``questions`` are templates over ``{s}`` (the subject's name or a description of it);
    ``phrase`` names the object by the subject; ``described`` describes the subject by the
    object ``{o}``, empty where it would mostly name it; ``shared`` names the object that two
    subjects have in common; ``query`` is how a good search asks for it; ``kind`` is the type
    of the answer, so that replacements can be drawn from the same type.  A ``listed`` relation
    has every match of ``pattern`` in its paragraph as an object, the others have one.
    """

    name: str
    field: str
    pattern: str
    questions: tuple[str, ...]
    query: str
    kind: str
    phrase: str
    described: str = ""
    shared: str = ""
    listed: bool = False

    @property
    def wording(self) -> Property:
        """The relation as question graphs see it; countries lead on to their own pages."""
        return Property(
            self.name, self.kind, self.questions, self.phrase, self.described, self.shared,
            leads=self.kind == "country",
        )  # fmt: skip


_DATE = r"\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)"
_OFFICE = (
    r"(?:(?:Acting|Interim|Federal|First|State|Chief|Prime) )*"
    r"(?:President|Minister|Premier|King|Queen|Emperor|Chancellor|Amir|Sultan|Prince|Grand Duke"
    r"|Taoiseach|Governor|Administrator|Mayor|Chief Executive|Head of Government) "
)
_PERSON = (
    r"(?P<answer>(?:[A-Z][\w'\-]+ ){0,4}?[A-Z][A-Z'\-]{2,}(?: [A-Z][\w'\-]*){0,2})(?: \(| of |,|;)"
)
_POWER = r"[A-Z][\w.'’\-]*(?: (?:of|and|the|[A-Z][\w.'’\-]*))*?"
_NAME = r"[^\W\d][\w.'’\- ]*?[\w.'’]"

RELATIONS: tuple[Relation, ...] = (
    Relation(
        "capital",
        "Capital",
        rf"^Capital: (?!no |none)(?P<answer>{_NAME})(?: \(|;| in |$)",
        ("What is the capital of {s}?", "Which city is the capital of {s}?"),
        "{s} capital",
        "city",
        "the capital of {s}",
        "the country whose capital is {o}",
    ),
    Relation(
        "currency",
        "Exchange rates",
        rf"^Exchange rates: (?:the )?(?P<answer>{_NAME})(?: \([A-Z]{{3}}\))? per US dollar",
        ("What is the currency of {s}?", "Which currency is used in {s}?"),
        "{s} exchange rates",
        "currency",
        "the currency of {s}",
        "the country whose currency is {o}",
    ),
    Relation(
        "independence_date",
        "Independence",
        rf"^Independence: (?P<answer>{_DATE} \d{{4}})",
        ("When did {s} become independent?", "On what date did {s} gain independence?"),
        "{s} independence",
        "date",
        "the day on which {s} became independent",
        "the country that became independent on {o}",
    ),
    Relation(
        "independence_from",
        "Independence",
        rf"^Independence: {_DATE} \d{{4}} \(from (?:the )?(?!South African)(?P<answer>{_POWER})(?<!-)(?:[;,)]| under| mandate| by )",
        ("From whom did {s} become independent?", "Which power did {s} gain independence from?"),
        "{s} independence",
        "country",
        "the power that {s} became independent from",
        "the country that became independent from {o}",
    ),
    Relation(
        "national_day",
        "National holiday",
        rf"^National holiday: [^\d;]*?,? ?(?P<answer>{_DATE})",
        (
            "When is the national holiday of {s}?",
            "On which day does {s} celebrate its national holiday?",
        ),
        "{s} national holiday",
        "day",
        "the national holiday of {s}",
        "the country whose national holiday is on {o}",
    ),
    Relation(
        "highest_point",
        "Elevation extremes - highest point",
        rf"^Elevation extremes - highest point: (?!unnamed|sea level)(?P<answer>{_NAME})(?: \([^)]*\))? [\d,.]+ m",
        ("What is the highest point of {s}?", "Which mountain is the highest point of {s}?"),
        "{s} highest point",
        "peak",
        "the highest point of {s}",
        "the country whose highest point is {o}",
    ),
    Relation(
        "anthem",
        "National anthem",
        r"^National anthem: \"(?P<answer>[^\"()]+?)[!,.]?\"",
        ("What is the national anthem of {s}?", "What is the name of the anthem of {s}?"),
        "{s} national anthem",
        "anthem",
        "the national anthem of {s}",
        "the country whose national anthem is {o}",
    ),
    Relation(
        "lyricist",
        "National anthem - lyrics/music",
        rf"^National anthem - lyrics/music: (?!no lyrics|lyrics|unknown|multiple|traditional|collective|disputed)(?P<answer>{_NAME})/",
        (
            "Who wrote the lyrics of the anthem of {s}?",
            "Who is the lyricist of the national anthem of {s}?",
        ),
        "{s} national anthem lyrics",
        "person",
        "the lyricist of the national anthem of {s}",
        "the country whose anthem has lyrics by {o}",
    ),
    Relation(
        "composer",
        "National anthem - lyrics/music",
        rf"^National anthem - lyrics/music: [^/]+/(?!unknown|multiple|traditional|no |adapted|collective|disputed)(?P<answer>{_NAME})(?:$| \(|;|,)",
        (
            "Who composed the music of the anthem of {s}?",
            "Who is the composer of the national anthem of {s}?",
        ),
        "{s} national anthem music",
        "person",
        "the composer of the national anthem of {s}",
        "the country whose anthem has music by {o}",
    ),
    Relation(
        "export_partner",
        "Exports - partners",
        rf"^Exports - partners: (?P<answer>{_NAME}) [\d.]+%",
        ("Which country is the main export partner of {s}?", "Where do most exports of {s} go?"),
        "{s} exports partners",
        "country",
        "the main export partner of {s}",
        "the country whose main export partner is {o}",
    ),
    Relation(
        "import_partner",
        "Imports - partners",
        rf"^Imports - partners: (?P<answer>{_NAME}) [\d.]+%",
        (
            "Which country is the main import partner of {s}?",
            "Where do most imports of {s} come from?",
        ),
        "{s} imports partners",
        "country",
        "the main import partner of {s}",
        "the country whose main import partner is {o}",
    ),
    Relation(
        "language",
        "Languages",
        r"^Languages: (?P<answer>[A-Z][A-Za-z\-]+(?: [A-Z][A-Za-z\-]+)?)(?: [\d.]+%)? \(official",
        ("What is the official language of {s}?", "Which language is official in {s}?"),
        "{s} languages",
        "language",
        "the official language of {s}",
        "the country whose official language is {o}",
    ),
    Relation(
        "demonym",
        "Nationality - noun",
        r"^Nationality - noun: (?!NA)(?:the )?(?P<answer>[A-Z][A-Za-z'\-]+(?: [A-Z][a-z]+)?)",
        ("What is a citizen of {s} called?", "What are the people of {s} called?"),
        "{s} nationality",
        "demonym",
        "the name for a citizen of {s}",
    ),
    Relation(
        "symbol",
        "National symbol(s)",
        r"^National symbol\(s\): (?!national|none|no )(?P<answer>[A-Za-z][A-Za-z'\- ]+?)(?: \(|,|;|$)",
        ("What is the national symbol of {s}?", "Which symbol stands for {s}?"),
        "{s} national symbol",
        "symbol",
        "the national symbol of {s}",
        "the country whose national symbol is {o}",
    ),
    Relation(
        "second_city",
        "Major urban areas - population",
        r"^Major urban areas - population: [A-Z][^;]*\(capital\)[^;]*; (?P<answer>[A-Z][A-Za-z\-' ]*[a-z])(?: \([^)]*\))? [\d.,]+",
        (
            "What is the largest city of {s} after the capital?",
            "Which city of {s} is next in size to the capital?",
        ),
        "{s} major urban areas",
        "city",
        "the largest city of {s} after the capital",
        "the country whose largest city after the capital is {o}",
    ),
    Relation(
        "head_of_state",
        "Executive branch - chief of state",
        rf"^Executive branch - chief of state: {_OFFICE}{_PERSON}",
        ("Who is the head of state of {s}?", "Who is the chief of state of {s}?"),
        "{s} chief of state",
        "person",
        "the head of state of {s}",
        "the country whose chief of state is {o}",
    ),
    Relation(
        "head_of_government",
        "Executive branch - head of government",
        rf"^Executive branch - head of government: {_OFFICE}{_PERSON}",
        ("Who is the head of government of {s}?", "Who leads the government of {s}?"),
        "{s} head of government",
        "person",
        "the head of government of {s}",
        "the country whose head of government is {o}",
    ),
    Relation(
        "internet_code",
        "Internet country code",
        r"^Internet country code: (?P<answer>\.[a-z]{2})\b",
        ("What is the internet country code of {s}?", "Which internet domain belongs to {s}?"),
        "{s} internet country code",
        "code",
        "the internet country code of {s}",
        "the country with the internet code {o}",
    ),
    Relation(
        "ambassador",
        "Diplomatic representation in the US - chief of mission",
        rf"^Diplomatic representation in the US - chief of mission: (?:Ambassador|Charge d'Affaires|Charge d Affaires) (?P<answer>{_NAME})(?: \(|,|;)",
        ("Who is the ambassador of {s} to the US?", "Who heads the embassy of {s} in Washington?"),
        "{s} chief of mission",
        "person",
        "the ambassador of {s} to the US",
        "the country whose ambassador to the US is {o}",
    ),
    Relation(
        "refugee_origin",
        "Refugees and internally displaced persons - refugees (country of origin)",
        rf"^Refugees and internally displaced persons - refugees \(country of origin\): [\d,]+ \((?P<answer>{_NAME})(?: - [^)]*)?\)",
        (
            "Where do most refugees in {s} come from?",
            "Which country do most refugees in {s} come from?",
        ),
        "{s} refugees origin",
        "country",
        "the country that most refugees in {s} come from",
    ),
    Relation(
        "border",
        "Land boundaries - border countries",
        rf"(?:(?<=countries: )|(?<=km, ))(?P<answer>{_NAME})(?: \([^)]*\))? [\d,.]+ km",
        ("Which country borders {s}?",),
        "{s} border countries",
        "country",
        "a country that borders {s}",
        shared="the country that borders both {a} and {b}",
        listed=True,
    ),
    Relation(
        "export_partners",
        "Exports - partners",
        rf"(?:(?<=partners: )|(?<=%, ))(?P<answer>{_NAME}) [\d.]+%",
        ("Which country is an export partner of {s}?",),
        "{s} exports partners",
        "country",
        "an export partner of {s}",
        shared="the country that is a main export partner of both {a} and {b}",
        listed=True,
    ),
    Relation(
        "import_partners",
        "Imports - partners",
        rf"(?:(?<=partners: )|(?<=%, ))(?P<answer>{_NAME}) [\d.]+%",
        ("Which country is an import partner of {s}?",),
        "{s} imports partners",
        "country",
        "an import partner of {s}",
        shared="the country that is a main import partner of both {a} and {b}",
        listed=True,
    ),
)
