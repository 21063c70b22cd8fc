"""What makes a question graph unusable, and why: refused with its id, counted, never dropped.

An item can be asked (a question), scored (answers), followed (an acyclic graph whose
prerequisites exist and come before their nodes) and grounded (every node has passages in which
its answer is mentioned).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ..corpus.records import Page
from ..errors import WorkbenchError
from .graph import SPLITS, Evidence, Item, Node, Roots, has_cycle


@dataclass(frozen=True, slots=True)
class Refusal:
    """One fault: ``reason`` is the same for all items that have it, ``detail`` is not.

    ``node`` is the id of the node it was found in, empty where it is the item's own.
    """

    reason: str
    node: str = ""
    detail: str = ""
    fix: str | None = None

    def error(self, item: Item, where: str | Path | None) -> WorkbenchError:
        """The fault as an error that names item, node and file."""
        place = f"item {item.item_id}" + (f", node {self.node}" if self.node else "")
        detail = f" ({self.detail})" if self.detail else ""
        return WorkbenchError(f"{place}: {self.reason}{detail}", where=where, fix=self.fix)


def refusal(item: Item, pages: Mapping[str, Page] | None = None) -> Refusal | None:
    """The first fault of an item, or None.

    Parameters
    ----------
    pages : page id -> page. With them every span must lie in a paragraph that exists.
    """
    return next(_faults(item, pages), None)


def check_item(
    item: Item, where: str | Path | None, pages: Mapping[str, Page] | None = None
) -> None:
    """Raise unless the item can be asked and scored and its graph is grounded and acyclic."""
    if (fault := refusal(item, pages)) is not None:
        raise fault.error(item, where)


def usable_items(
    items: Iterable[Item], pages: Iterable[Page] | None = None
) -> tuple[list[Item], dict[str, list[str]]]:
    """The items without fault, in order, and the ids of the others by reason."""
    by_id = None if pages is None else {page.page_id: page for page in pages}
    kept: list[Item] = []
    refused: dict[str, list[str]] = defaultdict(list)
    seen: set[str] = set()
    for item in items:
        fault = refusal(item, by_id)
        if fault is not None:
            refused[fault.reason].append(item.item_id)
        elif item.item_id in seen:
            refused["two items of one id"].append(item.item_id)
        else:
            kept.append(item)
            seen.add(item.item_id)
    return kept, dict(refused)


def _faults(item: Item, pages: Mapping[str, Page] | None) -> Iterator[Refusal]:
    ids = (item.item_id, *(name for n in item.nodes for name in (n.node_id, *n.prerequisites)))
    if not all(isinstance(name, str) and name for name in ids):
        yield Refusal("an id that is not text", fix="write ids as strings")
        return
    yield from _asked(item.question, item.answers)
    if item.split not in SPLITS:
        yield Refusal("unknown split", detail=repr(item.split), fix=f"one of {SPLITS}")
    if item.roots not in get_args(Roots):
        yield Refusal("unknown roots", detail=repr(item.roots), fix=f"one of {get_args(Roots)}")
    names = [node.node_id for node in item.nodes]
    seen: set[str] = set()
    for node in item.nodes:
        if node.node_id in seen:
            yield Refusal("two nodes of one id", node.node_id, fix="number the nodes v1, v2, ...")
        yield from _asked(node.question, node.answers, node.node_id)
        for name in node.prerequisites:
            if name not in names:
                yield Refusal("a missing prerequisite", node.node_id, name)
        seen.add(node.node_id)
    if has_cycle(item.nodes):
        yield Refusal("a cycle of prerequisites")
    seen.clear()
    for node in item.nodes:
        if late := [name for name in node.prerequisites if name not in seen]:
            yield Refusal("a node before its prerequisite", node.node_id, late[0], "sort the nodes")
        seen.add(node.node_id)
        yield from _grounded(node, pages)


def _asked(question: object, answers: tuple[object, ...], node: str = "") -> Iterator[Refusal]:
    if not isinstance(question, str) or not all(isinstance(a, str) for a in answers):
        yield Refusal(
            "the question or an answer is not text", node, fix="write years and numbers as strings"
        )
    elif not question.strip():
        yield Refusal("an empty question", node, fix="write one or remove the item")
    elif not answers:
        yield Refusal("no answer", node, fix="give at least one answer or remove the item")
    elif not all(a.strip() for a in answers):
        yield Refusal("an empty answer", node, fix="remove the empty answer, or the item")


def _grounded(node: Node, pages: Mapping[str, Page] | None) -> Iterator[Refusal]:
    if not node.evidence:
        yield Refusal("a node without evidence", node.node_id, fix="name a passage")
    for evidence in node.evidence:
        place = f"page {evidence.page_id!r}, paragraph {evidence.paragraph!r}"
        named = isinstance(evidence.page_id, str) and evidence.page_id
        if not named or not _is_place(evidence.paragraph):
            yield Refusal(
                "evidence without a passage", node.node_id, place, "name page and paragraph"
            )
        elif not evidence.mentions:
            yield Refusal(
                "evidence without a mention", node.node_id, place,
                "say where in the passage the answer is mentioned",
            )  # fmt: skip
        else:
            yield from _inside(evidence, node.node_id, place, pages)


def _inside(evidence: Evidence, node: str, place: str, pages) -> Iterator[Refusal]:
    end_of = None
    if pages is not None:
        page = pages.get(evidence.page_id)
        if page is None or evidence.paragraph >= len(page.text):
            yield Refusal("a passage that the corpus does not have", node, place)
            return
        end_of = len(page.text[evidence.paragraph])
    for span in evidence.mentions:
        if not (
            len(span) == 2
            and all(map(_is_place, span))
            and span[0] < span[1]
            and (end_of is None or span[1] <= end_of)
        ):
            yield Refusal("a span outside its passage", node, f"{span} in {place}")


def _is_place(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
