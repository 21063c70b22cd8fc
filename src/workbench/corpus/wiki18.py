"""Streaming reader for the wiki-18 passages (one JSON object a line, as in Search-R1).

A line is ``{"id": "7", "contents": "\\"Evan Morris\\"\\nEvan Morris was ..."}``: the first line of
``contents`` is the page's title in double quotes, the rest is a passage of about 100 words.
The file has no paragraph numbers, so every passage counts as a page of its own
(``page_id`` is its id) whose paragraph 1 is the passage.
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

from ..errors import WorkbenchError
from .records import Chunk, Extent


class Wiki18Reader:
    """Iterates over the chunks of a ``.jsonl`` or ``.jsonl.gz`` file, a line at a time.

    After (and during) an iteration ``rows`` counts the chunks given and ``blank_lines`` holds
    the numbers of the blank lines skipped, counted from 1; a complete iteration that skipped
    some ends with one warning that gives their number.

    Raises
    ------
    WorkbenchError
        there is no such file, or a line is not UTF-8, not JSON, or not such an object; file
        and line are named.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.rows = 0
        self.blank_lines: list[int] = []
        if not self.path.is_file():
            raise WorkbenchError(
                "no wiki-18 file here", where=self.path, fix="give the path of wiki-18.jsonl"
            )

    def __iter__(self) -> Iterator[Chunk]:
        self.rows, self.blank_lines = 0, []
        opener = gzip.open if self.path.suffix == ".gz" else open
        number = 0
        with opener(self.path, "rb") as lines:
            try:
                for number, line in enumerate(lines, start=1):
                    if not line.strip():
                        self.blank_lines.append(number)
                        continue
                    chunk = parse_line(line, where=f"{self.path}:{number}")
                    self.rows += 1
                    yield chunk
            except (EOFError, gzip.BadGzipFile) as error:
                raise WorkbenchError(
                    f"the gzip file breaks off or is corrupt after line {number}: {error}",
                    where=self.path,
                    fix="download it again",
                ) from error
        if self.blank_lines:
            shown = ", ".join(map(str, self.blank_lines[:5]))
            more = ", ..." if len(self.blank_lines) > 5 else ""
            warnings.warn(
                f"{self.path}: skipped {len(self.blank_lines)} blank line(s): {shown}{more}",
                stacklevel=2,
            )


def parse_line(line: bytes | str, where: str) -> Chunk:
    """The chunk of one line; ``where`` (file and line) goes into the error."""
    try:
        record = json.loads(line)
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError
        raise WorkbenchError(
            f"not JSON: {error}", where=where, fix="mend or delete the line"
        ) from error
    if not isinstance(record, dict):
        raise WorkbenchError(f"a {type(record).__name__}, not an object", where=where)
    identifier, contents = record.get("id"), record.get("contents")
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        raise WorkbenchError(f"id is {identifier!r}, not a string or integer", where=where)
    if not isinstance(contents, str):
        raise WorkbenchError(f"contents is {contents!r}, not a string", where=where)
    title, text = split_contents(contents)
    return Chunk(str(identifier), str(identifier), title, text, (Extent(1, 0, len(text)),))


def split_contents(contents: str) -> tuple[str, str]:
    """Title and text of ``contents``: the title loses its one pair of outer double quotes.

    Without a line break the whole line is the title and the text is empty.
    """
    title, _, text = contents.partition("\n")
    title = title.strip()
    if len(title) >= 2 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return title, text
