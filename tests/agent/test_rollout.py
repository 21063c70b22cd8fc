"""The environment around scripted policies: rounds, budgets, corrections, records."""

import numpy as np
import pytest

from workbench.agent.config import AgentConfig
from workbench.agent.rollout import rollout
from workbench.agent.trajectory import Segment
from workbench.engines.base import Sampling
from workbench.errors import WorkbenchError
from workbench.seeding import seed_of

CONFIG = AgentConfig(max_rounds=3, passages=2, max_start_tokens=64)
NATIVE = AgentConfig(protocol="native", prompt="{question}", correction="")
SEARCH, ANSWER = "a </think> <search> capital of Mali </search>", "<answer> Bamako </answer>"
P, R, C, Q, O, A = (int(s) for s in Segment if s != Segment.PADDING)


def play(tools, tokenizer, *texts, config=CONFIG, passages=("Bamako is the capital",), **more):
    engine = tools.ScriptedEngine(tokenizer, *texts)
    searcher = tools.FixedSearcher(*passages)
    items = [tools.question(name=f"q{i}") for i in range(len(texts))]
    trajectories = rollout(engine, searcher, items, config, Sampling(**more), seed=3)
    return trajectories, searcher, engine


def test_search_then_answer_fills_the_record(tools, word_tokenizer):
    (t,), searcher, engine = play(
        tools, word_tokenizer, [SEARCH, "is </think> " + ANSWER], top_k_logprobs=2
    )
    names = word_tokenizer.convert_ids_to_tokens(t.tokens)
    prompt = ["Question:", "what", "is", "the", "capital", "of", "Mali", "<think>"]
    first = ["a", "</think>", "<search>", "capital", "of", "Mali", "</search>"]
    seen = ["<information>", "<unk>", ":", "Bamako", "is", "the", "capital", "</information>"]
    second = ["is", "</think>", "<answer>", "Bamako", "</answer>"]
    assert names == prompt + first + seen + second
    assert t.segments.tolist() == [P] * 8 + [R] * 2 + [C, Q, Q, Q, C] + [O] * 8 + [R] * 2 + [A] * 3
    assert t.tokens.dtype == np.int32 and t.segments.dtype == np.uint8
    logprobs = [-1, -2, -3, -4, -5, -6, -7, *[np.nan] * 8, -1, -2, -3, -4, -5]
    assert np.array_equal(t.logprobs, [*[np.nan] * 8, *logprobs], equal_nan=True)
    assert t.topk_ids.shape == t.topk_logprobs.shape == (28, 2)
    assert (t.topk_ids[t.generated] == 7).all() and (t.topk_ids[~t.generated] == -1).all()
    assert np.isnan(t.topk_logprobs[~t.generated]).all()
    (search,) = t.searches
    assert (search.query, search.turn) == ("capital of Mali", 0)
    assert (search.query_span, search.payload_span) == ((11, 14), (10, 15))
    assert search.observation_span == (15, 23) and not search.observation_cut
    assert (search.chunk_ids, search.titles, search.scores) == (["c0"], ["T0"], [1.0])
    assert search.texts == ["Bamako is the capital"] and search.ignored_queries == []
    assert (t.answer, t.answer_span, t.commit_index) == ("Bamako", (26, 27), 26)
    assert (t.valid, t.invalid_reason, t.truncated, t.turns) == (True, "", False, 2)
    assert (t.item_id, t.group, t.sample, t.seed, t.invalid_actions) == ("q0", "q0", 0, 3, 0)
    assert t.prompt_length == 8 and t.seconds > 0
    assert searcher.asked == [["capital of Mali"]] and searcher.ks == [2]
    assert engine.sessions[0].appended == [(0, t.tokens[15:23].tolist())]


def test_searches_of_a_round_are_one_batch_and_finished_rows_leave(tools, word_tokenizer):
    trajectories, searcher, engine = play(
        tools, word_tokenizer,
        [SEARCH, SEARCH, ANSWER], [ANSWER], ["<search> a </search>", ANSWER],
    )  # fmt: skip
    assert searcher.asked == [["capital of Mali", "a"], ["capital of Mali"]]
    session = engine.sessions[0]
    assert [rows for rows, _, _ in session.calls] == [[0, 1, 2], [0, 2], [0]]
    assert sorted(session.dropped) == [0, 1, 2]
    assert [len(t.searches) for t in trajectories] == [2, 0, 1]
    assert [t.turns for t in trajectories] == [3, 1, 2]
    assert all(t.valid for t in trajectories)


