"""Decodes by content: what a policy said behind given tokens, kept in memory and on disk.

A key is a hash of everything a decode depends on, so entries never go stale: other weights,
tokens, limits or sampling have other keys, and files of several processes can be united.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import numpy as np

from ..engines.base import Sampling
from ..errors import WorkbenchError

VERSION = 1


@dataclass(frozen=True, slots=True)
class Decoded:
    """Token ids that were generated, and how that ended: "stop", "eos" or "length"."""

    tokens: tuple[int, ...]
    finish: str


def decode_key(
    weights: str,
    context: Sequence[int],
    limit: int,
    stop: Sequence[str],
    sampling: Sampling,
    place: Sequence[int] = (),
) -> str:
    """SHA-256 of a decode's content.

    Parameters
    ----------
    weights : identity of the policy's weights, for instance their hash.
    limit : tokens that may be generated; ``stop`` : strings that end it.
    place : which random numbers are drawn (session seed and row); nothing for a greedy decode.
    """
    drawn = [sampling.temperature, sampling.top_p, *place] if sampling.temperature else []
    header = json.dumps([weights, limit, list(stop), drawn])
    return sha256(header.encode() + np.asarray(context, "<i4").tobytes()).hexdigest()


class DecodeCache:
    """``Decoded`` by key; with a ``path``, what was saved there is read at once.

    Raises
    ------
    WorkbenchError : the file is damaged or of another version.
    """

    def __init__(self, path: Path | str | None = None):
        self.path = None if path is None else Path(path)
        self._entries = self._read()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Decoded | None:
        """The decode of this content, or None."""
        return self._entries.get(key)

    def put(self, key: str, decoded: Decoded) -> None:
        """Keep a decode; on disk it is with the next ``save``."""
        self._entries[key] = decoded

    def save(self) -> Path:
        """Write all entries, and those that another process has saved, by rename."""
        if self.path is None:
            raise WorkbenchError("this cache has no file", fix="DecodeCache(path)")
        self._entries = self._read() | self._entries
        rows = {key: [d.finish, d.tokens] for key, d in sorted(self._entries.items())}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f".{self.path.name}.{uuid4().hex}")
        try:
            part.write_text(json.dumps({"version": VERSION, "decodes": rows}), encoding="utf-8")
            os.replace(part, self.path)
        finally:
            part.unlink(missing_ok=True)
        return self.path

    def _read(self) -> dict[str, Decoded]:
        if self.path is None or not self.path.is_file():
            return {}
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if (version := content["version"]) != VERSION:
                raise WorkbenchError(
                    f"decodes of version {version}, this code reads version {VERSION}",
                    where=self.path,
                    fix="delete the file: it is made anew",
                )
            return {
                key: Decoded(tuple(map(int, tokens)), str(finish))
                for key, (finish, tokens) in content["decodes"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WorkbenchError(
                f"not a file of decodes ({error!r})",
                where=self.path,
                fix="delete the file: it is made anew",
            ) from error
