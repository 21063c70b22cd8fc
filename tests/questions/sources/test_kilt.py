"""Records of the KILT knowledge source."""

import json

import pytest

from workbench.questions.sources.kilt import Anchor, Refused, bare_title, parse_page, title_of

TEXT = ["Email marketing\n", "Email marketing is sent by email.\n", "Section::::History.\n"]
RECORD = {
    "_id": "1101759", "wikipedia_id": "1101759", "wikipedia_title": "Email marketing",
    "text": TEXT,
    "anchors": [
        {"text": "email", "href": "Email", "paragraph_id": 1, "start": 27, "end": 32,
         "wikipedia_title": "Email", "wikipedia_id": "9738"},
        {"text": "sent", "href": "Sending%20mail_%C3%A9#History", "paragraph_id": 1,
         "start": 19, "end": 23},
    ],
    "categories": "Email,Marketing", "history": {"revid": 1, "pre_dump": True},
    "wikidata_info": {
        "wikidata_id": "Q1335054", "wikidata_label": "email marketing", "description": "kind of ad",
        "aliases": ["e-marketing", "Email marketing"], "wikipedia_title": "Email marketing",
    },
}  # fmt: skip


def _page(**changes):
    return parse_page(json.dumps({**RECORD, **changes}).encode())


def test_a_record():
    page = _page()
    assert page.page.page_id == "1101759" and page.page.title == "Email marketing"
    assert page.page.text == tuple(TEXT)
    assert page.qid == 1335054 and page.description == "kind of ad"
    assert page.names == ("email marketing", "Email marketing", "e-marketing")
    assert page.anchors == (
        Anchor(1, 27, 32, 9738, "Email"),
        Anchor(1, 19, 23, None, "Sending mail é"),
    )
    assert page.misplaced == ()


@pytest.mark.parametrize("info", [None, {}, {"wikidata_id": None, "aliases": None}])
def test_a_page_without_an_entity(info):
    page = _page(wikidata_info=info)
    assert page.qid is None and page.names == ("Email marketing",) and page.description == ""


def test_the_readme_shows_a_number_as_id():
    assert _page(wikipedia_id=1101759).page.page_id == "1101759"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"start": 40, "end": 50}, "1:40"),
        ({"start": 5, "end": 5}, "1:5"),
        ({"end": 99, "text": None}, "1:27"),
        ({"start": -1}, "1:-1"),
        ({"start": 26, "end": 31}, "1:26"),
        ({"paragraph_id": 3}, "3:27"),
        ({"start": "27"}, "1:27"),
        ({"paragraph_id": None}, "None:27"),
    ],
)
def test_an_anchor_outside_its_paragraph_is_told_and_the_page_kept(change, place):
    page = _page(anchors=[{**RECORD["anchors"][0], **change}, RECORD["anchors"][1]])
    assert page.misplaced == (f"1101759:{place}",)
    assert [a.start for a in page.anchors] == [19]


@pytest.mark.parametrize(
    ("line", "reason", "record"),
    [
        (b'{"wikipedia_id": "1"', "not JSON", ""),
        (b'{"wikipedia_id": "\xff"}', "not JSON", ""),
        (b"[1]", "not an object", ""),
        ({"wikipedia_id": "Q1"}, "wikipedia_id is not a number", ""),
        ({"wikipedia_id": True}, "wikipedia_id is not a number", ""),
        ({"wikipedia_id": "9" * 30}, "wikipedia_id is not a number", ""),
        ({"wikipedia_title": " "}, "no wikipedia_title", "1101759"),
        ({"text": "one string"}, "text is not a list of paragraphs", "1101759"),
        ({"text": []}, "text is not a list of paragraphs", "1101759"),
        ({"text": ["a", 1]}, "text is not a list of paragraphs", "1101759"),
        ({"anchors": {}}, "anchors is not a list of objects", "1101759"),
        ({"wikidata_info": []}, "wikidata_info is not an object", "1101759"),
        ({"wikidata_info": {"aliases": "a"}}, "aliases is not a list", "1101759"),
    ],
)
def test_what_is_refused(line, reason, record):
    line = line if isinstance(line, bytes) else json.dumps({**RECORD, **line}).encode()
    with pytest.raises(Refused) as caught:
        parse_page(line)
    assert (caught.value.reason, caught.value.record) == (reason, record)


def test_an_id_beyond_wikidata_is_none():
    assert _page(wikidata_info={"wikidata_id": "Q" + "9" * 12}).qid is None


def test_titles():
    assert bare_title("Paris (mythology)") == "Paris"
    assert bare_title("(What's the Story) Morning Glory?") == "(What's the Story) Morning Glory?"
    assert bare_title(" (x)") == " (x)"
    assert title_of("new_York%20City#Parks") == "New York City"
    assert title_of("") == ""
