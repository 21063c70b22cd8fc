"""The embedded corpus as question graphs: statements, descriptions, splits, items.

Every fact is read from the corpus text, so every node is grounded.  The subject of a fact is a
page; an object that names a page is that page, any other is a literal.  A page is described
by an object that only it has ("the country whose capital is Bamako"); on this corpus the
description has a source passage of its own and therefore is a node, as in S3's Figure 1a.

Beside the described questions stand one-hop questions, chains and conjunctions whose root is
*named* ("What is the capital of Mali?", ``Item.roots``): they can be answered from memory,
which S1's direct answers need.  Splits are drawn over pages, so that no fact of a test
question occurs in a training question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field, model_validator

from ..config import Settings
from ..corpus.records import Page
from ..corpus.source import EMBEDDED
from ..evaluation.answers import inclusion, normalise_answer
from ..seeding import seed_of
from .categories import CATEGORIES, CHAIN
from .compose import Partial, identify, identify_by_two, share, start
from .enumerate import Starts, draw_graphs, shared_pairs, twin_descriptions
from .graph import Evidence, Item
from .names import PageNames, page_names
from .relations import BY_NAME, PAIRED, Fact, read_facts, read_lists
from .statements import Knowledge, Statement

KIND = "country"


class QuestionConfig(Settings):
    """Where questions come from, and how they are made from the embedded corpus.

    ``source`` is "embedded" or the path of a file of items (relative to the checkout), which are
    taken as they are; the other settings then have no use. ``split_shares`` are shares of pages
    (the rest trains); ``limits`` bound the questions of a category over all splits (other
    categories keep all), drawn by hash, of which at most ``answer_share`` have one answer; a
    conjunctive description uses objects of at most ``candidates`` subjects each, so that one
    search can show most of them. A share ``unexposed`` of the facts is never shown to the base
    policy without its passage, the others are shown as often as one of ``exposure_levels`` says,
    about equally many facts at each.
    """

    source: str = EMBEDDED
    seed: int = 0
    split_shares: dict[str, float] = {"test": 0.36, "validation": 0.08, "calibration": 0.10}
    limits: dict[str, int] = {name: 2400 if name == CHAIN else 900 for name in CATEGORIES[1:]}
    answer_share: float = Field(default=0.04, gt=0, le=1)
    candidates: int = Field(default=4, ge=2)
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
        if unknown := sorted(set(self.limits) - set(CATEGORIES)):
            raise ValueError(f"limits: no category {unknown[0]!r}; one of {', '.join(CATEGORIES)}")
        if any(limit < 0 for limit in self.limits.values()):
            raise ValueError("limits must not be negative")
        if any(level < 1 for level in self.exposure_levels):
            raise ValueError("exposure_levels count from 1; unexposed is the share of zeros")
        return self

    def limit(self, category: str, split: str) -> int | None:
        """How many questions of a category go into a split: its share of the limit."""
        if category not in self.limits:
            return None
        shares = {**self.split_shares, "train": 1 - sum(self.split_shares.values())}
        return round(self.limits[category] * shares[split])


def _unit(*keys: object) -> float:
    """A number in [0, 1) that belongs to these keys."""
    return seed_of(*map(str, keys)) / 2**63


def split_of(page_id: str, config: QuestionConfig) -> str:
    """The split of a page and of every question about it."""
    draw = _unit("question-split", config.seed, page_id)
    for name, share_ in sorted(config.split_shares.items()):
        if draw < share_:
            return name
        draw -= share_
    return "train"


def exposures_of(fact_id: str, config: QuestionConfig) -> int:
    """How often the base policy's training shows this fact without its passage.

    Facts of lists are never shown so.  An item has the least over its facts; one node that asks
    for a page by its object has none, because facts are stated the other way round.
    """
    if fact_id.count(".") > 1:
        return 0
    draw = _unit("exposure", config.seed, fact_id)
    if draw < config.unexposed or not config.exposure_levels:
        return 0
    level = (draw - config.unexposed) / (1 - config.unexposed) * len(config.exposure_levels)
    return config.exposure_levels[int(level)]


@dataclass(frozen=True)
class QuestionSet:
    """Items in id order and the candidates left out: how many, and some ids, by reason."""

    items: list[Item]
    excluded: Mapping[str, int]
    examples: Mapping[str, list[str]] = field(default_factory=dict)


def to_statement(fact: Fact, names: PageNames) -> Statement:
    """A fact as a statement: an object that names one of the pages has that page's names too."""
    relation = BY_NAME[fact.relation]
    answers, obj = (fact.answer,), f"{relation.kind}: {normalise_answer(fact.answer)}"
    page_id = names.page(fact.answer) if relation.wording.leads else None
    if page_id in names.names_of:
        obj = page_id
        answers = tuple(dict.fromkeys((fact.answer, *names.names_of[page_id])))
    evidence = Evidence(fact.page_id, fact.paragraph, ((fact.start, fact.end),))
    subject_names = names.names_of[fact.page_id]
    return Statement(
        fact.fact_id, fact.page_id, fact.relation, obj, subject_names, answers, evidence
    )


