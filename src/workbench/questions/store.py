"""Items on disk: JSON lines, one question graph a line, readable in any editor."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ..errors import WorkbenchError
from .checks import check_item, usable_items
from .graph import SPLITS, Evidence, Item, Node


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
                item = parse_item(line, f"{path}:{number}")
                check_item(item, f"{path}:{number}")
                if (before := first.setdefault(item.item_id, number)) != number:
                    raise WorkbenchError(
                        f"item {item.item_id} is on line {before} already",
                        where=f"{path}:{number}",
                        fix="give every question its own id",
                    )
                if split is None or item.split == split:
                    items.append(item)
    return items


def load_usable(path: Path | str) -> tuple[list[Item], dict[str, list[str]]]:
    """The items of a file that have no fault, and the ids of the others by reason.

    A line that is no item at all is named by its number.

    Raises
    ------
    WorkbenchError
        there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise WorkbenchError("no such file", where=path, fix="give the path of an item file")
    items: list[Item] = []
    broken: list[str] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    items.append(parse_item(line, f"{path}:{number}"))
                except WorkbenchError:
                    broken.append(f"line {number}")
    kept, refused = usable_items(items)
    return kept, {**refused, "not a question graph": broken} if broken else refused


def _answers(raw: object) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(raw)


def parse_item(line: bytes, where: str) -> Item:
    """The item of one line, not checked further; raises `WorkbenchError` if there is none."""
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
        return Item(nodes=nodes, answers=_answers(raw.pop("answers")), **raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkbenchError(
            f"not a question graph: {error!r}", where=where, fix="mend or delete the line"
        ) from error
