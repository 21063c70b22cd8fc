"""Document-level entity replacement: does the answer follow the documents (S1 §7.3.1)?

In what an originally correct searched trajectory retrieved, the gold answer is replaced by an
alternative of the same type, and the answer is regenerated greedily.  It is *true* to the
documents when it tracks the injected entity, *hall* (document-invariant) when it stays the
original answer, *amb* otherwise.

Only observations are rendered anew; generated tokens are kept as they are and cut before the
answer.  S1 has the answer regenerated "from the modified documents" and says of deletion alone
that it retains the reasoning prefix.  So where the last turn's reasoning states the old answer,
which it can have from the unmodified documents only, that turn is regenerated as a whole;
``ReplacementConfig.restated`` can keep it, to measure the answer conditional on that prefix.
What earlier turns say stays in both cases and is counted (``prefix_states``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..agent.trajectory import SearchRecord, Segment, Trajectory
from ..config import Settings
from ..corpus.records import Chunk
from ..errors import WorkbenchError
from ..evaluation.answers import (
    GUARDED,
    accepted_answers,
    contains_phrase,
    exact_match,
    normalise_answer,
)
from ..questions.graph import Item
from ..retrieval.searcher import Hit
from .alternatives import Alternatives
from .decode import Answerer

TRUE, AMB, HALL = "true", "amb", "hall"
# Why a correct searched trajectory has no counterfactual.
NAMELESS = "the answer names nothing that could be replaced"
ASKED = "the question states the answer"
NOT_SHOWN = "no retrieved document shows the answer"
NO_ALTERNATIVE = "no alternative of the same kind"
LEFT = "the documents state the answer in another spelling"
TOO_LONG = "the engine has no room for the context"

_ABBREVIATION = 4  # letters up to which a name in capitals is one
_TAG = re.compile(r"</?[\w|]+(?:>|$)")


class ReplacementConfig(Settings):
    """``seed`` of the choice of alternatives; whether a last turn whose reasoning states the
    old answer is kept up to the answer or regenerated as a whole."""

    seed: int = 0
    restated: Literal["regenerate", "keep"] = "regenerate"


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What became of one correct searched trajectory.

    Attributes
    ----------
    reason : why it could not be classified, "" when it was; then all below is empty.
    injected : names of the alternative; ``mentions`` of the answer replaced, in ``documents``.
    context : token ids that were answered.
    regenerated : "answer" or the whole last "turn".
    prefix_states : whether kept reasoning or queries behind the first changed document state
        the old answer.
    answer : what was regenerated; None when the regenerated turn gave no answer.
    outcome : "true", "amb" or "hall".
    """

    reason: str = ""
    injected: tuple[str, ...] = ()
    mentions: int = 0
    documents: int = 0
    context: tuple[int, ...] = ()
    regenerated: Literal["", "answer", "turn"] = ""
    prefix_states: bool = False
    answer: str | None = None
    outcome: str = ""


def replace_documents(
    answerer: Answerer,
    items: Sequence[Item],
    trajectories: Sequence[Trajectory],
    alternatives: Alternatives,
    config: ReplacementConfig | None = None,
) -> list[Counterfactual | None]:
    """A counterfactual per trajectory; None where it is not a correct searched one.

    Parameters
    ----------
    items : the questions of ``trajectories``, in any order, possibly more.

    Raises
    ------
    WorkbenchError : a trajectory of an unknown item, or one whose observations the answerer's
        protocol does not render as they were recorded.
    """
    config = config or ReplacementConfig()
    by_id = {item.item_id: item for item in items}
    found: list[Counterfactual | None] = []
    for trajectory in trajectories:
        if (item := by_id.get(trajectory.item_id)) is None:
            raise WorkbenchError("a trajectory belongs to no given item", where=trajectory.item_id)
        right = trajectory.valid and exact_match(trajectory.answer, item.answers) == 1
        eligible = right and bool(trajectory.searches)
        found.append(edit(answerer, item, trajectory, alternatives, config) if eligible else None)
    for how in ("answer", "turn"):
        rows = [n for n, c in enumerate(found) if c is not None and c.regenerated == how]
        contexts = [found[n].context for n in rows]
        if how == "answer":
            answers: list[str | None] = list(answerer.answers(contexts))
        else:
            actions = answerer.turns(contexts)
            answers = [a.text if a.kind == "answer" else None for a in actions]
        for row, answer in zip(rows, answers, strict=True):
            golds = by_id[trajectories[row].item_id].answers
            outcome = classify(answer, found[row].injected, golds)
            found[row] = replace(found[row], answer=answer, outcome=outcome)
    return found


def classify(answer: str | None, injected: Sequence[str], golds: Sequence[str]) -> str:
    """ "true", "hall" or "amb" by normalised exact match (S1 §7.3.1)."""
    if exact_match(answer, injected):
        return TRUE
    return HALL if exact_match(answer, golds) else AMB


