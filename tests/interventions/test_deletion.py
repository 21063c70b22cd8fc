"""Deletion by hand on scripted decodes (S1 Eq. 1)."""

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from workbench.agent.config import AgentConfig
from workbench.agent.trajectory import Segment, Trajectory
from workbench.engines.base import Generation
from workbench.errors import WorkbenchError
from workbench.interventions.deletion import (
    answers_without_evidence,
    changed_under_deletion,
    deleted_context,
)

TAGS = (
    "<think> </think> <search> </search> <information> </information> <answer> </answer>"
).split()
WORDS = "Question: capital of Mali looking Bamako is the Oslo , big".split()
P, R, C, Q, O, A = (
    Segment.PROMPT, Segment.REASONING, Segment.CALL, Segment.QUERY, Segment.OBSERVATION,
    Segment.ANSWER,
)  # fmt: skip
AGENT = AgentConfig(max_response_tokens=7)


@pytest.fixture(scope="module")
def tokenizer():
    entries = ["<pad>", "<unk>", "<eos>", *TAGS, *WORDS]
    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(entries)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>",
        additional_special_tokens=TAGS,
    )  # fmt: skip


class Engine:
    """Says ``script[context]`` behind each context and records what it was asked."""

    max_length, tokens_processed = 999, 0

    def __init__(self, tokenizer, script, max_rows=64):
        self.tokenizer, self.script, self.max_rows = tokenizer, script, max_rows
        self.opened, self.limits, self.stops, self.temperatures = [], [], [], []

    def open(self, prompts, sampling, seed):
        assert len(prompts) <= self.max_rows
        self.opened.append([self.tokenizer.decode(p) for p in prompts])
        self.temperatures.append(sampling.temperature)
        return self

    def generate(self, rows, max_new_tokens, stop):
        self.limits.append(list(max_new_tokens))
        self.stops.append(tuple(stop))
        return [self._say(self.script[self.opened[-1][row]]) for row in rows]

    def _say(self, text):
        ids = np.array(self.tokenizer(text).input_ids, np.int32)
        none = np.zeros((len(ids), 0))
        finish = {"</answer>": "stop", "<eos>": "eos"}.get(text.split()[-1], "length")
        return Generation(ids, np.zeros(len(ids)), none, none, finish)


def _trajectory(tokenizer, *parts, answer="Bamako", name="q"):
    """Parts are (segment, text); the answer part ends with the tag that closes it."""
    ids, codes = [], []
    for code, text in parts:
        new = tokenizer(text).input_ids
        ids += new
        codes += [code] * len(new)
    span = None
    if codes[-1] == A:
        start = codes.index(A) + 1
        span = (start, len(ids) - 1)
    n = len(ids)
    return Trajectory(
        item_id=name, group=name, sample=0, seed=0, tokens=np.array(ids, np.int32),
        segments=np.array(codes, np.uint8), logprobs=np.zeros(n, np.float32),
        topk_ids=np.zeros((n, 0), np.int32), topk_logprobs=np.zeros((n, 0), np.float32),
        searches=[], answer=answer if span else None, answer_span=span,
        commit_index=span[1] - 1 if span else -1, valid=span is not None, invalid_reason="",
        truncated=False, turns=2, invalid_actions=0,
    )  # fmt: skip


def _searched(tokenizer, observation="Bamako is the capital", thought="looking", **more):
    return _trajectory(
        tokenizer,
        (P, "Question: capital of Mali <think>"),
        (R, f"{thought} </think>"),
        (C, "<search>"), (Q, "capital of Mali"), (C, "</search>"),
        (O, f"<information> {observation} </information>"),
        (R, "<think> Mali capital </think>"),
        (A, "<answer> Bamako </answer>"),
        **more,
    )  # fmt: skip


CONTEXT = (
    "Question: capital of Mali <think> looking </think> <search> capital of Mali </search> "
    "<think> Mali capital </think> <answer>"
)


