"""Files of lines that are larger than memory: plain, .gz or .bz2, with progress."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from ...errors import WorkbenchError

_BLOCK = 1 << 20


class Lines:
    """Iterates over ``(line number from 1, line as bytes)`` of a file, after line ``start``.

    Only one line and the decompressor's window are held.  Where a compressed file breaks off or
    is corrupt the iteration ends, `broken` says why and after which line, and everything before
    has been given.  A compressed file has no way in but from its beginning, so going on after
    ``start`` decompresses once more what was read before (nothing is parsed again).

    Parameters
    ----------
    path : ``.gz`` and ``.bz2`` (several streams too) are decompressed, others read as they are.
    start : lines that are passed over.
    label : what the progress bar is called; no bar when empty or when stderr is no terminal.

    Raises
    ------
    WorkbenchError
        there is no such file.
    """

    def __init__(self, path: Path | str, start: int = 0, label: str = ""):
        self.path, self.start, self.label = Path(path), start, label
        self.number = 0
        self.broken: str | None = None
        if not self.path.is_file():
            raise WorkbenchError("no such file", where=self.path, fix="give the path of the dump")

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        from tqdm import tqdm

        self.number, self.broken = 0, None
        size = self.path.stat().st_size
        with self.path.open("rb") as raw, tqdm(
            total=size, desc=self.label, unit="B", unit_scale=True,
            disable=None if self.label else True,
        ) as bar:  # fmt: skip
            try:
                for line in _unpacked(raw, self.path.suffix):
                    self.number += 1
                    if self.number % 10_000 == 0:
                        bar.update(raw.tell() - bar.n)
                    if self.number > self.start:
                        yield self.number, line
            except (EOFError, OSError, zlib.error) as error:
                self.broken = f"breaks off or is corrupt after line {self.number}: {error}"
            else:
                bar.update(size - bar.n)


def _unpacked(raw: BinaryIO, suffix: str) -> Iterable[bytes]:
    if suffix == ".gz":
        return gzip.open(raw)
    return _bz2_lines(raw) if suffix == ".bz2" else raw


def _bz2_lines(raw: BinaryIO) -> Iterator[bytes]:
    """Lines of one bzip2 stream or several.

    `bz2.open` takes a damaged stream after a whole one for padding and ends without a word.
    """
    unpack, rest, whole = bz2.BZ2Decompressor(), b"", True
    while block := raw.read(_BLOCK):
        while block:
            if unpack.eof:
                unpack = bz2.BZ2Decompressor()
            *lines, rest = (rest + unpack.decompress(block)).split(b"\n")
            for line in lines:
                yield line + b"\n"
            block, whole = unpack.unused_data, unpack.eof
    if not whole:
        raise EOFError("the file ends inside a compressed stream")
    if rest:
        yield rest


def identity(path: Path | str) -> dict[str, int | str]:
    """Name and size of a source file, by which a resumed run knows it again."""
    path = Path(path)
    return {"name": path.name, "bytes": path.stat().st_size}
