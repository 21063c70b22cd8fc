"""Recorder: grows one trajectory while it is rolled out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..engines.base import Generation
from .protocols import Action, Observation
from .trajectory import SearchRecord, Segment, Trajectory


class Recorder:
    """Tokens, segments, log-probs and spans of one rollout, turn by turn.

    ``prompt`` are the prompt's ids, ``top_k`` how many candidates per token are kept.
    """

    def __init__(self, prompt: list[int], top_k: int):
        self.prompt = prompt
        self.length = 0
        self.invalid_actions = 0
        self.seconds = 0.0
        self._top_k = top_k
        self._turns = 0
        self._start = 0  # of the current turn
        self._blocks: list[tuple[np.ndarray, ...]] = []
        self._searches: list[SearchRecord] = []
        self._answer: str | None = None
        self._answer_span: tuple[int, int] | None = None
        self._reason = ""
        self._truncated = False
        self._environment(prompt, Segment.PROMPT)

    def turn(self, generation: Generation, action: Action) -> None:
        """Add what the policy generated; segments follow the action's spans."""
        self._start = self.length
        self._turns += 1
        count = len(generation.tokens)
        segments = np.full(count, Segment.REASONING, np.uint8)
        if action.kind in ("search", "open"):
            segments[slice(*action.payload)] = Segment.CALL
        elif action.kind == "answer":
            segments[slice(*action.payload)] = Segment.ANSWER
        if generation.finish == "eos" and count > 1:
            segments[-1] = segments[-2]
        self._add(
            generation.tokens,
            segments,
            generation.logprobs,
            generation.topk_ids,
            generation.topk_logprobs,
        )

    def observe(self, ids: list[int]) -> tuple[int, int]:
        """Add tokens of the environment; returns their range."""
        start = self.length
        self._environment(ids, Segment.OBSERVATION)
        return start, self.length

    def search(self, action: Action, hits: Sequence, observation: Observation) -> None:
        """Execute the current turn's call: only now are its query tokens ``QUERY``."""
        self._blocks[-1][1][slice(*action.span)] = Segment.QUERY
        query, payload = self._place(action.span), self._place(action.payload)
        self._searches.append(
            SearchRecord(
                query=action.text,
                turn=self._turns - 1,
                query_span=query,
                payload_span=payload,
                observation_span=self.observe(observation.ids),
                chunk_ids=[hit.chunk.chunk_id for hit in hits],
                scores=[float(hit.score) for hit in hits],
                titles=[hit.chunk.title for hit in hits],
                texts=[hit.chunk.text for hit in hits],
                ignored_queries=list(action.ignored),
                observation_cut=observation.cut,
                tool="search" if action.kind == "search" else "get_doc",
            )
        )

    def answer(self, action: Action) -> None:
        """The current turn answers: the rollout is valid and over."""
        self._answer, self._answer_span = action.text, self._place(action.span)

    def end(self, reason: str, truncated: bool = False) -> None:
        """The rollout is over without an answer, ``truncated`` by a budget."""
        self._reason, self._truncated = reason, truncated

    def trajectory(self, item_id: str, sample: int, seed: int) -> Trajectory:
        """The finished record."""
        tokens, segments, logprobs, topk_ids, topk_logprobs = (
            np.concatenate(parts) for parts in zip(*self._blocks, strict=True)
        )
        return Trajectory(
            item_id=item_id,
            group=item_id,
            sample=sample,
            seed=seed,
            tokens=tokens,
            segments=segments,
            logprobs=logprobs,
            topk_ids=topk_ids,
            topk_logprobs=topk_logprobs,
            searches=self._searches,
            answer=self._answer,
            answer_span=self._answer_span,
            commit_index=self._answer_span[1] - 1 if self._answer_span else -1,
            valid=self._answer is not None,
            invalid_reason=self._reason,
            truncated=self._truncated,
            turns=self._turns,
            invalid_actions=self.invalid_actions,
            seconds=self.seconds,
        )

    def _environment(self, ids: list[int], segment: Segment) -> None:
        count = len(ids)
        self._add(
            ids,
            np.full(count, segment, np.uint8),
            np.full(count, np.nan, np.float32),
            np.full((count, self._top_k), -1, np.int32),
            np.full((count, self._top_k), np.nan, np.float32),
        )

    def _add(self, tokens, segments, logprobs, topk_ids, topk_logprobs) -> None:
        self._blocks.append(
            (
                np.asarray(tokens, np.int32),
                segments,
                np.asarray(logprobs, np.float32),
                np.asarray(topk_ids, np.int32).reshape(len(tokens), self._top_k),
                np.asarray(topk_logprobs, np.float32).reshape(len(tokens), self._top_k),
            )
        )
        self.length += len(tokens)

    def _place(self, span: tuple[int, int]) -> tuple[int, int]:
        return self._start + span[0], self._start + span[1]
