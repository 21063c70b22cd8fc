"""Facts -> question graphs: one-hop single questions and two-hop chains, split by page.

A chain's root is described, never named (S3 section 2.1): either by an object that only it has
("the country whose capital is Bamako") or by the fact that leads to it ("the main export
partner of Mali").  Splits are drawn over pages, so that no fact of a test question occurs in
a training question; a chain is kept only when both of its pages are in one split.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import Field, model_validator

from ..config import Settings
from ..corpus.embedded import field_of
from ..corpus.records import Page
from ..evaluation.answers import inclusion, normalise_answer
from ..seeding import seed_of
from .graph import Evidence, Item, Node
from .relations import BY_NAME, Fact, Relation, read_facts

SINGLE, CHAIN = "1-hop, single", "2-hop, chain"
_NAME_FIELDS = (
    "Country name - conventional short form",
    "Country name - conventional long form",
    "Country name - abbreviation",
)


class QuestionConfig(Settings):
    """How questions are made from the embedded corpus.

    ``split_shares`` are shares of pages (the rest trains); ``chains_per_page`` bounds the
    chains rooted at one page; a share ``unexposed`` of the facts is never shown to the base
    policy without its passage, the others are shown as often as one of ``exposure_levels``
    says, about equally many facts at each.
    """

    seed: int = 0
    split_shares: dict[str, float] = {"test": 0.36, "validation": 0.08, "calibration": 0.10}
    chains_per_page: int = Field(default=12, ge=0)
    unexposed: float = Field(default=0.55, ge=0, le=1)
    exposure_levels: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)

    @model_validator(mode="after")
    def _shares(self) -> QuestionConfig:
        if set(self.split_shares) != {"test", "validation", "calibration"}:
            raise ValueError("split_shares names test, validation and calibration")
        if sum(self.split_shares.values()) >= 1:
            raise ValueError("split_shares leave no page for training")
        if min(self.split_shares.values()) < 0:
            raise ValueError("split_shares must not be negative")
        if any(level < 1 for level in self.exposure_levels):
            raise ValueError("exposure_levels count from 1; unexposed is the share of zeros")
        return self


def _unit(*keys: object) -> float:
    """A number in [0, 1) that belongs to these keys."""
    return seed_of(*map(str, keys)) / 2**63


def split_of(page_id: str, config: QuestionConfig) -> str:
    """The split of a page and of every question about it."""
    draw = _unit("question-split", config.seed, page_id)
    for name, share in sorted(config.split_shares.items()):
        if draw < share:
            return name
        draw -= share
    return "train"


def exposures_of(fact_id: str, config: QuestionConfig) -> int:
    """How often the base policy's training shows this fact without its passage."""
    draw = _unit("exposure", config.seed, fact_id)
    if draw < config.unexposed or not config.exposure_levels:
        return 0
    level = (draw - config.unexposed) / (1 - config.unexposed) * len(config.exposure_levels)
    return config.exposure_levels[int(level)]


def page_names(pages: Iterable[Page]) -> dict[str, str]:
    """Normalised names -> page id: titles, and the short, long and abbreviated names in the text.

    A name that two pages have belongs to the first.
    """
    names: dict[str, str] = {}
    for page in pages:
        own = [t.split(": ", 1)[1] for t in page.text[1:] if field_of(t) in _NAME_FIELDS]
        for name in (page.title, *own):
            if (key := normalise_answer(name)) not in ("", "none", "na"):
                names.setdefault(key, page.page_id)
    return names


@dataclass(frozen=True)
class QuestionSet:
    """Items in id order and how many candidates were left out, by reason."""

    items: list[Item]
    excluded: Mapping[str, int]