def read_statements(pages: list[Page], names: PageNames) -> list[Statement]:
    """Every fact of the pages, those of listed relations included."""
    known = {p.page_id: names.names_of.get(p.page_id, (p.title,)) for p in pages}
    of_these = PageNames(names.page_of, known)
    return [to_statement(f, of_these) for f in (*read_facts(pages), *read_lists(pages))]


def build_items(
    pages: list[Page], config: QuestionConfig, named: PageNames | None = None
) -> QuestionSet:
    """All questions of the corpus.

    Parameters
    ----------
    pages : the pages that will be chunked (paragraph indices refer to them).
    named : names of pages; default from ``pages`` themselves. Give those of the unreduced
        corpus when fields were selected.
    """
    named = page_names(pages) if named is None else named
    properties = {name: relation.wording for name, relation in BY_NAME.items()}
    knowledge = Knowledge(read_statements(pages, named), properties)
    splits = {page.page_id: split_of(page.page_id, config) for page in pages}

    drawn = draw_graphs(
        knowledge,
        _starts(knowledge, config),
        lambda statement: splits[statement.evidence.page_id],
        config.limit,
        _refusal,
        answer_share=config.answer_share,
    )
    items = [
        _item(partial, category, name, config)
        for (category, name), partials in drawn.graphs.items()
        for partial in partials
    ]
    return QuestionSet(
        sorted(items, key=lambda i: i.item_id), dict(drawn.excluded), dict(drawn.examples)
    )


def _starts(knowledge: Knowledge, config: QuestionConfig) -> Starts:
    """One-node graphs: named facts, described pages, shared objects, double descriptions."""
    properties = knowledge.properties
    singles = []
    for statement in knowledge.statements.values():
        prop = properties[statement.relation]
        if not BY_NAME[prop.name].listed:
            singles.append(start(statement, prop, statement.subject_names[0], named=True))
        only = len(knowledge.holders(statement.relation, statement.object)) == 1
        if prop.describes and only and prop.name not in PAIRED:
            singles.append(identify(statement, prop))
    conjunctive = [
        identify_by_two(first, second, properties, KIND)
        for first, second in twin_descriptions(knowledge, config.candidates)
    ]
    for first, second, _, _ in shared_pairs(knowledge):
        names = first.subject_names[0], second.subject_names[0]
        conjunctive.append(share(first, second, properties[first.relation], *names, named=True))
    return Starts(singles, conjunctive)


def _refusal(partial: Partial) -> str | None:
    if any(inclusion(partial.question, [a]) for a in partial.nodes[-1].answers):
        return "answer in the question"
    names = {s.subject: s.subject_names for s in partial.statements}
    bridges = [name for entity in partial.path[:-1] for name in names.get(entity, ())]
    if bridges and not partial.named and inclusion(partial.question, bridges):
        return "description names the page"
    return None


def _item(partial: Partial, category: str, split: str, config: QuestionConfig) -> Item:
    exposures = min(exposures_of(s.statement_id, config) for s in partial.statements)
    asked_backward = len(partial.nodes) == 1 and not partial.named
    return Item(
        f"{len(partial.nodes)}:{partial.graph_id}",
        partial.question,
        partial.nodes[-1].answers,
        category,
        partial.nodes,
        split,
        0 if asked_backward else exposures,
        roots="named" if partial.named else "described",
    )
