"""Each relation on paragraphs of the forms that occur in the corpus, and on the whole corpus."""

from collections import Counter

import pytest

from workbench.corpus.embedded import field_of
from workbench.corpus.records import Page
from workbench.questions.relation_table import RELATIONS
from workbench.questions.relations import BY_NAME, FIELDS, read_facts, read_lists

YES = [
    ("capital", "Capital: Bamako", "Bamako"),
    ("capital", "Capital: Saint John's (Antigua)", "Saint John's"),
    ("capital", "Capital: Port-au-Prince; see note", "Port-au-Prince"),
    ("capital", "Capital: Yaren in Yaren District", "Yaren"),
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
    (
        "independence_from",
        "Independence: 30 September 1966 (from Kingdom of the Isles by treaty)",
        "Kingdom of the Isles",
    ),
    (
        "independence_from",
        "Independence: 24 August 1991 (from the Soviet Union)",
        "Soviet Union",
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
    (
        "refugee_origin",
        "Refugees and internally displaced persons - refugees (country of origin): 6,018 (Mali)",
        "Mali",
    ),
    (
        "refugee_origin",
        "Refugees and internally displaced persons - refugees (country of origin): "
        "420,199 (Somalia - includes registered asylum seekers); 92,531 (South Sudan) (2015)",
        "Somalia",
    ),
]
LISTS = [
    (
        "border",
        "Land boundaries - border countries: Libya 989 km, Mali 1,359 km, Western Sahara 41 km",
        ["Libya", "Mali", "Western Sahara"],
    ),
    (
        "border",
        "Land boundaries - border countries: Kazakhstan (north) 13 km, Congo 2.4 km",
        ["Kazakhstan", "Congo"],
    ),
    ("border", "Land boundaries - border countries: Haiti 376 km", ["Haiti"]),
    ("border", "Land boundaries - border countries: 0 km", []),
    (
        "export_partners",
        "Exports - partners: Spain 18.8%, Cote d'Ivoire 11.2%, US 9%, Guinea-Bissau 5.2% (2015)",
        ["Spain", "Cote d'Ivoire", "US", "Guinea-Bissau"],
    ),
    ("export_partners", "Exports - partners: NA", []),
    ("import_partners", "Imports - partners: China 15.6%, UK 5% (2014)", ["China", "UK"]),
    # an object that is named twice counts once, where it comes first
    ("import_partners", "Imports - partners: China 9%, UK 5%, China 2%", ["China", "UK"]),
]
NO = [
    ("capital", "Capital: [Vatican City]"),
    ("capital", "Capital: no official capital; government offices in Yaren District"),
    ("capital", "Capital: none"),
    ("currency", "Exchange rates: note - the US dollar is used"),
    ("independence_date", "Independence: none (overseas territory of the UK)"),
    ("independence_from", "Independence: 1776 (from Great Britain)"),
    ("independence_from", "Independence: 21 March 1990 (from South African mandate)"),
    ("highest_point", "Elevation extremes - highest point: unnamed elevation 65 m"),
    ("highest_point", "Elevation extremes - highest point: sea level 0 m"),
    ("highest_point", "Elevation extremes - highest point: Vinson Massif"),
    ("anthem", "National anthem: none"),
    ("lyricist", "National anthem - lyrics/music: no lyrics/Jane DOE"),
    ("lyricist", "National anthem - lyrics/music: unknown/Jane DOE"),
    ("lyricist", "National anthem - lyrics/music: collective/Jane DOE"),
    ("lyricist", "National anthem - lyrics/music: disputed/Jane DOE"),
    ("composer", "National anthem - lyrics/music: Jane DOE/traditional"),
    ("composer", "National anthem - lyrics/music: Jane DOE/adapted from a march"),
    ("composer", "National anthem - lyrics/music: Jane DOE/no music"),
    ("composer", "National anthem - lyrics/music: Jane DOE/unknown"),
    ("export_partner", "Exports - partners: NA"),
    ("language", "Languages: none (official)"),
    ("demonym", "Nationality - noun: NA"),
    ("demonym", "Nationality - noun: none"),
    ("symbol", "National symbol(s): none"),
    ("symbol", "National symbol(s): national colors: red, white"),
    ("symbol", "National symbol(s): no official symbol"),
    ("second_city", "Major urban areas - population: Oran 858,000; ALGIERS (capital) 2 million"),
    ("head_of_state", "Executive branch - chief of state: the ruling council of seven"),
    ("internet_code", "Internet country code: none"),
    ("ambassador", "Diplomatic representation in the US - chief of mission: none (territory)"),
    (
        "refugee_origin",
        "Refugees and internally displaced persons - refugees (country of origin): undetermined",
    ),
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


def _lists(*paragraphs):
    return list(read_lists([Page("xx", "Xanadu", ("Xanadu", *paragraphs))]))


@pytest.mark.parametrize(("relation", "paragraph", "answers"), LISTS)
def test_what_a_list_says(relation, paragraph, answers):
    facts = _lists("Section::::Economy.", paragraph)
    assert [f.answer for f in facts] == answers
    for place, fact in enumerate(facts):
        assert (fact.fact_id, fact.relation) == (f"xx.{relation}.{place}", relation)
        assert (fact.page_id, fact.title, fact.paragraph) == ("xx", "Xanadu", 2)
        assert paragraph[fact.start : fact.end] == fact.answer
    starts = [f.start for f in facts]
    assert starts == sorted(starts) and all(paragraph.index(f.answer) == f.start for f in facts)


def test_lists_and_single_facts_are_read_apart():
    paragraph = "Exports - partners: Spain 18.8%, Italy 9%"
    assert set(_read(paragraph)) == {"export_partner"}
    assert {f.relation for f in _lists(paragraph, "Capital: Bamako")} == {"export_partners"}
    assert _lists("Capital: Bamako") == []


def test_every_relation_is_covered_here():
    names = {r.name for r in RELATIONS}
    listed = {r.name for r in RELATIONS if r.listed}
    assert {case[0] for case in LISTS} == listed
    assert {case[0] for case in YES} == names - listed
    assert names == set(BY_NAME) and len(BY_NAME) == len(RELATIONS)
    cases = [(r, p) for r, p, *_ in [*YES, *NO, *LISTS]]
    assert all(p.startswith(BY_NAME[r].field + ":") for r, p in cases)
    assert set(FIELDS) == {r.field for r in RELATIONS} and len(FIELDS) == len(set(FIELDS))


def test_templates_take_what_they_are_given():
    for relation in RELATIONS:
        assert all(q.count("{s}") == 1 and q.endswith("?") for q in relation.questions)
        assert len(set(relation.questions)) == len(relation.questions) > 0
        assert relation.query.count("{s}") == relation.phrase.count("{s}") == 1
        assert relation.described.count("{o}") == bool(relation.described)
        assert relation.shared.count("{a}") == relation.shared.count("{b}") == bool(relation.shared)
        # only lists are shared, and two descriptions of one page read as one
        assert bool(relation.shared) == relation.listed
        assert relation.described.startswith("the country ") or not relation.described
        assert not (relation.described and relation.listed)


def test_wordings_are_the_relations_own():
    for relation in RELATIONS:
        wording = relation.wording
        assert (wording.name, wording.kind) == (relation.name, relation.kind)
        assert (wording.asks, wording.phrase) == (relation.questions, relation.phrase)
        assert (wording.describes, wording.shared) == (relation.described, relation.shared)
        assert wording.leads == (relation.kind == "country")


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
        "capital": 230, "national_day": 220, "highest_point": 219, "anthem": 213,
        "lyricist": 139, "composer": 154, "export_partner": 185, "import_partner": 101,
        "demonym": 227, "symbol": 216, "head_of_state": 190, "internet_code": 239,
        "currency": 216, "independence_date": 184, "independence_from": 128, "language": 175,
        "head_of_government": 135, "ambassador": 164, "second_city": 43, "refugee_origin": 58,
        "border": 654, "export_partners": 1028, "import_partners": 1037,
    }  # fmt: skip
    whole = {f.fact_id: f.answer for f in (*read_facts(all_pages), *read_lists(all_pages))}
    assert whole == {i: f.answer for i, f in facts.items()}


def test_borders_mostly_have_two_sides(facts, names):
    """Nothing makes the lists agree but the text: whom a country borders borders it."""
    pairs = {
        (f.page_id, page_id)
        for f in facts.values()
        if f.relation == "border" and (page_id := names.page(f.answer))
    }
    both = sum((b, a) in pairs for a, b in pairs)
    assert len(pairs) > 600 and both / len(pairs) > 0.94


def test_the_first_of_a_list_is_the_main_partner(facts):
    for single, listed in (
        ("export_partner", "export_partners"), ("import_partner", "import_partners"),
    ):  # fmt: skip
        mains = [f for f in facts.values() if f.relation == single]
        assert all(facts[f"{f.page_id}.{listed}.0"].answer == f.answer for f in mains)


def test_facts_that_anyone_can_check(facts):
    known = {
        "ag.capital": "Algiers", "fr.capital": "Paris", "ja.highest_point": "Mount Fuji",
        "br.language": "Portuguese", "in.independence_from": "UK", "gm.internet_code": ".de",
        "sw.currency": "Swedish kronor", "us.independence_date": "4 July 1776",
        "po.border.0": "Spain", "ke.border.4": "Uganda",
    }  # fmt: skip
    assert {i: facts[i].answer for i in known} == known