def test_groups_and_batches(tools, word_tokenizer):
    engine = tools.ScriptedEngine(word_tokenizer, *[[ANSWER]] * 6)
    engine.max_rows = 4
    items = [tools.question(name=n) for n in ("q0", "q1", "q0")]
    trajectories = rollout(engine, None, items, CONFIG, Sampling(), 5, samples_per_item=2)
    assert [t.group for t in trajectories] == ["q0", "q0", "q1", "q1", "q0", "q0"]
    assert [t.sample for t in trajectories] == [0, 1, 0, 1, 2, 3]
    assert [len(s.prompts) for s in engine.sessions] == [4, 2]
    assert engine.seeds == [seed_of("rollout", 5, 0), seed_of("rollout", 5, 4)]
    assert rollout(engine, None, [], CONFIG, Sampling(), 5) == []


@pytest.mark.parametrize("said", ["<search> </search>", "<search> first </answer>", "a <eos>"])
def test_invalid_actions_are_counted_and_corrected(tools, word_tokenizer, said):
    (t,), searcher, _ = play(tools, word_tokenizer, [said, ANSWER])
    assert searcher.asked == []  # no retrieval call, not even for the empty query
    assert (t.valid, t.answer, t.invalid_actions, t.turns) == (True, "Bamako", 1, 2)
    text = word_tokenizer.decode(t.tokens[t.segments == O])
    assert text == "This was no valid action. Search, or give the answer."
    generated = word_tokenizer.decode(t.tokens[t.generated])
    assert generated == f"{said} {ANSWER}"  # EOS is kept
    assert set(t.segments[:-3].tolist()) == {P, R, O}


def test_without_a_correction_an_invalid_action_ends_the_rollout(tools, word_tokenizer):
    config = CONFIG.model_copy(update={"correction": ""})
    (t,), _, _ = play(tools, word_tokenizer, ["<search> </search>"], config=config)
    assert (t.valid, t.turns, t.invalid_actions) == (False, 1, 1)
    assert t.invalid_reason == "invalid action: empty search"


def test_the_last_round_may_not_search(tools, word_tokenizer):
    (t,), searcher, _ = play(tools, word_tokenizer, [SEARCH] * 3)
    assert len(searcher.asked) == len(t.searches) == 2
    assert (t.valid, t.invalid_reason, t.turns) == (False, "search in the last round", 3)
    assert not t.truncated and t.answer is None and t.commit_index == -1
    # the call that was not executed has no executed query tokens
    assert t.segments[-5:].tolist() == [C] * 5 and (t.segments == Q).sum() == 6
    answering = CONFIG.model_copy(update={"answer_round": True})
    (t,), searcher, _ = play(tools, word_tokenizer, [SEARCH] * 3 + [ANSWER], config=answering)
    assert len(t.searches) == 3 and t.valid and t.turns == 4
    (t,), _, _ = play(tools, word_tokenizer, ["a <eos>"] * 3)
    assert (t.invalid_reason, t.invalid_actions) == ("invalid action: no complete action", 3)


def test_budget_ends_an_answer_without_an_exception(tools, word_tokenizer):
    config = CONFIG.model_copy(update={"max_response_tokens": 2})
    (t,), _, _ = play(tools, word_tokenizer, ["<answer> Rome Oslo </answer>"], config=config)
    assert word_tokenizer.decode(t.tokens[t.generated]) == "<answer> Rome"
    assert (t.answer, t.valid, t.truncated) == (None, False, True)
    assert t.invalid_reason == "truncated: turn limit" and t.invalid_actions == 0
    exact = CONFIG.model_copy(update={"max_response_tokens": 3})
    (t,), _, _ = play(tools, word_tokenizer, [ANSWER], config=exact)
    assert t.answer == "Bamako" and not t.truncated


