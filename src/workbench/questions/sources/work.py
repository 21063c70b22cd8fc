"""The work file: one SQLite database between the dumps and the questions.

Nothing of the dumps is held in memory.  Rows and the line that they reach to are committed
together, so a killed run goes on after the last complete shard and never sees half of one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from ...errors import WorkbenchError

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE refused (source TEXT, line INTEGER, record TEXT, reason TEXT, detail TEXT);
-- A page of KILT: names and description as KILT has them; line: where it stands in the file.
CREATE TABLE pages (page INTEGER PRIMARY KEY, qid INTEGER, line INTEGER, title TEXT,
                    names TEXT, description TEXT);
-- What the dump says of entities that have a page.
CREATE TABLE terms (qid INTEGER PRIMARY KEY, label TEXT, aliases TEXT, description TEXT);
CREATE TABLE facts (s INTEGER, p INTEGER, o INTEGER, PRIMARY KEY (s, p, o)) WITHOUT ROWID;
-- Over the whole dump: subjects with the property, and their entity-valued objects.
CREATE TABLE properties (pid INTEGER PRIMARY KEY, label TEXT, subjects INTEGER DEFAULT 0,
                         objects INTEGER DEFAULT 0);
-- Facts that a sentence of KILT says: its passage, spans of the object's and subject's names.
CREATE TABLE grounded (s INTEGER, p INTEGER, o INTEGER, place INTEGER, choice TEXT,
                       page INTEGER, paragraph INTEGER, mentions TEXT, subject TEXT,
                       first INTEGER, PRIMARY KEY (s, p, o)) WITHOUT ROWID;
"""

# Made when a pass is complete: one sort instead of millions of insertions at random places.
_INDEXES = {
    "pages": ("page_of_title ON pages (title)", "page_of_qid ON pages (qid)"),
    "dump": ("fact_of_object ON facts (p, o)", "term_of_description ON terms (description)"),
    "sentences": (
        "grounded_place ON grounded (place)",
        "grounded_object ON grounded (o, place)",
        "grounded_pair ON grounded (p, o, place)",
    ),
}
_CACHE = 256 * 1024  # KiB of pages that SQLite may hold


@dataclass(frozen=True)
class Progress:
    """How far a pass over a file came.

    ``key`` is what its result depends on (settings, the source's name); ``bytes`` the file's
    size; ``line`` the last line whose rows are committed; ``broken`` why the file could not
    be read to its end.
    """

    key: str
    bytes: int
    line: int = 0
    done: bool = False
    broken: str | None = None


class Work:
    """The database and its passes; use as a context manager.

    Raises
    ------
    WorkbenchError
        the file is no work file, or one of another version.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(self.path)
        try:
            fresh = not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if fresh:
                self.db.execute("PRAGMA journal_mode = WAL")
                self.db.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
                self.put("schema", SCHEMA_VERSION)
                self.db.commit()
            found = self.get("schema")
        except sqlite3.DatabaseError as error:
            self.db.close()
            raise WorkbenchError(
                f"not a work file: {error}", where=self.path, fix="delete it and build again"
            ) from error
        if found != SCHEMA_VERSION:
            self.db.close()
            raise WorkbenchError(
                f"work file of version {found!r}, this one reads {SCHEMA_VERSION}",
                where=self.path,
                fix="delete it and build again",
            )
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute(f"PRAGMA cache_size = -{_CACHE}")

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def get(self, key: str) -> object:
        """A value of the table ``meta``, None if there is none."""
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, value: object) -> None:
        """Set a value; it holds after the next `commit`."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def progress(self, name: str, key: str, size: int) -> Progress:
        """Where the pass ``name`` stands; a file that broke off and is longer now goes on.

        Raises
        ------
        WorkbenchError
            the pass was begun with other settings or another file.
        """
        raw = self.get(f"pass:{name}")
        if raw is None:
            return Progress(key, size)
        found = Progress(**raw)  # type: ignore[arg-type]
        if found.key != key or (found.bytes != size and not (found.broken and size > found.bytes)):
            raise WorkbenchError(
                f"the pass over {name} was begun with {found.key}, {found.bytes} bytes; "
                f"now it is {key}, {size} bytes",
                where=self.path,
                fix="take another --out, or delete this file to begin anew",
            )
        if found.bytes != size:
            return Progress(key, size, found.line)
        return found

    def commit(self, name: str, progress: Progress) -> None:
        """Rows and progress become durable together; a pass that is done gets its indexes."""
        if progress.done:
            for index in _INDEXES[name]:
                self.db.execute(f"CREATE INDEX IF NOT EXISTS {index}")
        self.put(f"pass:{name}", asdict(progress))
        self.db.commit()

    def forget(self, name: str, table: str) -> None:
        """A pass that has to run again: its rows, its refusals and its progress go."""
        self.db.execute(f"DELETE FROM {table}")
        self.db.execute("DELETE FROM refused WHERE source = ?", (name,))
        self.db.execute("DELETE FROM meta WHERE key = ?", (f"pass:{name}",))

    def refuse(self, source: str, line: int, record: str, reason: str, detail: str = "") -> None:
        """Note a record that is left out; ``source`` is the pass."""
        row = (source, line, record, reason, detail)
        self.db.execute("INSERT INTO refused VALUES (?, ?, ?, ?, ?)", row)

    def refusals(self) -> Iterator[tuple[str, int, str, str, str]]:
        """(source, line, record id, reason, detail) in order of source and line."""
        yield from self.db.execute("SELECT * FROM refused ORDER BY 1, 2, 3, 4, 5")

    def select_in(self, query: str, values: Iterable[object], size: int = 500) -> Iterator[tuple]:
        """Rows of a query whose ``{}`` stands for a list of values, some at a time."""
        rest = iter(values)
        while some := tuple(islice(rest, size)):
            yield from self.db.execute(query.format(",".join("?" * len(some))), some)
