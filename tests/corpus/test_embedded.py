"""Reading the committed pages, what refuses them, and choosing fields."""

import json

import pytest

from workbench.corpus.embedded import field_of, load_pages, section_of, select_fields
from workbench.corpus.factbook import write_pages
from workbench.corpus.records import Page
from workbench.errors import WorkbenchError

MALI = Page(
    "ml",
    "Mali",
    (
        "Mali",
        "Section::::Geography.",
        "Location: western Africa",
        "Section::::Government.",
        "Capital: Bamako",
        "Capital - time difference: UTC 0",
        "Section::::Economy.",
        "Exports - partners: China 25%",
    ),
)
SEA = Page("xo", "Indian Ocean", ("Indian Ocean", "Section::::Geography.", "Location: between"))


@pytest.fixture
def folder(tmp_path):
    write_pages([MALI, SEA], tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["pages.jsonl.gz", "PROVENANCE.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(WorkbenchError, match=f"{name}: the embedded corpus is missing -- restore"):
        load_pages(folder)


def _truncated(data):
    return data[:-12]


def _flipped(data):  # inside the deflate stream: zlib complains, not gzip
    return data[:12] + bytes(b ^ 0xFF for b in data[12:30]) + data[30:]


@pytest.mark.parametrize(
    "damage", [_truncated, _flipped, lambda data: b"not gzip", lambda data: b"\x1f\x8b"]
)
def test_a_damaged_gzip_file_is_named(folder, damage):
    path = folder / "pages.jsonl.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(WorkbenchError, match=r"pages\.jsonl\.gz: not a whole gzip file"):
        load_pages(folder)


def test_other_pages_than_the_provenance_says_are_refused(folder, tmp_path):
    other = tmp_path / "other"
    write_pages([MALI], other)
    (folder / "pages.jsonl.gz").write_bytes((other / "pages.jsonl.gz").read_bytes())
    found, expected = (
        json.loads((f / "PROVENANCE.json").read_text())["sha256_of_lines"][:12]
        for f in (other, folder)
    )
    with pytest.raises(WorkbenchError, match=f"hash to {found}, their provenance says {expected}"):
        load_pages(folder)


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_broken_provenance_is_named(folder, text):
    (folder / "PROVENANCE.json").write_text(text)
    with pytest.raises(WorkbenchError, match=r"PROVENANCE\.json: no provenance"):
        load_pages(folder)


@pytest.mark.parametrize(
    ("paragraph", "field", "section"),
    [
        ("Capital: Algiers", "Capital", None),
        ("Elevation - highest point: Tahat: x", "Elevation - highest point", None),
        ("Section::::People and Society.", "Section::::People and Society.", "People and Society"),
    ],
)
def test_labels(paragraph, field, section):
    assert field_of(paragraph) == field
    assert section_of(paragraph) == section


def test_selected_fields_keep_their_marker_and_lose_the_rest():
    reduced = select_fields([MALI, SEA], ["Exports - partners", "Capital"])
    assert reduced == [
        Page(
            "ml",
            "Mali",
            (
                "Mali",
                "Section::::Government.",
                "Capital: Bamako",
                "Section::::Economy.",
                "Exports - partners: China 25%",
            ),
        )
    ]


def test_all_fields_selected_change_nothing():
    fields = {field_of(t) for p in (MALI, SEA) for t in p.text[1:] if section_of(t) is None}
    assert select_fields([MALI, SEA], fields) == [MALI, SEA]


@pytest.mark.parametrize("field", ["Capitol", "capital", "Section::::Geography."])
def test_an_unknown_field_is_an_error(field):
    with pytest.raises(WorkbenchError, match=f"corpus.fields: no paragraph .* field '{field}'"):
        select_fields([MALI, SEA], ["Capital", field])
