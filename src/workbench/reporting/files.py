"""Writing result files: complete or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path | str, content: str | bytes) -> Path:
    """Write ``content`` beside ``path`` and rename it into place; the folder is made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(part, path)
    return path
