"""The names of pages: titles, and the names that their own text gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..corpus.embedded import field_of
from ..corpus.records import Page
from ..evaluation.answers import normalise_answer

_FIELDS = (
    "Country name - conventional short form",
    "Country name - conventional long form",
    "Country name - abbreviation",
)
_WORDS = frozenset({"as", "car"})  # abbreviations that would be found in ordinary prose


@dataclass(frozen=True, slots=True)
class PageNames:
    """Which page a name stands for, and all names of a page.

    ``page_of`` maps normalised names to page ids, a name that two pages have to the first;
    ``names_of`` maps page ids to names as written, the title first.
    """

    page_of: dict[str, str] = field(default_factory=dict)
    names_of: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def page(self, name: str) -> str | None:
        """The id of the page that a name stands for, or None."""
        return self.page_of.get(normalise_answer(name))


def page_names(pages: Iterable[Page]) -> PageNames:
    """Titles, and the short, long and abbreviated names in the text, of all pages."""
    names = PageNames()
    for page in pages:
        own = {normalise_answer(page.title): page.title}
        for name in _written(page):
            key = normalise_answer(name)
            if key not in ("", "none", "na", *_WORDS) and names.page_of.setdefault(
                key, page.page_id
            ) == (page.page_id):
                own.setdefault(key, name)
        names.names_of[page.page_id] = tuple(own.values())
    return names


def _written(page: Page) -> list[str]:
    """The page's names: "US or USA" is two, a note is none, brackets may be left out."""
    found = [page.title]
    for paragraph in page.text[1:]:
        if field_of(paragraph) in _FIELDS:
            said = paragraph.split(": ", 1)[1].split("; note")[0]
            if ";" not in said:
                found += said.split(" or ")
    return [n for name in found for n in (name, re.sub(r" \([^)]*\)", "", name))]