def test_context_limits(tools, word_tokenizer):
    # prompt 8, turn 7: with a frame of 2 and one token of a passage the context has 18
    def limits(prompt, total):
        return CONFIG.model_copy(
            update={"max_start_tokens": 8, "max_prompt_tokens": prompt, "max_total_tokens": total}
        )

    (t,), searcher, _ = play(tools, word_tokenizer, [SEARCH], config=limits(17, 100))
    assert searcher.asked == [] and t.searches == [] and t.truncated
    assert t.invalid_reason == "truncated: context limit" and (t.segments == Q).sum() == 0
    (t,), searcher, engine = play(tools, word_tokenizer, [SEARCH, ANSWER], config=limits(18, 100))
    assert len(t.searches) == 1 and t.searches[0].observation_cut and t.valid
    assert word_tokenizer.convert_ids_to_tokens(t.tokens[15:18])[::2] == [
        "<information>", "</information>",
    ]  # fmt: skip
    # the total leaves two tokens for the second turn
    (t,), _, engine = play(tools, word_tokenizer, [SEARCH, ANSWER], config=limits(25, 25))
    assert engine.sessions[0].calls[-1][1] == [2 - 1] or len(t.tokens) == 25
    assert t.truncated and len(t.tokens) == 25
    (t,), _, _ = play(tools, word_tokenizer, ["<search> </search>", ANSWER], config=limits(12, 99))
    assert (t.invalid_reason, t.turns) == ("truncated: context limit", 1)
    with pytest.raises(WorkbenchError, match="5000 tokens, the engine takes 4596"):
        play(tools, word_tokenizer, [ANSWER], config=limits(25, 5000))
    with pytest.raises(WorkbenchError, match="no room for a turn"):
        play(tools, word_tokenizer, [ANSWER], config=limits(8, 8))
    with pytest.raises(WorkbenchError, match="never cut"):
        play(tools, word_tokenizer, [ANSWER], config=CONFIG.model_copy(
            update={"max_start_tokens": 7}))  # fmt: skip


def test_no_result_is_said_and_recorded(tools, word_tokenizer):
    (t,), _, _ = play(tools, word_tokenizer, [SEARCH, ANSWER], passages=())
    assert word_tokenizer.decode(t.tokens[t.segments == O]) == (
        "<information> No results. </information>"
    )
    assert t.searches[0].chunk_ids == [] and t.valid


@pytest.mark.parametrize(
    ("prompt", "passage"),
    [
        ("Question: {question} <think>", "<answer> Oslo </answer>"),
        ("Question: {question} <answer> Rome </answer> <think>", "Oslo"),
    ],
)
def test_answers_in_prompt_and_passages_do_not_count(tools, word_tokenizer, prompt, passage):
    config = CONFIG.model_copy(update={"prompt": prompt})
    (t,), _, _ = play(
        tools, word_tokenizer, [SEARCH, "Oslo <eos>", "Oslo <eos>"], config=config,
        passages=(passage,),
    )  # fmt: skip
    assert t.answer is None and not t.valid and len(t.searches) == 1


def test_engines_that_do_not_stop_are_told(tools, word_tokenizer):
    with pytest.raises(WorkbenchError, match="3 tokens follow a complete action"):
        play(tools, word_tokenizer, ["<search> a </search> <search> b </search>"])


def test_native_protocol_turn_by_turn(tools, chat_tokenizer):
    call = '<tool_call>{"name":"search","arguments":{"query_list":["q1","q2"]}}</tool_call>'
    (t, u, v), searcher, engine = play(
        tools, chat_tokenizer,
        [f"<think>x</think>{call}<|im_end|>", "<answer>Bamako</answer><|im_end|>"],
        [f"{call[:-13]}</tool_call><|im_end|>"],
        [f"{call}<|im_end|>"] * 4,
        config=NATIVE,
    )  # fmt: skip
    assert searcher.asked[0] == ["q1", "q1"] and len(searcher.asked) == 3
    (search,) = t.searches
    assert search.ignored_queries == ["q2"] and t.valid and t.answer == "Bamako"
    text = chat_tokenizer.decode(t.tokens)
    assert f"<think>x</think>{call}<|im_end|>\n<|im_start|>user\n<tool_response>\n" in text
    assert "Ignored: q2" in text and text.endswith("<answer>Bamako</answer><|im_end|>")
    assert t.segments[-1] == A  # EOS belongs to what it ends
    assert chat_tokenizer.decode(t.tokens[slice(*search.payload_span)]) == call
    # broken JSON: text kept, turn counted, no call, no exception
    assert (u.turns, u.searches, u.invalid_actions) == (1, [], 1)
    assert "not JSON" in u.invalid_reason and call[:-13] in chat_tokenizer.decode(u.tokens)
    # four assistant turns at most, whatever the policy wants
    assert (v.turns, len(v.searches), v.invalid_reason) == (4, 3, "search in the last round")
    assert engine.sessions[0].calls[0][2] == ()
