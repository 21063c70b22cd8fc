"""The three passes over the sources, each resumable and holding one shard at a time.

1. `read_pages`: KILT's pages and their Wikidata items.
2. `read_dump`: of the Wikidata dump the facts and names of those items, and how many objects
   each property has.
3. `read_sentences` (module ``cooccurrence``): KILT again, now that facts are known.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from .kilt import Refused, parse_page
from .streams import Lines, identity
from .wikidata import UNKNOWN, Term, parse_line
from .work import Progress, Work


class Reader(Protocol):
    """What a pass does with lines; ``take`` raises `Refused` for one it cannot use."""

    def take(self, number: int, line: bytes) -> None: ...

    def may_end_before(self, line: bytes) -> bool:
        """Whether a shard may end before this line."""

    def flush(self) -> None:
        """Write what is held: the shard ends here."""


def run_pass(
    work: Work, name: str, path: Path | str, settings: object, reader: Reader, shard: int
) -> Progress:
    """Run or resume one pass and return how it ended.

    Lines that cannot be used are noted with number, record id and reason.  Where the file
    breaks off, what was read stays, and ``broken`` names the line; a longer file of the same
    name goes on there.
    """
    path = Path(path)
    source = identity(path)
    key = json.dumps({"file": source["name"], "settings": settings}, sort_keys=True)
    progress = work.progress(name, key, int(source["bytes"]))
    if progress.done:
        return progress
    lines = Lines(path, progress.line, label=name)
    broken, last = None, progress.line
    for number, line in lines:
        if number - progress.line > shard and reader.may_end_before(line):
            reader.flush()
            progress = replace(progress, line=number - 1)
            work.commit(name, progress)
        try:
            reader.take(number, line)
        except Refused as refused:
            if not line.endswith(b"\n"):
                broken = f"breaks off inside line {number}: {refused}"
                break
            work.refuse(name, number, refused.record, refused.reason, refused.detail)
        last = number
    reader.flush()
    broken = broken or lines.broken
    progress = replace(progress, line=last, done=True, broken=broken)
    work.commit(name, progress)
    return progress


class _Pages:
    def __init__(self, work: Work):
        self._work = work

    def take(self, number: int, line: bytes) -> None:
        if not line.strip():
            return
        page = parse_page(line)
        row = (
            int(page.page.page_id), page.qid, number, page.page.title,
            json.dumps(page.names, ensure_ascii=False), page.description,
        )  # fmt: skip
        done = self._work.db.execute("INSERT OR IGNORE INTO pages VALUES (?,?,?,?,?,?)", row)
        if not done.rowcount:
            raise Refused("a page of this id came before", page.page.page_id)

    def may_end_before(self, line: bytes) -> bool:
        return True

    def flush(self) -> None:
        pass


def read_pages(work: Work, path: Path | str, shard: int) -> Progress:
    """First pass: the table ``pages``."""
    return run_pass(work, "pages", path, {}, _Pages(work), shard)


class Members:
    """A set of numbers as one bit each: 14 MB for all of Wikidata."""

    def __init__(self, numbers: Iterable[int]):
        self._bits = bytearray()
        for number in numbers:
            byte = number >> 3
            if byte >= len(self._bits):
                self._bits.extend(bytes(byte + 1 - len(self._bits)))
            self._bits[byte] |= 1 << (number & 7)

    def __contains__(self, number: int) -> bool:
        byte = number >> 3
        return byte < len(self._bits) and bool(self._bits[byte] >> (number & 7) & 1)


class _Dump:
    HELD = 10_000

    def __init__(self, work: Work, language: str):
        self._work, self._language = work, language.encode()
        rows = work.db.execute(
            "SELECT DISTINCT qid FROM pages WHERE qid NOT NULL ORDER BY qid DESC"
        )
        self._known = Members(row[0] for row in rows)
        self._subject = ""
        self._objects: Counter[int] = Counter()
        self._properties: dict[int, list[int]] = {}
        self._labels: list[tuple[int, str]] = []
        self._facts: list[tuple[int, int, int]] = []
        self._terms: dict[int, dict[str, list[str]]] = {}

    def take(self, number: int, line: bytes) -> None:
        term = parse_line(line, self._language)
        if term is None:
            return
        kind, digits = term.subject[:1], term.subject[1:]
        if not digits.isdecimal() or len(digits) > 18:
            return
        if term.subject != self._subject:
            self._close()
            self._subject = term.subject
        if kind == "Q":
            self._item(int(digits), term, number)
        elif kind == "P" and term.kind == "label":
            self._labels.append((int(digits), term.value))

    def _item(self, qid: int, term: Term, number: int) -> None:
        known = qid in self._known
        if term.kind == "fact":
            self._objects[term.prop] += 1
            if known:
                obj = -number if term.value == UNKNOWN else int(term.value[1:])
                self._facts.append((qid, term.prop, obj))
        elif known:
            self._terms.setdefault(qid, {}).setdefault(term.kind, []).append(term.value)

    def _close(self) -> None:
        for prop, count in self._objects.items():
            total = self._properties.setdefault(prop, [0, 0])
            total[0] += 1
            total[1] += count
        self._objects.clear()
        if len(self._facts) > self.HELD or len(self._terms) > self.HELD:
            self._write()

    def may_end_before(self, line: bytes) -> bool:
        """Only between entities, so that no subject is counted twice."""
        return not line.startswith(f"<http://www.wikidata.org/entity/{self._subject}>".encode())

    def flush(self) -> None:
        self._close()
        self._write()
        db = self._work.db
        db.executemany(
            "INSERT INTO properties (pid, subjects, objects) VALUES (?, ?, ?) ON CONFLICT (pid) "
            "DO UPDATE SET subjects = subjects + excluded.subjects, "
            "objects = objects + excluded.objects",
            [(pid, *total) for pid, total in self._properties.items()],
        )
        db.executemany(
            "INSERT INTO properties (pid, label) VALUES (?, ?) "
            "ON CONFLICT (pid) DO UPDATE SET label = coalesce(label, excluded.label)",
            self._labels,
        )
        self._properties.clear()
        self._labels.clear()

    def _write(self) -> None:
        db = self._work.db
        db.executemany("INSERT OR IGNORE INTO facts VALUES (?, ?, ?)", self._facts)
        for qid, terms in self._terms.items():
            row = db.execute("SELECT * FROM terms WHERE qid = ?", (qid,)).fetchone()
            label, aliases, description = row[1:] if row else (None, "[]", None)
            label = label or next(iter(terms.get("label", ())), None)
            aliases = dict.fromkeys((*json.loads(aliases), *terms.get("alias", ())))
            description = description or next(iter(terms.get("description", ())), None)
            db.execute(
                "INSERT OR REPLACE INTO terms VALUES (?, ?, ?, ?)",
                (qid, label, json.dumps(list(aliases), ensure_ascii=False), description),
            )
        self._facts.clear()
        self._terms.clear()


def read_dump(work: Work, path: Path | str, language: str, shard: int) -> Progress:
    """Second pass: the tables ``facts``, ``terms`` and ``properties``."""
    reader = _Dump(work, language)
    return run_pass(work, "dump", path, {"language": language}, reader, shard)
