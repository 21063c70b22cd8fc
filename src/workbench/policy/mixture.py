"""The mixture of demonstrations: how often what is shown."""

from __future__ import annotations

from pydantic import Field

from ..config import Settings


class DemonstrationConfig(Settings):
    """Shares of the mixture and of the swaps; see `demonstrations`.

    ``lookups_early`` is the share of lookups in the first ``early_share`` of the steps,
    ``lookups_late`` afterwards, ``copies_early`` the share of copies among the early ones;
    early on no question has more than two hops, and ``named_early`` stands for ``named``:
    with long questions from the start, reading did not begin in 700 steps.
    ``direct_known`` applies to facts shown four times or more.  ``hops`` are the shares of
    questions by number of nodes, ``named`` that of named roots among the one-hop ones;
    ``told`` is the share of longer questions whose reasoning says what each passage gave and
    compares lists; ``stop_early`` answers a longer question after too few searches, without
    loss on the answer.  Instead of the swaps a share ``renamed`` of the searched demonstrations has
    every name and answer of one token replaced by another of its kind.
    In a share ``invented`` of them what is found is made up (`inventions`).
    """

    hops: tuple[float, ...] = (0.48, 0.28, 0.14, 0.10)
    named: float = Field(default=0.75, ge=0, le=1)
    named_early: float = Field(default=0.95, ge=0, le=1)
    direct_known: float = Field(default=0.35, ge=0, le=1)
    direct_unknown: float = Field(default=0.22, ge=0, le=1)
    direct_chain: float = Field(default=0.12, ge=0, le=1)
    stop_early: float = Field(default=0.10, ge=0, le=1)
    sloppy: float = Field(default=0.18, ge=0, le=1)
    closed_book: float = Field(default=0.15, ge=0, le=1)
    statement_closed_book: float = Field(default=0.65, ge=0, le=1)
    told: float = Field(default=1.0, ge=0, le=1)
    answer_in_reasoning: float = Field(default=0.2, ge=0, le=1)
    swap_answer: float = Field(default=0.65, ge=0, le=1)
    swap_subject: float = Field(default=0.65, ge=0, le=1)
    renamed: float = Field(default=0.0, ge=0, le=1)
    invented: float = Field(default=0.0, ge=0, le=1)
    shuffle_passages: float = Field(default=0.5, ge=0, le=1)
    early_share: float = Field(default=0.2, ge=0, le=1)
    lookups_early: float = Field(default=0.7, ge=0, le=1)
    lookups_late: float = Field(default=0.12, ge=0, le=1)
    copies_early: float = Field(default=0.4, ge=0, le=1)
