"""Batched multi-turn rollouts: the policy acts, the environment answers, nothing is re-encoded.

All unfinished rollouts generate together, their searches go to the searcher as one batch, and
the observations are appended as ids.  What was sampled is what is recorded: tokens, log-probs
and spans are collected turn by turn and never rebuilt from text.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from ..engines.base import Engine, Sampling, Session
from ..errors import WorkbenchError
from ..questions.graph import Item
from ..seeding import seed_of
from .config import AgentConfig
from .protocols import Action, Protocol, build_protocol
from .recorder import Recorder
from .trajectory import Trajectory

# Why a trajectory is not valid; what is behind a colon is the parser's reason.
TURN_LIMIT = "truncated: turn limit"
CONTEXT_LIMIT = "truncated: context limit"
LAST_SEARCH = "search in the last round"
INVALID_ACTION = "invalid action"


def rollout(
    engine: Engine,
    searcher: object,
    items: Sequence[Item],
    config: AgentConfig,
    sampling: Sampling,
    seed: int,
    samples_per_item: int = 1,
) -> list[Trajectory]:
    """Roll out every item ``samples_per_item`` times.

    Parameters
    ----------
    engine : the policy; it takes ``engine.max_rows`` rollouts at once, more go in batches.
    searcher : has ``search(queries, k) -> list of lists of hits`` (``workbench.retrieval``);
        it is asked once per round and batch, never with an empty query.
    seed : names the draws.  The same items, settings, seed and ``max_rows`` give the same
        tokens.

    Returns
    -------
    One trajectory per rollout, item by item, the samples of an item in a row; its group is
    the item's id.  ``seconds`` is the wall time from the start of the rollout's batch until
    it ended, waiting for the others of its batch included.

    A rollout ends with an answer; with a search or an invalid action in its last round; with
    an invalid action when no correction is set; or truncated: a turn reached
    ``max_response_tokens`` before a complete action, or the context has no room for another
    turn or observation.  It is valid if it has an answer.

    Raises
    ------
    WorkbenchError
        a prompt is longer than ``max_start_tokens``; the engine did not stop at a stop
        string; the budgets leave no room for a first turn or exceed the engine's.
    """
    if config.max_total_tokens > engine.max_length:
        raise WorkbenchError(
            f"a trajectory may have {config.max_total_tokens} tokens, the engine takes "
            f"{engine.max_length}",
            where="agent.max_total_tokens",
            fix="lower it, or raise the engine's max_length",
        )
    protocol = build_protocol(config, engine.tokenizer)
    plan = [item for item in items for _ in range(samples_per_item)]
    seen: Counter[str] = Counter()
    prompts: dict[str, list[int]] = {}
    trajectories: list[Trajectory] = []
    for start in range(0, len(plan), engine.max_rows):
        batch = plan[start : start + engine.max_rows]
        recorders = []
        for item in batch:
            if item.question not in prompts:
                prompts[item.question] = protocol.prompt(item.question)
            recorders.append(Recorder(prompts[item.question], sampling.top_k_logprobs))
        session = engine.open(
            [r.prompt for r in recorders], sampling, seed_of("rollout", seed, start)
        )
        _run(session, protocol, searcher, config, recorders)
        for item, recorder in zip(batch, recorders, strict=True):
            trajectories.append(recorder.trajectory(item.item_id, seen[item.item_id], seed))
            seen[item.item_id] += 1
    return trajectories


def _run(
    session: Session,
    protocol: Protocol,
    searcher: object,
    config: AgentConfig,
    recorders: list[Recorder],
) -> None:
    """Play all rounds of one batch; row i of the session is recorder i."""
    began, correction = time.perf_counter(), protocol.correction()
    active = list(range(len(recorders)))
    for turn in range(config.turns):
        last = turn == config.turns - 1
        limits = [_room(recorders[row], config) for row in active]
        generations = session.generate(active, limits, protocol.stop)
        searches: list[tuple[int, Action]] = []
        corrected, ended = [], []
        for row, generation in zip(active, generations, strict=True):
            recorder = recorders[row]
            action = protocol.parse(generation.tokens)
            if action.keep != len(generation.tokens):
                raise WorkbenchError(
                    f"{len(generation.tokens) - action.keep} tokens follow a complete action",
                    where=f"turn {turn}",
                    fix="the engine must stop at the protocol's stop strings",
                )
            recorder.turn(generation, action)
            if action.kind == "answer":
                recorder.answer(action)
                ended.append(row)
            elif generation.finish == "length":
                recorder.end(TURN_LIMIT, truncated=True)
                ended.append(row)
            elif action.kind == "search" and last:
                recorder.end(LAST_SEARCH)
                ended.append(row)
            elif action.kind == "search":
                searches.append((row, action))
            else:
                recorder.invalid_actions += 1
                if last or not correction:
                    recorder.end(f"{INVALID_ACTION}: {action.text}")
                    ended.append(row)
                else:
                    corrected.append(row)
        ended += _correct(session, correction, config, recorders, corrected)
        ended += _search(session, protocol, searcher, config, recorders, searches)
        now = time.perf_counter() - began
        for row in ended:
            recorders[row].seconds = now
        session.drop(ended)
        active = sorted(set(active).difference(ended))
        if not active:
            return


def _room(recorder: Recorder, config: AgentConfig) -> int:
    """Tokens that the next turn may have."""
    room = min(config.max_response_tokens, config.max_total_tokens - recorder.length)
    if room < 1:
        raise WorkbenchError(
            f"a prompt of {recorder.length} tokens leaves no room for a turn",
            where="agent.max_total_tokens",
            fix="raise the limit",
        )
    return room


def _fits(recorder: Recorder, config: AgentConfig, tokens: int) -> bool:
    """Whether a turn can start behind ``tokens`` more tokens of the environment."""
    length = recorder.length + tokens
    return length <= config.max_prompt_tokens and length < config.max_total_tokens


def _correct(
    session: Session,
    correction: list[int],
    config: AgentConfig,
    recorders: list[Recorder],
    rows: list[int],
) -> list[int]:
    """Answer invalid actions; returns the rows that have no room for it."""
    ended, answered = [], []
    for row in rows:
        if _fits(recorders[row], config, len(correction)):
            recorders[row].observe(correction)
            answered.append(row)
        else:
            recorders[row].end(CONTEXT_LIMIT, truncated=True)
            ended.append(row)
    session.append(answered, [correction] * len(answered))
    return ended


def _search(
    session: Session,
    protocol: Protocol,
    searcher: object,
    config: AgentConfig,
    recorders: list[Recorder],
    searches: list[tuple[int, Action]],
) -> list[int]:
    """Execute searches as one batch; returns the rows that have no room for a result."""
    ended, asked = [], []
    for row, action in searches:
        if _fits(recorders[row], config, protocol.overhead + 1):
            asked.append((row, action))
        else:
            recorders[row].end(CONTEXT_LIMIT, truncated=True)
            ended.append(row)
    if not asked:
        return ended
    hits = searcher.search([action.text for _, action in asked], k=config.passages)
    appended = []
    for (row, action), found in zip(asked, hits, strict=True):
        recorder = recorders[row]
        limit = min(
            config.max_observation_tokens,
            config.max_prompt_tokens - recorder.length,
            config.max_total_tokens - recorder.length - 1,
        )
        observation = protocol.observation(found, action.ignored, limit)
        recorder.search(action, found, observation)
        appended.append(observation.ids)
    session.append([row for row, _ in asked], appended)
    return ended
