"""Each relation on paragraphs of the forms that occur in the corpus, and on the whole corpus."""

from collections import Counter

import pytest

from workbench.corpus.embedded import field_of
from workbench.corpus.records import Page
from workbench.questions.relations import BY_NAME, RELATIONS, read_facts

YES = [
    ("capital", "Capital: Bamako", "Bamako"),
    ("capital", "Capital: Saint John's (Antigua)", "Saint John's"),
    ("capital", "Capital: Port-au-Prince; see note", "Port-au-Prince"),
    ("currency", "Exchange rates: Algerian dinars (DZD) per US dollar - 77.9", "Algerian dinars"),
    ("currency", "Exchange rates: euros per US dollar - 0.885 (2015 est.)", "euros"),
    ("currency", "Exchange rates: the US dollar per US dollar", "US dollar"),
    (
        "independence_date",
        "Independence: 22 May 1990 (Republic of Yemen); North Yemen 1 November 1918",
        "22 May 1990",
    ),
    ("independence_from", "Independence: 5 July 1962 (from France)", "France"),
    ("independence_from", "Independence: 1 October 1960 (from the UK; see note)", "UK"),
    (
        "independence_from",
        "Independence: 1 January 1962 (from New Zealand under UN trusteeship)",
        "New Zealand",
    ),
    ("national_day", "National holiday: Revolution Day, 1 November (1954)", "1 November"),
    ("national_day", "National holiday: Independence Day 4 July (1776)", "4 July"),
    ("highest_point", "Elevation extremes - highest point: Tahat 3,003 m", "Tahat"),
    (
        "highest_point",
        "Elevation extremes - highest point: Mount Teide (Tenerife) 3,718 m",
        "Mount Teide",
    ),
    ("highest_point", "Elevation extremes - highest point: Pico 2.5 m", "Pico"),
    ("anthem", 'National anthem: "Kassaman" (We Pledge)', "Kassaman"),
    ("anthem", 'National anthem: "O Canada!"', "O Canada"),
    ("lyricist", "National anthem - lyrics/music: Mufdi ZAKARIAH/Mohamed FAWZI", "Mufdi ZAKARIAH"),
    ("composer", "National anthem - lyrics/music: Mufdi ZAKARIAH/Mohamed FAWZI", "Mohamed FAWZI"),
    ("composer", "National anthem - lyrics/music: no lyrics/Jane DOE (1900)", "Jane DOE"),
    ("export_partner", "Exports - partners: Spain 15.5%, Italy 14.8% (2014)", "Spain"),
    ("import_partner", "Imports - partners: South Korea 9%, US 5% (2014)", "South Korea"),
    ("language", "Languages: Arabic (official), French", "Arabic"),
    ("language", "Languages: Dutch 60% (official), French 40% (official)", "Dutch"),
    ("language", "Languages: Haitian Creole (official)", "Haitian Creole"),
    ("demonym", "Nationality - noun: Algerian(s)", "Algerian"),
    ("demonym", "Nationality - noun: the Dutch", "Dutch"),
    ("demonym", "Nationality - noun: Lao(s) or Laotian(s)", "Lao"),
    ("symbol", "National symbol(s): star and crescent; national colors: red", "star and crescent"),
    ("symbol", "National symbol(s): lion", "lion"),
    (
        "second_city",
        "Major urban areas - population: ALGIERS (capital) 2.594 million; Oran 858,000 (2015)",
        "Oran",
    ),
    (
        "head_of_state",
        "Executive branch - chief of state: President Abdelaziz BOUTEFLIKA (since 1999)",
        "Abdelaziz BOUTEFLIKA",
    ),
    (
        "head_of_state",
        "Executive branch - chief of state: Queen ELIZABETH II (since 1952)",
        "ELIZABETH II",
    ),
    (
        "head_of_government",
        "Executive branch - head of government: Acting Prime Minister Gaston BROWNE, since 2014",
        "Gaston BROWNE",
    ),
    ("internet_code", "Internet country code: .dz", ".dz"),
    ("internet_code", "Internet country code: .uk; note - .gb too", ".uk"),
    (
        "ambassador",
        "Diplomatic representation in the US - chief of mission: Ambassador Floreta FABER (since)",
        "Floreta FABER",
    ),
    (
        "ambassador",
        "Diplomatic representation in the US - chief of mission: Charge d'Affaires John DOE; x",
        "John DOE",
    ),
]
NO = [
    ("capital", "Capital: [Vatican City]"),
    ("currency", "Exchange rates: note - the US dollar is used"),
    ("independence_date", "Independence: none (overseas territory of the UK)"),
    ("independence_from", "Independence: 1776 (from Great Britain)"),
    ("highest_point", "Elevation extremes - highest point: unnamed elevation 65 m"),
    ("highest_point", "Elevation extremes - highest point: Vinson Massif"),
    ("anthem", "National anthem: none"),
    ("lyricist", "National anthem - lyrics/music: no lyrics/Jane DOE"),
    ("lyricist", "National anthem - lyrics/music: unknown/Jane DOE"),
    ("composer", "National anthem - lyrics/music: Jane DOE/traditional"),
    ("composer", "National anthem - lyrics/music: Jane DOE/unknown"),
    ("export_partner", "Exports - partners: NA"),
    ("language", "Languages: none (official)"),
    ("demonym", "Nationality - noun: NA"),
    ("demonym", "Nationality - noun: none"),
    ("symbol", "National symbol(s): none"),
    ("symbol", "National symbol(s): national colors: red, white"),
    ("second_city", "Major urban areas - population: Oran 858,000; ALGIERS (capital) 2 million"),
    ("head_of_state", "Executive branch - chief of state: the ruling council of seven"),
    ("internet_code", "Internet country code: none"),
    ("ambassador", "Diplomatic representation in the US - chief of mission: none (territory)"),
]


