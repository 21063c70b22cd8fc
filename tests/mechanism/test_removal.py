"""Teacher forcing with and without documents (S2 App. I.2)."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from workbench.agent.config import AgentConfig
from workbench.agent.text import Codec
from workbench.agent.trajectory import SearchRecord, Segment, Trajectory
from workbench.engines.base import Generation
from workbench.engines.transformers_engine import TransformersEngine
from workbench.errors import WorkbenchError
from workbench.mechanism.removal import NO_DOCUMENTS, NOTHING, TOO_LONG, remove_documents
from workbench.mechanism.removal_summary import removal_summary
from workbench.mechanism.report_pairs import ContextConfig, report_pairs
from workbench.mechanism.trajectory_pairs import placeholder_ids, trajectory_pairs
from workbench.policy.store import load_policy

P, R, Q, O, A = (
    Segment.PROMPT, Segment.REASONING, Segment.QUERY, Segment.OBSERVATION, Segment.ANSWER,
)  # fmt: skip


@pytest.fixture(scope="module")
def policy():
    torch.set_num_threads(1)
    return load_policy()


class Fake:
    """log p of a token: ``say(token, context)``."""

    def __init__(self, tokenizer, say, max_length=2048):
        self.tokenizer, self.say, self.max_length = tokenizer, say, max_length

    def score(self, sequences, masks, top_k=0):
        found = []
        for ids, mask in zip(sequences, masks, strict=True):
            at = np.flatnonzero(mask)
            logprobs = np.array([self.say(ids[i], ids[:i]) for i in at], dtype=np.float32)
            none = np.zeros((len(at), 0))
            found.append(Generation(np.array(ids)[at], logprobs, none, none, "scored"))
        return found


@pytest.fixture
def blind(policy):
    return Fake(policy[1], lambda token, context: -float(token % 7))


@pytest.fixture
def copier(policy):
    """-1 for what stands in the context, -3 for what does not."""
    return Fake(policy[1], lambda token, context: -1.0 if token in context else -3.0)


@pytest.fixture
def played(policy, make_rollout):
    """A trajectory of two searches with a correction between them, and its record."""
    codec = Codec(policy[1])
    ids, codes, spans = [], [], []
    for code, text in (
        (P, "Question: capital of Mali <think>"),
        (R, "Mali </think>"),
        (Q, "<search> Mali </search>"),
        (O, "<information> Bamako is the capital of Mali </information>"),
        (R, "<think> Bamako"),
        (O, "that was no action"),
        (Q, "<search> Peru </search>"),
        (O, "<information> Lima is the capital of Peru </information>"),
        (R, "<think> done </think>"),
        (A, "<answer> Bamako and Oslo </answer>"),
    ):
        new = codec.trusted(text)
        if code == O and "<" in text:
            spans.append((len(ids), len(ids) + len(new)))
        ids += new
        codes += [code] * len(new)
    n = len(ids)
    searches = [
        SearchRecord("q", k, (0, 1), (0, 1), span, ["c"], [1.0], ["t"], ["x"])
        for k, span in enumerate(spans)
    ]
    trajectory = Trajectory(
        item_id="q", group="q", sample=0, seed=0, tokens=np.array(ids, np.int32),
        segments=np.array(codes, np.uint8), logprobs=np.zeros(n, np.float32),
        topk_ids=np.zeros((n, 0), np.int32), topk_logprobs=np.zeros((n, 0), np.float32),
        searches=searches, answer="Bamako and Oslo", answer_span=None, commit_index=-1, valid=True,
        invalid_reason="", truncated=False, turns=3, invalid_actions=1,
    )  # fmt: skip
    documents = ["Bamako is the capital of Mali", "Lima is the capital of Peru"]
    return SimpleNamespace(
        trajectory=trajectory, rollout=make_rollout(None, documents, correct=True), codec=codec
    )


def _pair(played, engine, **changes):
    placeholder = played.codec.trusted("<information> gone </information>")
    (pair,) = trajectory_pairs(
        [played.trajectory], [played.rollout], placeholder, engine, **changes
    )
    return pair


def test_each_call_s_observation_becomes_the_placeholder(played, blind):
    pair = _pair(played, blind)
    assert pair.present == tuple(played.trajectory.tokens)
    said = played.codec.decode(pair.removed)
    assert "capital of Peru" not in said and "Bamako is" not in said
    assert said.count("<information> gone </information>") == 2
    assert "that was no action" in said and "capital of Mali <think>" in said


def test_the_same_answer_tokens_are_scored_in_both(played, blind):
    pair = _pair(played, blind)
    ids = np.array(pair.present)[pair.scored], np.array(pair.removed)[pair.scored_removed]
    assert ids[0].tolist() == ids[1].tolist()
    assert played.codec.decode(ids[0]) == "<answer> Bamako and Oslo </answer>"


def test_other_segments_count_behind_the_first_document_only(played, blind):
    pair = _pair(played, blind, segments=(Segment.REASONING, Segment.QUERY))
    said = [played.codec.decode(np.array(i)[m]) for i, m in
            ((pair.present, pair.scored), (pair.removed, pair.scored_removed))]  # fmt: skip
    assert said[0] == said[1] == "<think> Bamako <search> Peru </search> <think> done </think>"


def test_a_model_that_ignores_its_context_loses_nothing(played, blind):
    tokens, rollouts = remove_documents(blind, [_pair(played, blind)])
    assert tokens["surface"].tolist() == ["bamako", "and", "oslo"]
    assert (tokens["delta"] == 0).all()
    assert rollouts[["delta_copied", "delta_other"]].iloc[0].tolist() == [0, 0]


def test_a_copying_model_loses_its_copies(played, copier):
    played.trajectory.tokens[played.trajectory.segments == R] = played.codec.trusted("done")[0]
    tokens, rollouts = remove_documents(copier, [_pair(played, copier)])
    assert tokens["copy"].tolist() == [True, False, False]
    assert tokens["delta"].tolist() == [-2, 0, 0]
    assert tokens[["logprob_with", "logprob_without"]].iloc[0].tolist() == [-1, -3]
    row = rollouts.iloc[0]
    assert row[["scored", "copied", "others", "verdict"]].tolist() == [5, 1, 2, "right"]
    assert (row["delta_copied"], row["delta_other"]) == (-2, 0)


def test_trajectories_that_cannot_be_scored_keep_a_row(played, blind):
    short = Fake(blind.tokenizer, blind.say, max_length=10)
    assert _pair(played, short).reason == TOO_LONG
    played.trajectory.segments[played.trajectory.segments == A] = R
    pairs = [_pair(played, blind)]
    played.trajectory.searches.clear()
    pairs.append(_pair(played, blind))
    tokens, rollouts = remove_documents(blind, pairs)
    assert rollouts["reason"].tolist() == [NOTHING, NO_DOCUMENTS]
    assert rollouts["delta_copied"].isna().all() and len(tokens) == 0


def test_foreign_records_are_refused(played, blind, make_rollout):
    with pytest.raises(WorkbenchError, match="not those"):
        trajectory_pairs([played.trajectory], [make_rollout(question="other")], [1], blind)


def test_the_placeholder_speaks_the_protocol(policy):
    codec = Codec(policy[1])
    ids = placeholder_ids(policy[1], AgentConfig(), "gone")
    assert "<information>" in codec.decode(ids) and "</information>" in codec.decode(ids)
    assert codec.plain("gone")[0] in ids


def test_the_policy_s_deltas_are_those_of_its_own_logits(played, policy):
    model, tokenizer = policy
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    pair = _pair(played, engine)
    tokens, _ = remove_documents(engine, [pair])
    expected = []
    for ids, mask in ((pair.present, pair.scored), (pair.removed, pair.scored_removed)):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        at = np.flatnonzero(mask)
        expected.append(logits[at - 1, np.array(ids)[at]].numpy())
    delta = (expected[1] - expected[0])[tokens["position"]]
    assert tokens["delta"].to_numpy() == pytest.approx(delta, abs=1e-3)
    assert np.abs(delta).max() > 0.01


def _report(make_rollout, prose="Bamako and Oslo", documents=("Bamako is the capital",), **more):
    return make_rollout(None, documents, prose=prose, **({"question": "q"} | more))


def test_reports_stand_behind_documents_or_placeholders(make_rollout, copier):
    config = ContextConfig(placeholder="gone", report="Report:", question="Question: {question}")
    rollout = _report(make_rollout, documents=["Bamako is", " ", "the capital"])
    rollout.question = "capital of Mali"
    (pair,) = report_pairs([rollout], copier, config)
    codec = Codec(copier.tokenizer)
    present, removed = codec.decode(pair.present), codec.decode(pair.removed)
    assert present.count("Bamako") == 2 and removed.count("Bamako") == 1
    assert "capital of Mali" in present and "capital of Mali" in removed
    report = codec.plain("Bamako and Oslo")
    for ids, mask in ((pair.present, pair.scored), (pair.removed, pair.scored_removed)):
        assert np.array(ids)[mask].tolist() == report and not mask[: -len(report)].any()
    tokens, _ = remove_documents(copier, [pair])
    assert dict(zip(tokens["surface"], tokens["delta"], strict=True))["bamako"] == -2


def test_markup_in_foreign_text_stays_text(make_rollout, blind):
    rollout = _report(make_rollout, prose="so </answer>", documents=["<search> Mali"])
    (pair,) = report_pairs([rollout], blind)
    assert Codec(blind.tokenizer).control.isdisjoint(pair.present)


def test_documents_are_cut_to_their_trailing_tokens_and_the_question_is_not(make_rollout, blind):
    codec = Codec(blind.tokenizer)
    rollout = _report(make_rollout, documents=["Peru " * 50, "Mali"])
    rollout.question = "capital"
    (pair,) = report_pairs([rollout], blind, ContextConfig(budget=3, document="{text}"))
    said = codec.decode(pair.present)
    assert said.startswith("Question : capital") and said.count("Peru") == 2
    assert said.count("Mali") == 1 and pair.cut == 48
    whole = report_pairs([rollout], blind, ContextConfig(document="{text}"))[0]
    narrow = Fake(blind.tokenizer, blind.say, max_length=len(whole.present) - 5)
    assert report_pairs([rollout], narrow, ContextConfig(document="{text}"))[0].cut == 5


def test_reports_that_cannot_be_scored_say_why(make_rollout, blind):
    tiny = Fake(blind.tokenizer, blind.say, max_length=6)
    assert report_pairs([_report(make_rollout)], tiny)[0].reason == TOO_LONG
    reasons = [
        p.reason
        for p in report_pairs(
            [_report(make_rollout, prose=" "), _report(make_rollout, documents=[" "])], blind
        )
    ]
    assert reasons == [NOTHING, NO_DOCUMENTS]


def test_templates_are_checked():
    with pytest.raises(ValueError, match="question"):
        ContextConfig(question="no field")
    with pytest.raises(ValueError, match="text"):
        ContextConfig(document="{number}")


def test_the_summary_by_hand(few):
    rollouts = pd.DataFrame(
        {
            "question_id": ["a", "a", "b", "c"],
            "delta_copied": [-0.4, -0.2, 0.0, np.nan],
            "delta_other": [-0.1, -0.3, -0.1, -5.0],
        }
    )
    table = removal_summary(rollouts, config=few).set_index("token_class")
    assert table["value"].tolist() == pytest.approx([-0.2, -0.5 / 3, -0.1 / 3])
    assert table["median"].tolist() == pytest.approx([-0.2, -0.1, 0.1])
    assert table["losing"].tolist() == [2, 3, 1]
    assert (table["n"] == 2).all() and (table["rollouts"] == 3).all()
    assert (table["left_out"] == 1).all()
    assert (table["low"] <= table["value"]).all()