def test_the_context_is_all_before_the_answer_without_observations(tokenizer):
    assert tokenizer.decode(deleted_context(_searched(tokenizer))) == CONTEXT


def test_two_searches_lose_both_observations(tokenizer):
    t = _trajectory(
        tokenizer,
        (P, "Question: Mali <think>"),
        (O, "<information> Oslo </information>"),
        (R, "looking"),
        (O, "<information> Bamako </information>"),
        (A, "<answer> Bamako </answer>"),
    )
    assert tokenizer.decode(deleted_context(t)) == "Question: Mali <think> looking <answer>"


def test_a_direct_answer_keeps_its_whole_context(tokenizer):
    t = _trajectory(
        tokenizer, (P, "Question: Mali <think>"), (R, "big </think>"),
        (A, "<answer> Bamako </answer>"),
    )  # fmt: skip
    assert deleted_context(t) == t.tokens[:-2].tolist()


def test_a_trajectory_without_an_answer_is_refused(tokenizer):
    t = _trajectory(tokenizer, (P, "Question: Mali <think>"), (R, "looking"), name="q7")
    with pytest.raises(WorkbenchError, match="q7: a trajectory without an answer"):
        deleted_context(t)
    with pytest.raises(WorkbenchError, match="valid trajectories only"):
        answers_without_evidence(Engine(tokenizer, {}), [t], AGENT)


def test_equal_contexts_are_decoded_once_and_greedily(tokenizer):
    other = CONTEXT.replace("looking", "big")
    engine = Engine(tokenizer, {CONTEXT: "Oslo </answer>", other: "Bamako </answer>"})
    trajectories = [
        _searched(tokenizer),
        _searched(tokenizer, observation="Oslo"),  # another observation, the same context
        _searched(tokenizer, thought="big"),
        _searched(tokenizer),
    ]
    answers = answers_without_evidence(engine, trajectories, AGENT)
    assert answers == ["Oslo", "Oslo", "Bamako", "Oslo"]
    assert engine.opened == [[CONTEXT, other]]
    assert (engine.temperatures, engine.limits) == ([0.0], [[7, 7]])
    assert engine.stops == [("</answer>",)]


def test_batches_respect_the_engines_rows(tokenizer):
    thoughts = WORDS[:5]
    contexts = [CONTEXT.replace("looking", w) for w in thoughts]
    engine = Engine(tokenizer, {c: f"{w} </answer>" for c, w in zip(contexts, thoughts)}, 2)
    trajectories = [_searched(tokenizer, thought=w) for w in thoughts]
    assert answers_without_evidence(engine, trajectories, AGENT) == thoughts
    assert [len(rows) for rows in engine.opened] == [2, 2, 1]


@pytest.mark.parametrize(
    ("decoded", "recorded", "changed"),
    [
        ("Bamako </answer>", "Bamako", False),
        ("the bamako , </answer>", "Bamako", False),  # equal after normalising
        ("Oslo </answer>", "Bamako", True),
        ("</answer>", "Bamako", True),
        ("Bamako <eos>", "Bamako", False),  # ended without the tag: EOS is not in the answer
        ("<eos>", "Bamako", True),
        ("Bamako is the capital of Mali Bamako", "Bamako", True),  # cut by its budget
        ("Bamako </answer> Oslo </answer>", "Bamako", False),
    ],
)
def test_the_label_compares_normalised_answers(tokenizer, decoded, recorded, changed):
    decoded = decoded.replace("bamako", "Bamako")
    engine = Engine(tokenizer, {CONTEXT: decoded})
    labels = changed_under_deletion(engine, [_searched(tokenizer, answer=recorded)], AGENT)
    assert labels.dtype == bool
    assert labels.tolist() == [changed]


def test_nothing_to_delete_gives_no_labels(tokenizer):
    labels = changed_under_deletion(Engine(tokenizer, {}), [], AGENT)
    assert (labels.shape, labels.dtype) == ((0,), bool)