def edit(
    answerer: Answerer,
    item: Item,
    trajectory: Trajectory,
    alternatives: Alternatives,
    config: ReplacementConfig,
) -> Counterfactual:
    """The trajectory's counterfactual context, or the reason why there is none."""
    answers = tuple(accepted_answers(item.answers))
    golds = [normalise_answer(answer) for answer in answers]
    if any(gold in GUARDED or not gold for gold in golds):
        return Counterfactual(NAMELESS)
    if _states(item.question, golds):
        return Counterfactual(ASKED)
    texts = [text for s in trajectory.searches for text in (*s.titles, *s.texts)]
    longer = alternatives.longer_names(answers)
    if not any(_states(t, golds) or substitute(t, answers, "", longer)[1] for t in texts):
        return Counterfactual(NOT_SHOWN)
    decode = answerer.codec.decode
    written = _words(decode(trajectory.tokens[trajectory.generated].tolist()))
    injected = alternatives.choose(item, [*texts, written], config.seed)
    if injected is None:
        return Counterfactual(NO_ALTERNATIVE)
    changed = [_changed(record, answers, injected[0], longer) for record in trajectory.searches]
    if _left(changed, golds, longer):
        return Counterfactual(LEFT)
    observations = []
    for record, other in zip(trajectory.searches, changed, strict=True):
        observations.append(_rendered(answerer, trajectory, record, other[0]))
    shown = [n for n, (ids, old) in enumerate(observations) if ids != old]
    if not shown:
        return Counterfactual(NOT_SHOWN)
    start = trajectory.answer_span[0]
    turn = int(np.flatnonzero(trajectory.segments[:start] == Segment.OBSERVATION)[-1]) + 1
    first = trajectory.searches[shown[0]].observation_span[1]
    restated = _states(_words(decode(trajectory.tokens[turn:start].tolist())), golds)
    whole = restated and config.restated == "regenerate"
    end = turn if whole else start
    mine = np.arange(len(trajectory.tokens))
    kept = trajectory.tokens[trajectory.generated & (mine >= first) & (mine < end)]
    context, at = [], 0
    for record, (ids, _) in zip(trajectory.searches, observations, strict=True):
        context += trajectory.tokens[at : record.observation_span[0]].tolist()
        context += ids
        at = record.observation_span[1]
    context += trajectory.tokens[at:end].tolist()
    if not answerer.fits(context):
        return Counterfactual(TOO_LONG)
    return Counterfactual(
        injected=injected,
        mentions=sum(changed[n][1] for n in shown),
        documents=sum(changed[n][2] for n in shown),
        context=tuple(context),
        regenerated="turn" if whole else "answer",
        prefix_states=_states(_words(decode(kept.tolist())), golds),
    )


def substitute(
    text: str, answers: Sequence[str], alternative: str, longer: Collection[str] = ()
) -> tuple[str, int]:
    """``text`` with every whole-word mention of ``answers`` replaced, and how many there were.

    The longest name goes first.  Names in ``longer`` hold an answer and are other entities:
    they stay.  Case is ignored, except for short names all in capitals ("US" is not "us").
    """
    own = set(answers)
    names = sorted({*own, *longer}, key=lambda name: (-len(name), name))
    groups = "|".join(f"({_pattern(name)})" for name in names)
    count = 0

    def other(match: re.Match) -> str:
        nonlocal count
        if names[match.lastindex - 1] not in own:
            return match[0]
        count += 1
        return alternative

    return re.sub(rf"(?<!\w)(?:{groups})(?!\w)", other, text), count


def _pattern(name: str) -> str:
    words = r"\s+".join(map(re.escape, name.split()))
    return words if name.isupper() and len(name) <= _ABBREVIATION else f"(?i:{words})"


Changed = tuple[list[Hit], int, int]


def _changed(
    record: SearchRecord, answers: Sequence[str], alternative: str, longer: Collection[str]
) -> Changed:
    """The record's hits with the answer replaced, mentions and documents that changed."""
    hits, mentions, documents = [], 0, 0
    for hit in _hits(record):
        title, in_title = substitute(hit.chunk.title, answers, alternative, longer)
        text, in_text = substitute(hit.chunk.text, answers, alternative, longer)
        hits.append(Hit(replace(hit.chunk, title=title, text=text), hit.score))
        mentions += in_title + in_text
        documents += bool(in_title + in_text)
    return hits, mentions, documents


def _hits(record: SearchRecord) -> list[Hit]:
    columns = (record.chunk_ids, record.titles, record.texts, record.scores)
    return [
        Hit(Chunk(name, "", title, text, ()), score)
        for name, title, text, score in zip(*columns, strict=True)
    ]


def _left(changed: Sequence[Changed], golds: Sequence[str], longer: Collection[str]) -> bool:
    """Whether some changed document still states the answer, longer names aside."""
    for hits, _, _ in changed:
        for hit in hits:
            for text in (hit.chunk.title, hit.chunk.text):
                bare = substitute(text, sorted(longer), "|")[0] if longer else text
                if _states(bare, golds):
                    return True
    return False


def _rendered(
    answerer: Answerer, trajectory: Trajectory, record: SearchRecord, hits: Sequence[Hit]
) -> tuple[list[int], list[int]]:
    """Observation ids with ``hits`` and as recorded; what was cut is cut at the same length."""
    old = trajectory.tokens[slice(*record.observation_span)].tolist()
    limit = len(old) if record.observation_cut else sys.maxsize
    render = answerer.protocol.observation
    if render(_hits(record), record.ignored_queries, limit).ids != old:
        raise WorkbenchError(
            "a recorded observation is not what this protocol renders",
            where=f"{trajectory.item_id}, turn {record.turn}",
            fix="give the answerer the agent settings and the tokenizer of the rollouts",
        )
    return render(hits, record.ignored_queries, limit).ids, old


def _words(written: str) -> str:
    """Generated text without its tags, which normalising would glue to the words beside them."""
    return _TAG.sub(" ", written)


def _states(text: str, golds: Sequence[str]) -> bool:
    normal = normalise_answer(text)
    return any(contains_phrase(normal, gold) for gold in golds)
