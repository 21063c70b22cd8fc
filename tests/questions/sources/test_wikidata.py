"""Lines of a truthy dump: what they say, what is of no use, what is no N-Triples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.questions.sources.kilt import Refused
from workbench.questions.sources.wikidata import UNKNOWN, Term, parse_line

Q42 = "<http://www.wikidata.org/entity/Q42>"
DIRECT = "<http://www.wikidata.org/prop/direct/P69>"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


def _parse(text, language=b"en"):
    return parse_line(text.encode() + b"\n", language)


@pytest.mark.parametrize(
    ("rest", "term"),
    [
        (f"{DIRECT} <http://www.wikidata.org/entity/Q691283> .",
         Term("Q42", "fact", "Q691283", 69)),
        (f"{DIRECT} _:genid0a1b .", Term("Q42", "fact", UNKNOWN, 69)),
        (f'{LABEL} "Douglas Adams"@en .', Term("Q42", "label", "Douglas Adams")),
        ('<http://schema.org/name> "Douglas Adams"@en .', Term("Q42", "label", "Douglas Adams")),
        ('<http://www.w3.org/2004/02/skos/core#prefLabel> "D A"@en .', Term("Q42", "label", "D A")),
        ('<http://www.w3.org/2004/02/skos/core#altLabel> "DNA"@en .', Term("Q42", "alias", "DNA")),
        ('<http://schema.org/description> "a \\"writer\\""@en .',
         Term("Q42", "description", 'a "writer"')),
        (f'{LABEL} "\\u00C5sa \\U0001F600\\t\\\\"@en .', Term("Q42", "label", "Åsa 😀\t\\")),
    ],
)  # fmt: skip
def test_what_a_line_says(rest, term):
    assert _parse(f"{Q42} {rest}") == term


def test_property_labels_and_loose_blanks():
    line = f'  <http://www.wikidata.org/entity/P69>\t{LABEL}  "educated at"@en.# said\r'
    assert _parse(line) == Term("P69", "label", "educated at")


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "# a comment",
        f'{Q42} {LABEL} "Douglas Adams"@de .', f'{Q42} {LABEL} "Douglas Adams"@en-gb .',
        f'{Q42} {LABEL} "plain" .', f'{Q42} {LABEL} " "@en .',
        f"{Q42} {DIRECT} <http://www.wikidata.org/entity/Q1-F2> .",
        f"{Q42} {DIRECT} <http://www.wikidata.org/entity/Q{'9' * 30}> .",
        f'{Q42} {DIRECT} "text" .', f"{Q42} {DIRECT} <http://example.org/Q1> .",
        f"{Q42} <http://www.wikidata.org/prop/direct-normalized/P69> <http://v.org/1> .",
        f'{Q42} <http://www.wikidata.org/prop/direct/P569> '
        '"1952-03-11T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .',
        f"<http://example.org/Q42> {DIRECT} <http://www.wikidata.org/entity/Q1> .",
        f"_:b0 {DIRECT} <http://www.wikidata.org/entity/Q1> .",
        f"{Q42} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
        "<http://wikiba.se/ontology#Item> .",
    ],
)  # fmt: skip
def test_of_no_use(text):
    assert _parse(text) is None


def test_another_language():
    assert _parse(f'{Q42} {LABEL} "Adams"@pt-br .', b"pt-br").value == "Adams"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Q42 is a person", "not N-Triples: no valid subject"),
        ("<http://www.wikidata.org/entity/Q42 > <p> <o> .", "not N-Triples: no valid subject"),
        (f"{Q42} P69 <o> .", "not N-Triples: no valid predicate"),
        (f"{Q42} _:b <o> .", "not N-Triples: no valid predicate"),
        (f"{Q42} {DIRECT}", "not N-Triples: no valid object"),
        (f'{Q42} {LABEL} "open', "not N-Triples: no valid object"),
        (f'{Q42} {LABEL} "bad \\x escape"@en .', "not N-Triples: no valid object"),
        (f'{Q42} {LABEL} "x"@ .', "not N-Triples: no valid full stop"),
        (f"{Q42} {DIRECT} <http://www.wikidata.org/entity/Q1>",
         "not N-Triples: no valid full stop"),
        (f"{Q42} {DIRECT} <http://www.wikidata.org/entity/Q1> . x",
         "not N-Triples: no valid full stop"),
        (f'{Q42} {LABEL} "\\uD800"@en .', "an escape that is no character"),
        (f'{Q42} {LABEL} "\\UFFFFFFFF"@en .', "an escape that is no character"),
    ],
)  # fmt: skip
def test_what_is_refused(text, reason):
    with pytest.raises(Refused) as caught:
        _parse(text)
    assert caught.value.reason == reason


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(Refused, match="not UTF-8"):
        parse_line(f"{Q42} {LABEL} ".encode() + b'"\xff"@en .\n')


def _escaped(text: str, ascii_only: bool) -> str:
    plain = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    made = [plain.get(c, c) for c in text]
    if ascii_only:
        made = [m if m.isascii() else f"\\U{ord(m):08X}" for m in made]
    return "".join(made)


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), st.booleans())
def test_every_label_comes_back(text, ascii_only):
    found = _parse(f'{Q42} {LABEL} "{_escaped(text, ascii_only)}"@en .')
    assert (found.value if found else "") == text.strip()
