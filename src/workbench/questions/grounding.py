"""When a retrieved chunk is a match for a required passage (S3 App. B)."""

from __future__ import annotations

from ..corpus.records import Chunk
from .graph import Evidence


def meets(chunk: Chunk, evidence: Evidence, whole_mention: bool = False) -> bool:
    """Whether ``chunk`` has the page and paragraph and the *start* of an annotated mention.

    ``whole_mention`` asks for a complete mention inside the chunk instead of its start: the
    stricter check that S3 Table 5 compares with.
    """
    return any(
        chunk.contains(evidence.page_id, evidence.paragraph, start)
        and (
            not whole_mention
            or any(
                e.paragraph == evidence.paragraph and e.start <= start and end <= e.end
                for e in chunk.extents
            )
        )
        for start, end in evidence.mentions
    )
