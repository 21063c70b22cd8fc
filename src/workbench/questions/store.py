"""Items on disk: JSON lines, one question graph a line, readable in any editor."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ..errors import WorkbenchError
from .graph import Evidence, Item, Node

SPLITS = ("train", "calibration", "validation", "test")


def save_items(path: Path | str, items: Iterable[Item]) -> None:
    """Write the items in the order given, complete or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    lines = (json.dumps(asdict(i), ensure_ascii=False) + "\n" for i in items)
    part.write_text("".join(lines), encoding="utf-8")
    os.replace(part, path)


def load_items(path: Path | str, split: str | None = None) -> list[Item]:
    """Read items, all or those of one split; a bare string counts as one answer.

    Raises
    ------
    WorkbenchError
        a missing file, an unknown split, a line that is not an item, a question without
        text or without an answer, an item in no split, two items of one id, or a graph that
        does not hold together; file and line are named.
    """
    path = Path(path)
    if split is not None and split not in SPLITS:
        raise WorkbenchError(f"unknown split {split!r}", where=path, fix=f"one of {SPLITS}")
    if not path.is_file():
        raise WorkbenchError("no questions here", where=path, fix="run the notebook 02_questions")
    items: list[Item] = []
    first: dict[str, int] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                item = _parse(line, f"{path}:{number}")
                if (before := first.setdefault(item.item_id, number)) != number:
                    raise WorkbenchError(
                        f"item {item.item_id} is on line {before} already",
                        where=f"{path}:{number}",
                        fix="give every question its own id",
                    )
                if split is None or item.split == split:
                    items.append(item)
    return items


def _answers(raw: object) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(raw)


def _parse(line: bytes, where: str) -> Item:
    try:
        raw = json.loads(line)
        nodes = tuple(
            Node(
                n["node_id"],
                n["question"],
                _answers(n["answers"]),
                tuple(
                    Evidence(e["page_id"], e["paragraph"], tuple(map(tuple, e["mentions"])))
                    for e in n["evidence"]
                ),
                tuple(n["prerequisites"]),
                n["fact_id"],
            )
            for n in raw.pop("nodes")
        )
        item = Item(nodes=nodes, answers=_answers(raw.pop("answers")), **raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkbenchError(
            f"not a question graph: {error!r}", where=where, fix="mend or delete the line"
        ) from error
    check_item(item, where)
    return item


def check_item(item: Item, where: str) -> None:
    """Raise unless the item can be asked, scored and its graph is grounded and acyclic."""
    _check_asked(item.item_id, item.question, item.answers, where)
    if item.split not in SPLITS:
        raise WorkbenchError(
            f"item {item.item_id}: unknown split {item.split!r}",
            where=where,
            fix=f"one of {SPLITS}",
        )
    seen: set[str] = set()
    for node in item.nodes:
        _check_asked(f"{item.item_id}, node {node.node_id}", node.question, node.answers, where)
        if missing := [p for p in node.prerequisites if p not in seen]:
            raise WorkbenchError(
                f"item {item.item_id}: node {node.node_id} comes before its prerequisite "
                f"{missing[0]} (missing, or the graph has a cycle)",
                where=where,
            )
        if not node.evidence or not all(e.mentions for e in node.evidence):
            raise WorkbenchError(
                f"item {item.item_id}: node {node.node_id} is not grounded",
                where=where,
                fix="name a passage and where in it the answer is mentioned",
            )
        seen.add(node.node_id)


def _check_asked(name: str, question: object, answers: tuple[object, ...], where: str) -> None:
    if not isinstance(question, str) or not all(isinstance(a, str) for a in answers):
        raise WorkbenchError(
            f"item {name}: the question or an answer is not text",
            where=where,
            fix="write years and numbers as strings",
        )
    if not question.strip():
        raise WorkbenchError(
            f"item {name}: empty question", where=where, fix="write one or remove the item"
        )
    if not answers or not all(a.strip() for a in answers):
        raise WorkbenchError(
            f"item {name}: a question without an answer",
            where=where,
            fix="give at least one non-empty answer or remove the item",
        )
