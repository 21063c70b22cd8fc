"""The one error that users meet: what was wrong, where, and what to do about it."""

from __future__ import annotations

import errno
from pathlib import Path

_OUTSIDE = {
    errno.ENOSPC: "free some space, then give the same command again",
    errno.EDQUOT: "free some space, then give the same command again",
    errno.EROFS: "make it writable, or work in a copy of the checkout",
    errno.EACCES: "make it readable and writable for you",
    errno.EPERM: "make it readable and writable for you",
    errno.ENOTDIR: "move the file that is in the way",
}


class WorkbenchError(ValueError):
    """Bad input or a broken contract, told in three parts.

    Parameters
    ----------
    what : what was wrong, one sentence.
    where : the file, line or field it was found in (``"params/tiny.yaml: grpo.lr"``).
    fix : what the reader can do now.
    """

    def __init__(self, what: str, *, where: str | Path | None = None, fix: str | None = None):
        self.what, self.where, self.fix = what, None if where is None else str(where), fix
        message = f"{self.where}: {what}" if self.where else what
        super().__init__(f"{message} -- {fix}" if fix else message)

    def __reduce__(self):
        return (_rebuild, (type(self), self.what, self.where, self.fix))


def _rebuild(cls, what, where, fix):
    return cls(what, where=where, fix=fix)


def outside_fault(error: OSError, where: str | None = None) -> WorkbenchError | None:
    """An error for a disk or a folder that cannot be used; None for every other OSError.

    ``where`` is named when the error itself names no file.
    """
    if error.errno not in _OUTSIDE:
        return None
    where = error.filename or where
    return WorkbenchError(str(error.strerror), where=where, fix=_OUTSIDE[error.errno])