def build_items(
    pages: list[Page], config: QuestionConfig, named: Mapping[str, str] | None = None
) -> QuestionSet:
    """All questions of the corpus.

    Parameters
    ----------
    pages : the pages that will be chunked (paragraph indices refer to them).
    named : names -> page id; default from ``pages`` themselves. Give the names of the
        unreduced corpus when fields were selected.
    """
    named = page_names(pages) if named is None else named
    titles = {p.page_id: p.title for p in pages}
    facts = list(read_facts(pages))
    excluded: Counter[str] = Counter()
    found = [_single(f, config, titles, named) for f in facts]
    found += _chains(facts, config, titles, named, excluded)
    kept = []
    for item in found:
        if any(inclusion(item.question, [a]) for a in item.answers):
            excluded["answer in the question"] += 1
        else:
            kept.append(item)
    return QuestionSet(sorted(kept, key=lambda i: i.item_id), dict(excluded))


def _answers(fact: Fact, titles: Mapping[str, str], named: Mapping[str, str]) -> tuple[str, ...]:
    """The surface form, and the page's title where the answer is a country under another name."""
    if BY_NAME[fact.relation].kind == "country":
        title = titles.get(named.get(normalise_answer(fact.answer), ""))
        if title and title != fact.answer:
            return fact.answer, title
    return (fact.answer,)


def _evidence(fact: Fact) -> tuple[Evidence, ...]:
    return (Evidence(fact.page_id, fact.paragraph, ((fact.start, fact.end),)),)


def _phrase(relation: Relation, subject: str, key: str) -> str:
    """One of the relation's question templates, always the same one for the same key."""
    pick = seed_of("phrasing", key) % len(relation.questions)
    return relation.questions[pick].format(s=subject)


def _single(fact: Fact, config: QuestionConfig, titles, named) -> Item:
    item_id, relation = f"1:{fact.fact_id}", BY_NAME[fact.relation]
    question = _phrase(relation, fact.title, item_id)
    answers = _answers(fact, titles, named)
    node = Node("v1", question, answers, _evidence(fact), fact_id=fact.fact_id)
    return Item(
        item_id, question, answers, SINGLE, (node,), split_of(fact.page_id, config),
        exposures_of(fact.fact_id, config),
    )


def _chains(facts, config, titles, named, excluded) -> list[Item]:
    by_page: dict[str, list[Fact]] = defaultdict(list)
    owners: Counter[tuple[str, str]] = Counter()
    for fact in facts:
        by_page[fact.page_id].append(fact)
        owners[fact.relation, normalise_answer(fact.answer)] += 1
    items = []
    for page_id, own in by_page.items():
        candidates = []
        for first in own:
            relation = BY_NAME[first.relation]
            if relation.described:
                if owners[first.relation, normalise_answer(first.answer)] > 1:
                    excluded["description fits several pages"] += 1
                    continue
                ends = [f for f in own if f.paragraph != first.paragraph]
            elif relation.refers:
                target = named.get(normalise_answer(first.answer), "")
                if target not in by_page:
                    excluded["object is not a page"] += 1
                    continue
                if target == page_id:
                    continue
                if split_of(target, config) != split_of(page_id, config):
                    excluded["pages in different splits"] += 1
                    continue
                ends = by_page[target]
            else:
                continue
            candidates += [(first, last) for last in ends]
        candidates.sort(key=lambda c: seed_of("chain", c[0].fact_id, c[1].fact_id))
        items += [
            _chain(first, last, config, titles, named)
            for first, last in candidates[: config.chains_per_page]
        ]
        excluded["over the limit per page"] += max(0, len(candidates) - config.chains_per_page)
    return items


def _chain(first: Fact, last: Fact, config, titles, named) -> Item:
    item_id = f"2:{first.fact_id}>{last.fact_id}"
    r1, r2 = BY_NAME[first.relation], BY_NAME[last.relation]
    if r1.described:
        root, middle = r1.described.format(o=first.answer), (first.title,)
    else:
        root, middle = r1.refers.format(s=first.title), _answers(first, titles, named)
    answers = _answers(last, titles, named)
    nodes = (
        Node("v1", f"What is the name of {root}?", middle, _evidence(first), (), first.fact_id),
        Node("v2", _phrase(r2, "#1", item_id), answers, _evidence(last), ("v1",), last.fact_id),
    )
    exposures = min(exposures_of(f.fact_id, config) for f in (first, last))
    return Item(
        item_id, _phrase(r2, root, item_id), answers, CHAIN, nodes,
        split_of(last.page_id, config), exposures,
    )