def _read(*paragraphs):
    return {f.relation: f for f in read_facts([Page("xx", "Xanadu", ("Xanadu", *paragraphs))])}


@pytest.mark.parametrize(("relation", "paragraph", "answer"), YES)
def test_what_a_paragraph_says(relation, paragraph, answer):
    fact = _read("Section::::Government.", paragraph)[relation]
    assert (fact.fact_id, fact.page_id, fact.title) == (f"xx.{relation}", "xx", "Xanadu")
    assert fact.answer == answer
    assert fact.paragraph == 2
    assert paragraph[fact.start : fact.end] == answer
    assert fact.start >= len(field_of(paragraph)) + 2


@pytest.mark.parametrize(("relation", "paragraph"), NO)
def test_what_a_paragraph_does_not_say(relation, paragraph):
    assert relation not in _read(paragraph)


def test_every_relation_is_covered_here():
    names = {r.name for r in RELATIONS}
    assert {case[0] for case in YES} == names == set(BY_NAME)
    assert all(p.startswith(BY_NAME[r].field + ":") for r, p, *_ in [*YES, *NO])


def test_templates_take_what_they_are_given():
    for relation in RELATIONS:
        assert all(q.count("{s}") == 1 and q.endswith("?") for q in relation.questions)
        assert relation.query.count("{s}") == 1
        assert relation.described.count("{o}") == bool(relation.described)
        assert relation.refers.count("{s}") == bool(relation.refers)
        assert not relation.refers or relation.kind == "country"


def test_one_person_in_two_offices_is_one_fact():
    facts = _read(
        "Executive branch - chief of state: President Jane DOE (since 2000)",
        "Executive branch - head of government: President Jane DOE (since 2000)",
        "National anthem - lyrics/music: Ann ROE/Ann ROE",
    )
    assert set(facts) == {"head_of_state", "lyricist"}


def test_one_name_of_two_kinds_is_two_facts():
    facts = _read("Capital: Luxembourg", "Nationality - noun: Luxembourg")
    assert set(facts) == {"capital", "demonym"}


def test_the_first_paragraph_of_a_field_counts():
    fact = _read("Capital: Bamako", "Capital: Timbuktu")["capital"]
    assert (fact.answer, fact.paragraph) == ("Bamako", 1)


def test_long_answers_are_clauses():
    paragraph = "Capital: a city of five words"
    page = Page("xx", "X", ("X", paragraph))
    assert [f.answer for f in read_facts([page], max_words=6)] == ["a city of five words"]
    assert list(read_facts([page], max_words=4)) == []


def test_every_fact_of_the_corpus_is_grounded(pages, facts):
    text = {p.page_id: p.text for p in pages}
    for fact in facts.values():
        paragraph = text[fact.page_id][fact.paragraph]
        assert paragraph[fact.start : fact.end] == fact.answer
        assert field_of(paragraph) == BY_NAME[fact.relation].field
        assert fact.answer == fact.answer.strip() != ""
        assert text[fact.page_id][0] == fact.title


def test_the_corpus_gives_the_facts_it_gave(all_pages, facts):
    counts = Counter(f.relation for f in facts.values())
    assert counts == {
        "capital": 232, "national_day": 220, "highest_point": 224, "anthem": 213,
        "lyricist": 142, "composer": 156, "export_partner": 185, "import_partner": 102,
        "demonym": 227, "symbol": 217, "head_of_state": 190, "internet_code": 239,
        "currency": 216, "independence_date": 184, "independence_from": 144, "language": 175,
        "head_of_government": 135, "ambassador": 164, "second_city": 43,
    }  # fmt: skip
    whole = {f.fact_id: f.answer for f in read_facts(all_pages)}
    assert whole == {i: f.answer for i, f in facts.items()}


def test_facts_that_anyone_can_check(facts):
    known = {
        "ag.capital": "Algiers", "fr.capital": "Paris", "ja.highest_point": "Mount Fuji",
        "br.language": "Portuguese", "in.independence_from": "UK", "gm.internet_code": ".de",
        "sw.currency": "Swedish kronor", "us.independence_date": "4 July 1776",
    }  # fmt: skip
    assert {i: facts[i].answer for i in known} == known
