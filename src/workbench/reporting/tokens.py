"""Trajectories and demonstrations as coloured text, for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from ..agent.trajectory import Segment, Trajectory

# Background and border per segment: told apart by hue, lightness and the legend's words.
SEGMENT_COLOURS = {
    Segment.PROMPT: "#e3e3e3",
    Segment.REASONING: "#fff3c4",
    Segment.CALL: "#f7c99b",
    Segment.QUERY: "#f0a35e",
    Segment.OBSERVATION: "#cfe2f3",
    Segment.ANSWER: "#a8d8b0",
}


def _spans(tokenizer, tokens: Sequence[int], codes: Sequence) -> list[tuple[object, str]]:
    """Runs of equal code with their decoded text."""
    runs: list[tuple[object, list[int]]] = []
    for token, code in zip(tokens, codes, strict=True):
        if not runs or runs[-1][0] != code:
            runs.append((code, []))
        runs[-1][1].append(int(token))
    return [(code, tokenizer.decode(ids)) for code, ids in runs]


def marked_tokens(tokenizer, tokens: np.ndarray, mask: np.ndarray) -> str:
    """HTML of a demonstration: targets in bold, what is only read in grey."""
    parts = [
        f"<b>{html.escape(text)}</b>"
        if learnt
        else f'<span style="color:#767676">{html.escape(text)}</span>'
        for learnt, text in _spans(tokenizer, tokens, mask.tolist())
    ]
    return " ".join(parts)


def segment_tokens(tokenizer, trajectory: Trajectory) -> str:
    """HTML of a trajectory: each segment on its colour, with what came of it."""
    parts = [
        f'<span style="background:{SEGMENT_COLOURS[Segment(code)]};color:#111;padding:1px 2px" '
        f'title="{Segment(code).name.lower()}">{html.escape(text)}</span>'
        for code, text in _spans(tokenizer, trajectory.tokens, trajectory.segments.tolist())
        if code != Segment.PADDING
    ]
    outcome = f"answer: {trajectory.answer}" if trajectory.valid else trajectory.invalid_reason
    tail = f"<i>{html.escape(outcome)}; {len(trajectory.searches)} searches</i>"
    return f'<p style="line-height:1.7">{" ".join(parts)}<br>{tail}</p>'
