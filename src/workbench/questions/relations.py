# ruff: noqa: E501 -- a pattern reads best on one line
"""Relations read out of the corpus text: which field says them, how they are asked.

A relation is a regular expression over one paragraph of the embedded corpus whose group
``answer`` is the object; the page is the subject.  Nothing is taken from outside the text,
so every fact is grounded in a paragraph with the character span of its mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..corpus.embedded import field_of
from ..corpus.records import Page


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation of the embedded corpus.

    ``questions`` are templates over ``{s}`` (the subject's name or a description of it);
    ``described`` describes the subject by the object ``{o}`` and is empty where the object
    rarely names one subject; ``refers`` names the object, a country, by the subject;
    ``query`` is how a good search asks for it; ``kind`` is the type
    of the answer, so that replacements can be drawn from the same type.
    """

    name: str
    field: str
    pattern: str
    questions: tuple[str, ...]
    query: str
    kind: str
    described: str = ""
    refers: str = ""


_DATE = r"\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)"
_OFFICE = (
    r"(?:(?:Acting|Interim|Federal|First|State|Chief|Prime) )*"
    r"(?:President|Minister|Premier|King|Queen|Emperor|Chancellor|Amir|Sultan|Prince|Grand Duke"
    r"|Taoiseach|Governor|Administrator|Mayor|Chief Executive|Head of Government) "
)
_PERSON = r"(?P<answer>(?:[A-Z][\w'\-]+ ){0,4}?[A-Z][A-Z'\-]{2,}(?: [A-Z][\w'\-]*){0,2})(?: \(| of |,|;)"
_NAME = r"[^\W\d][\w.'’\- ]*?[\w.'’]"

