"""Rollouts of the report agent: search, open pages, write a report, say how sure one is.

Built like ``rollout``: all unfinished rollouts generate together and nothing is re-encoded.
A budget that is hit does not end a rollout but forces its report, once (S2 App. A).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..engines.base import Engine, Sampling, Session
from ..errors import WorkbenchError
from ..questions.graph import Item
from ..retrieval.pages import PageStore
from ..seeding import seed_of
from .protocols.base import Action
from .protocols.report import ReportProtocol
from .recorder import Recorder
from .report_config import ReportAgentConfig
from .rollout import CONTEXT_LIMIT, INVALID_ACTION, TURN_LIMIT
from .trajectory import Trajectory

CALL_AFTER_FORCE = "tool call after the forced answer"


@dataclass(slots=True)
class ReportRollout:
    """A trajectory whose answer is a report.

    confidence_text : what the policy said when asked how sure it is, "" without a report.
    forced : the report was forced by a budget.
    """

    trajectory: Trajectory
    confidence_text: str
    forced: bool


@dataclass(slots=True)
class _Row:
    recorder: Recorder
    calls: int = 0
    generated: int = 0
    forced: bool = False


def report_rollout(
    engine: Engine,
    searcher: object,
    pages: PageStore,
    items: Sequence[Item],
    config: ReportAgentConfig,
    seed: int,
    samples_per_item: int = 8,
) -> list[ReportRollout]:
    """Roll out every item ``samples_per_item`` times under ``config.prompt``.

    Returns
    -------
    One record per rollout, item by item, the samples of an item in a row.  The trajectory's
    answer is the whole report; a rollout without one is not valid and says why.

    Raises
    ------
    WorkbenchError
        the engine is too short for ``max_total_tokens``, or a prompt leaves no room.
    """
    if config.max_total_tokens > engine.max_length:
        raise WorkbenchError(
            f"a rollout may have {config.max_total_tokens} tokens, the engine takes "
            f"{engine.max_length}",
            where="report.agent.max_total_tokens",
            fix="lower it, or raise the engine's max_length",
        )
    protocol = ReportProtocol(engine.tokenizer, config)
    sampling = Sampling(temperature=config.temperature, top_k_logprobs=config.top_k_logprobs)
    plan = [item for item in items for _ in range(samples_per_item)]
    seen: Counter[str] = Counter()
    found: list[ReportRollout] = []
    for start in range(0, len(plan), engine.max_rows):
        batch = plan[start : start + engine.max_rows]
        rows = [
            _Row(Recorder(protocol.prompt(item.question), sampling.top_k_logprobs))
            for item in batch
        ]
        session = engine.open(
            [row.recorder.prompt for row in rows], sampling, seed_of("report", seed, start)
        )
        _Play(session, protocol, searcher, pages, config, rows).run()
        trajectories = []
        for item, row in zip(batch, rows, strict=True):
            trajectories.append(row.recorder.trajectory(item.item_id, seen[item.item_id], seed))
            seen[item.item_id] += 1
        said = ask_confidence(engine, protocol, trajectories)
        for trajectory, row, text in zip(trajectories, rows, said, strict=True):
            found.append(ReportRollout(trajectory, text, row.forced))
    return found


def ask_confidence(
    engine: Engine, protocol: ReportProtocol, trajectories: Sequence[Trajectory]
) -> list[str]:
    """What each rollout with a report says, greedily, when asked how sure it is (App. C)."""
    config = protocol.config
    asked = [
        place
        for place, trajectory in enumerate(trajectories)
        if trajectory.valid
        and len(trajectory.tokens) + len(protocol.confidence) + config.confidence_tokens
        <= engine.max_length
    ]
    texts = [""] * len(trajectories)
    if not asked:
        return texts
    prompts = [[*trajectories[p].tokens.tolist(), *protocol.confidence] for p in asked]
    session = engine.open(prompts, Sampling(temperature=0.0), 0)
    rows = list(range(len(asked)))
    said = session.generate(rows, [config.confidence_tokens] * len(rows), ())
    session.drop(rows)
    for place, generation in zip(asked, said, strict=True):
        ids = generation.tokens[: -1 if generation.finish == "eos" else None]
        texts[place] = protocol.codec.decode(ids.tolist()).strip()
    return texts


class _Play:
    """All turns of one batch; row i of the session is ``rows[i]``."""

    def __init__(
        self,
        session: Session,
        protocol: ReportProtocol,
        searcher: object,
        pages: PageStore,
        config: ReportAgentConfig,
        rows: list[_Row],
    ):
        self.session, self.protocol, self.config = session, protocol, config
        self.searcher, self.pages, self.rows = searcher, pages, rows
        self.correction = protocol.correction()
        self.queued: dict[int, list[int]] = {}

    def run(self) -> None:
        began = time.perf_counter()
        active = list(range(len(self.rows)))
        for place in active:
            if self._room(place) < 1:
                raise WorkbenchError(
                    f"a prompt of {self.rows[place].recorder.length} tokens leaves no room",
                    where="report.agent.max_total_tokens",
                    fix="raise the limit",
                )
        while active:
            ended = self._turn(active)
            now = time.perf_counter() - began
            for place in ended:
                self.rows[place].recorder.seconds = now
            self.session.drop(ended)
            active = sorted(set(active).difference(ended))
            queued = [place for place in active if place in self.queued]
            self.session.append(queued, [self.queued.pop(place) for place in queued])

    def _turn(self, active: list[int]) -> list[int]:
        """One turn of every active row; returns the rows that ended."""
        limits = [self._room(place) for place in active]
        said = self.session.generate(active, limits, self.protocol.stop)
        ended, searches = [], []
        for place, generation in zip(active, said, strict=True):
            row = self.rows[place]
            action = self.protocol.parse(generation.tokens)
            row.recorder.turn(generation, action)
            row.generated += len(generation.tokens)
            if action.kind == "answer":
                row.recorder.answer(action)
                ended.append(place)
            elif row.forced:
                called = action.kind in ("search", "open")
                truncated = generation.finish == "length"
                reason = f"{INVALID_ACTION}: {action.text}"
                reason = TURN_LIMIT if truncated else CALL_AFTER_FORCE if called else reason
                row.recorder.end(reason, truncated=truncated)
                ended.append(place)
            elif action.kind == "search":
                searches.append((place, action))
            elif action.kind == "open":
                self._open(place, action)
            elif generation.finish == "length":
                self._force(place)
            else:
                row.recorder.invalid_actions += 1
                self._observe(place, self.correction)
        self._search(searches)
        for place in set(active).difference(ended):
            if not self.rows[place].forced and self._spent(place):
                self._force(place)
            if self._room(place) < 1:
                self.rows[place].recorder.end(CONTEXT_LIMIT, truncated=True)
                ended.append(place)
        return sorted(ended)

    def _room(self, place: int) -> int:
        """Tokens that the next turn may have; the forced turn's are kept free before it."""
        row, config = self.rows[place], self.config
        reserve = 0 if row.forced else len(self.protocol.force_final) + 1
        return min(
            config.max_response_tokens, config.max_total_tokens - row.recorder.length - reserve
        )

    def _spent(self, place: int) -> bool:
        row, config = self.rows[place], self.config
        return (
            row.recorder.length > config.final_share * config.max_total_tokens
            or row.calls >= config.max_tool_calls
            or row.generated >= config.max_output_tokens
            or self._room(place) < 1
        )

    def _force(self, place: int) -> None:
        """Disable the tools and ask for the report, if that fits."""
        self.rows[place].forced = True
        self._observe(place, self.protocol.force_final)

    def _observe(self, place: int, ids: list[int]) -> None:
        recorder = self.rows[place].recorder
        if ids and recorder.length + len(ids) <= self.config.max_total_tokens:
            recorder.observe(ids)
            self._queue(place, ids)

    def _queue(self, place: int, ids: list[int]) -> None:
        self.queued[place] = [*self.queued.get(place, ()), *ids]

    def _limit(self, place: int, most: int) -> int:
        """Tokens that an observation may have; the forced message always fits behind it."""
        length = self.rows[place].recorder.length + len(self.protocol.force_final) + 1
        return min(most, self.config.max_total_tokens - length)

    def _open(self, place: int, action: Action) -> None:
        limit = self._limit(place, self.config.max_page_tokens)
        if limit < self.protocol.overhead:
            return self._force(place)
        hit = self.pages.open(action.text)
        self._record(place, action, [hit] if hit else [], self.protocol.page(hit, limit))

    def _search(self, searches: list[tuple[int, Action]]) -> None:
        if not searches:
            return
        hits = self.searcher.search([a.text for _, a in searches], k=self.config.passages)
        for (place, action), found in zip(searches, hits, strict=True):
            limit = self._limit(place, self.config.max_observation_tokens)
            if limit < self.protocol.overhead:
                self._force(place)
                continue
            observation = self.protocol.observation(found, action.ignored, limit)
            self._record(place, action, found, observation)

    def _record(self, place: int, action: Action, hits: list, observation) -> None:
        row = self.rows[place]
        row.recorder.search(action, hits, observation)
        row.calls += 1
        self._queue(place, observation.ids)
