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
    part.write_text("".join(json.dumps(asdict(i), ensure_ascii=False) + "\n" for i in items))
    os.replace(part, path)


def load_items(path: Path | str, split: str | None = None) -> list[Item]:
    """Read items, all or those of one split.

    Raises
    ------
    WorkbenchError
        a missing file, an unknown split, a line that is not an item, a question without
        text or without an answer, or a graph that does not hold together; file and line are
        named.
    """
    path = Path(path)
    if split is not None and split not in SPLITS:
        raise WorkbenchError(f"unknown split {split!r}", where=path, fix=f"one of {SPLITS}")
    if not path.is_file():
        raise WorkbenchError("no questions here", where=path, fix="run the notebook 02_questions")
    items = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                item = _parse(line, f"{path}:{number}")
                if split is None or item.split == split:
                    items.append(item)
    return items


def _parse(line: str, where: str) -> Item:
    try:
        raw = json.loads(line)
        nodes = tuple(
            Node(
                n["node_id"], n["question"], tuple(n["answers"]),
                tuple(
                    Evidence(e["page_id"], e["paragraph"], tuple(map(tuple, e["mentions"])))
                    for e in n["evidence"]
                ),
                tuple(n["prerequisites"]), n["fact_id"],
            )
            for n in raw.pop("nodes")
        )
        answers = raw.pop("answers")
        answers = (answers,) if isinstance(answers, str) else tuple(answers)
        item = Item(nodes=nodes, answers=answers, **raw)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise WorkbenchError(f"not a question graph: {error!r}", where=where) from error
    check_item(item, where)
    return item


def check_item(item: Item, where: str) -> None:
    """Raise unless the item can be asked, scored and its graph is grounded and acyclic."""
    if not item.question.strip():
        raise WorkbenchError(f"item {item.item_id}: empty question", where=where)
    if not item.answers or not all(a.strip() for a in item.answers):
        raise WorkbenchError(
            f"item {item.item_id}: a question without an answer", where=where,
            fix="give at least one non-empty answer or remove the item",
        )
    seen: set[str] = set()
    for node in item.nodes:
        if missing := [p for p in node.prerequisites if p not in seen]:
            raise WorkbenchError(
                f"item {item.item_id}: node {node.node_id} comes before its prerequisite "
                f"{missing[0]} (missing, or the graph has a cycle)", where=where,
            )
        if not node.evidence or not all(e.mentions for e in node.evidence):
            raise WorkbenchError(f"item {item.item_id}: node {node.node_id} is not grounded", where=where)
        seen.add(node.node_id)