RELATIONS: tuple[Relation, ...] = (
    Relation(
        "capital", "Capital", rf"^Capital: (?P<answer>{_NAME})(?: \(|;|$)",
        ("What is the capital of {s}?", "Which city is the capital of {s}?"),
        "{s} capital", "city", "the country whose capital is {o}",
    ),
    Relation(
        "currency", "Exchange rates", rf"^Exchange rates: (?:the )?(?P<answer>{_NAME})(?: \([A-Z]{{3}}\))? per US dollar",
        ("What is the currency of {s}?", "Which currency is used in {s}?"),
        "{s} exchange rates", "currency",
    ),
    Relation(
        "independence_date", "Independence", rf"^Independence: (?P<answer>{_DATE} \d{{4}})",
        ("When did {s} become independent?", "On what date did {s} gain independence?"),
        "{s} independence", "date", "the country that became independent on {o}",
    ),
    Relation(
        "independence_from", "Independence", rf"^Independence: {_DATE} \d{{4}} \(from (?:the )?(?P<answer>{_NAME})(?:[;,)]| under)",
        ("From whom did {s} become independent?", "Which power did {s} gain independence from?"),
        "{s} independence", "country", refers="the power that {s} became independent from",
    ),
    Relation(
        "national_day", "National holiday", rf"^National holiday: [^\d;]*?,? ?(?P<answer>{_DATE})",
        ("When is the national holiday of {s}?", "On which day does {s} celebrate its national holiday?"),
        "{s} national holiday", "day",
    ),
    Relation(
        "highest_point", "Elevation extremes - highest point",
        rf"^Elevation extremes - highest point: (?!unnamed)(?P<answer>{_NAME})(?: \([^)]*\))? [\d,.]+ m",
        ("What is the highest point of {s}?", "Which mountain is the highest point of {s}?"),
        "{s} highest point", "peak", "the country whose highest point is {o}",
    ),
    Relation(
        "anthem", "National anthem", r"^National anthem: \"(?P<answer>[^\"()]+?)[!,.]?\"",
        ("What is the national anthem of {s}?", "What is the name of the anthem of {s}?"),
        "{s} national anthem", "anthem", "the country whose national anthem is {o}",
    ),
    Relation(
        "lyricist", "National anthem - lyrics/music",
        rf"^National anthem - lyrics/music: (?!no lyrics|lyrics|unknown|multiple|traditional)(?P<answer>{_NAME})/",
        ("Who wrote the lyrics of the anthem of {s}?", "Who is the lyricist of the national anthem of {s}?"),
        "{s} national anthem lyrics", "person", "the country whose anthem has lyrics by {o}",
    ),
    Relation(
        "composer", "National anthem - lyrics/music",
        rf"^National anthem - lyrics/music: [^/]+/(?!unknown|multiple|traditional|no )(?P<answer>{_NAME})(?:$| \(|;|,)",
        ("Who composed the music of the anthem of {s}?", "Who is the composer of the national anthem of {s}?"),
        "{s} national anthem music", "person", "the country whose anthem has music by {o}",
    ),
    Relation(
        "export_partner", "Exports - partners", rf"^Exports - partners: (?P<answer>{_NAME}) [\d.]+%",
        ("Which country is the main export partner of {s}?", "Where do most exports of {s} go?"),
        "{s} exports partners", "country", refers="the main export partner of {s}",
    ),
    Relation(
        "import_partner", "Imports - partners", rf"^Imports - partners: (?P<answer>{_NAME}) [\d.]+%",
        ("Which country is the main import partner of {s}?", "Where do most imports of {s} come from?"),
        "{s} imports partners", "country", refers="the main import partner of {s}",
    ),
    Relation(
        "language", "Languages", r"^Languages: (?P<answer>[A-Z][A-Za-z\-]+(?: [A-Z][A-Za-z\-]+)?)(?: [\d.]+%)? \(official",
        ("What is the official language of {s}?", "Which language is official in {s}?"),
        "{s} languages", "language",
    ),
    Relation(
        "demonym", "Nationality - noun", r"^Nationality - noun: (?!NA)(?:the )?(?P<answer>[A-Z][A-Za-z'\-]+(?: [A-Z][a-z]+)?)",
        ("What is a citizen of {s} called?", "What are the people of {s} called?"),
        "{s} nationality", "demonym",
    ),
    Relation(
        "symbol", "National symbol(s)", r"^National symbol\(s\): (?!national|none)(?P<answer>[A-Za-z][A-Za-z'\- ]+?)(?: \(|,|;|$)",
        ("What is the national symbol of {s}?", "Which symbol stands for {s}?"),
        "{s} national symbol", "symbol",
    ),
    Relation(
        "second_city", "Major urban areas - population",
        r"^Major urban areas - population: [A-Z][^;]*\(capital\)[^;]*; (?P<answer>[A-Z][A-Za-z\-' ]*[a-z])(?: \([^)]*\))? [\d.,]+",
        ("What is the largest city of {s} after the capital?", "Which city of {s} is next in size to the capital?"),
        "{s} major urban areas", "city", "the country whose largest city after the capital is {o}",
    ),
    Relation(
        "head_of_state", "Executive branch - chief of state",
        rf"^Executive branch - chief of state: {_OFFICE}{_PERSON}",
        ("Who is the head of state of {s}?", "Who is the chief of state of {s}?"),
        "{s} chief of state", "person", "the country whose chief of state is {o}",
    ),
    Relation(
        "head_of_government", "Executive branch - head of government",
        rf"^Executive branch - head of government: {_OFFICE}{_PERSON}",
        ("Who is the head of government of {s}?", "Who leads the government of {s}?"),
        "{s} head of government", "person", "the country whose head of government is {o}",
    ),
    Relation(
        "internet_code", "Internet country code", r"^Internet country code: (?P<answer>\.[a-z]{2})\b",
        ("What is the internet country code of {s}?", "Which internet domain belongs to {s}?"),
        "{s} internet country code", "code", "the country with the internet code {o}",
    ),
    Relation(
        "ambassador", "Diplomatic representation in the US - chief of mission",
        rf"^Diplomatic representation in the US - chief of mission: (?:Ambassador|Charge d'Affaires|Charge d Affaires) (?P<answer>{_NAME})(?: \(|,|;)",
        ("Who is the ambassador of {s} to the US?", "Who heads the embassy of {s} in Washington?"),
        "{s} chief of mission", "person", "the country whose ambassador to the US is {o}",
    ),
)

FIELDS: tuple[str, ...] = tuple(dict.fromkeys(r.field for r in RELATIONS))
BY_NAME: dict[str, Relation] = {r.name: r for r in RELATIONS}


@dataclass(frozen=True, slots=True)
class Fact:
    """``relation`` holds between the page and ``answer``, read at ``paragraph[start:end]``."""

    fact_id: str
    page_id: str
    title: str
    relation: str
    answer: str
    paragraph: int
    start: int
    end: int


def read_facts(pages: list[Page], max_words: int = 6) -> Iterator[Fact]:
    """Facts of all pages in page order; one per page and relation.

    Answers of more than ``max_words`` words are left out: they are clauses, not entities.
    A page that gives one answer to two relations of the same kind keeps the first of them: one
    person as head of state and of government, as author of words and music; one country as the
    former ruler and the main export partner.
    """
    compiled = [(r, re.compile(r.pattern)) for r in RELATIONS]
    for page in pages:
        seen: dict[str, str] = {}
        by_field: dict[str, int] = {}
        for index, paragraph in enumerate(page.text[1:], start=1):
            by_field.setdefault(field_of(paragraph), index)
        for relation, pattern in compiled:
            index = by_field.get(relation.field)
            match = pattern.search(page.text[index]) if index else None
            if match is None:
                continue
            answer, (start, end) = match["answer"], match.span("answer")
            if len(answer.split()) > max_words or seen.get(answer) == relation.kind:
                continue
            seen[answer] = relation.kind
            yield Fact(
                f"{page.page_id}.{relation.name}", page.page_id, page.title,
                relation.name, answer, index, start, end,
            )
