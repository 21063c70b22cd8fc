"""The KILT knowledge source: Wikipedia of August 2019, one JSON object a line.

A line of ``kilt_knowledgesource.json`` (34.8 GiB, 5,903,530 pages) has

- ``wikipedia_id`` (text of digits; ``_id`` is the same) and ``wikipedia_title``;
- ``text``, a list: the title, then paragraphs, ``Section::::History.`` markers and
  ``BULLET::::- ...`` entries, in order, most of them ending in a line break;
- ``anchors``, the links: ``paragraph_id`` (a position in ``text``), ``start`` and ``end``
  (characters in that paragraph), ``text``, ``href`` (percent-encoded title) and, where the
  target is a page of the source, ``wikipedia_title`` and ``wikipedia_id``;
- ``wikidata_info``, absent or empty for pages without an entity: ``wikidata_id`` ("Q6199"),
  ``wikidata_label``, ``aliases`` (a list or null), ``description``, ``wikipedia_title``;
- ``categories`` and ``history``, which are not used here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import unquote

from ...corpus.records import Page

SECTION = "Section::::"
_QID = re.compile(r"Q([1-9][0-9]{0,8})")
_NUMBER = re.compile(r"[0-9]{1,18}")
_DISAMBIGUATION = re.compile(r" \([^()]*\)$")


class Refused(ValueError):
    """A record that cannot be used.

    ``reason`` is the same for all that have the fault, ``detail`` is not; ``record`` is the
    record's id, empty if it has none.
    """

    def __init__(self, reason: str, record: str = "", detail: str = ""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.record, self.detail = reason, record, detail


@dataclass(frozen=True, slots=True)
class Anchor:
    """A link: characters ``start:end`` of ``paragraph`` lead to a page.

    ``page_id`` is the target's Wikipedia id or None; then ``title`` names it.
    """

    paragraph: int
    start: int
    end: int
    page_id: int | None
    title: str


@dataclass(frozen=True, slots=True)
class KiltPage:
    """A page with its entity.

    ``qid`` is the number of its Wikidata item (None without one); ``names`` are the label,
    the title without its disambiguation and the aliases; ``misplaced`` the ids
    (``page:paragraph:start``) of anchors whose span lies outside its paragraph or does not
    hold the anchor's text.
    """

    page: Page
    qid: int | None
    names: tuple[str, ...]
    description: str
    anchors: tuple[Anchor, ...]
    misplaced: tuple[str, ...]


def parse_page(line: bytes) -> KiltPage:
    """The page of one line.

    Raises
    ------
    Refused
        not JSON, not an object, or an id, a title, the text or an anchor that is not what the
        format says.
    """
    try:
        raw = json.loads(line)
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError
        raise Refused("not JSON", detail=str(error)) from error
    if not isinstance(raw, dict):
        raise Refused("not an object", detail=type(raw).__name__)
    number, title, text = (raw.get(k) for k in ("wikipedia_id", "wikipedia_title", "text"))
    if isinstance(number, bool) or not _NUMBER.fullmatch(str(number)):
        raise Refused("wikipedia_id is not a number", detail=repr(number))
    record = str(int(number))
    if not isinstance(title, str) or not title.strip():
        raise Refused("no wikipedia_title", record)
    if not isinstance(text, list) or not text or not all(isinstance(p, str) for p in text):
        raise Refused("text is not a list of paragraphs", record)
    anchors, misplaced = _anchors(raw.get("anchors"), text, record)
    qid, names, description = _entity(raw.get("wikidata_info"), title, record)
    page = Page(record, title, tuple(text))
    return KiltPage(page, qid, names, description, anchors, misplaced)


def bare_title(title: str) -> str:
    """A title without its disambiguation: "Paris (mythology)" -> "Paris"."""
    return _DISAMBIGUATION.sub("", title).strip() or title


def title_of(href: str) -> str:
    """The page title that a link leads to: decoded, without fragment, first letter upper."""
    title = unquote(href).partition("#")[0].replace("_", " ").strip()
    return title[:1].upper() + title[1:]


def _entity(info: object, title: str, record: str) -> tuple[int | None, tuple[str, ...], str]:
    if info is None:
        info = {}
    if not isinstance(info, dict):
        raise Refused("wikidata_info is not an object", record)
    match = _QID.fullmatch(str(info.get("wikidata_id") or ""))
    aliases = info.get("aliases") or []
    if not isinstance(aliases, list):
        raise Refused("aliases is not a list", record)
    names = (info.get("wikidata_label"), bare_title(title), *aliases)
    kept = (n.strip() for n in names if isinstance(n, str) and n.strip())
    description = info.get("description")
    return (
        int(match[1]) if match else None,
        tuple(dict.fromkeys(kept)),
        description.strip() if isinstance(description, str) else "",
    )


def _anchors(
    raw: object, text: list[str], record: str
) -> tuple[tuple[Anchor, ...], tuple[str, ...]]:
    if raw is None:
        return (), ()
    if not isinstance(raw, list) or not all(isinstance(a, dict) for a in raw):
        raise Refused("anchors is not a list of objects", record)
    kept, misplaced = [], []
    for anchor in raw:
        paragraph, start, end = (anchor.get(k) for k in ("paragraph_id", "start", "end"))
        inside = (
            all(type(n) is int for n in (paragraph, start, end))
            and 0 <= paragraph < len(text)
            and 0 <= start < end <= len(text[paragraph])
            and anchor.get("text") in (None, text[paragraph][start:end])
        )
        if not inside:
            misplaced.append(f"{record}:{paragraph}:{start}")
            continue
        number = str(anchor.get("wikipedia_id") or "")
        target = anchor.get("wikipedia_title") or title_of(str(anchor.get("href") or ""))
        page_id = int(number) if _NUMBER.fullmatch(number) else None
        kept.append(Anchor(paragraph, start, end, page_id, str(target)))
    return tuple(kept), tuple(misplaced)
