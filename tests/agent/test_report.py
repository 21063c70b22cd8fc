"""The report agent: two tools, a report, budgets that force it once, a stated confidence."""

import numpy as np
import pytest
from pydantic import ValidationError

from workbench.agent.protocols.report import ReportProtocol
from workbench.agent.report_config import ReportAgentConfig
from workbench.agent.report_rollout import CALL_AFTER_FORCE, report_rollout
from workbench.agent.rollout import TURN_LIMIT
from workbench.agent.storage import load_trajectories, save_trajectories
from workbench.agent.trajectory import Segment
from workbench.corpus.records import Chunk
from workbench.errors import WorkbenchError
from workbench.retrieval.pages import PageStore

PAGES = PageStore(
    [
        Chunk("ml-0", "ml", "Mali", "Capital: Bamako", ()),
        Chunk("it-0", "it", "Italy", "Capital: Rome", ()),
        Chunk("ml-1", "ml", "Mali", "River: Niger", ()),
    ]
)
SEARCH, OPEN = "<search>capital of Mali</search>", "<get_doc> mali </get_doc>"
REPORT = "</think><answer>**Bamako** found in [Mali]</answer>"
CONFIG = ReportAgentConfig(max_total_tokens=1200, max_prompt_tokens=1200, max_start_tokens=200)


def play(tools, tokenizer, *texts, said=("90<eos>",) * 9, **changes):
    engine = tools.ScriptedEngine(tokenizer, *texts, *[[text] for text in said])
    searcher = tools.FixedSearcher("Bamako is the capital")
    items = [tools.question(name=f"q{i}") for i in range(len(texts))]
    config = CONFIG.model_copy(update=changes)
    return report_rollout(engine, searcher, PAGES, items, config, 3, 1), engine, searcher


def text_of(tokenizer, trajectory, start, end):
    return tokenizer.decode(trajectory.tokens[start:end])


def test_a_search_a_page_and_a_report_become_one_record(tools, bpe_tokenizer, tmp_path):
    (found,), engine, searcher = play(tools, bpe_tokenizer, [SEARCH, OPEN, REPORT])
    t = found.trajectory
    assert (t.valid, t.answer, found.forced) == (True, "**Bamako** found in [Mali]", False)
    search, page = t.searches
    assert (search.tool, search.query, search.texts) == (
        "search", "capital of Mali", ["Bamako is the capital"],
    )  # fmt: skip
    assert (page.tool, page.query, page.chunk_ids) == ("get_doc", "mali", ["ml"])
    assert page.texts == ["Capital: Bamako\nRiver: Niger"] and page.turn == 1
    shown = text_of(bpe_tokenizer, t, *page.observation_span)
    assert shown == "<information> Mali : Capital: Bamako\nRiver: Niger </information>"
    assert text_of(bpe_tokenizer, t, *page.query_span).strip() == "mali"
    assert (t.segments[slice(*page.query_span)] == Segment.QUERY).all()
    assert (t.segments[slice(*t.answer_span)] == Segment.ANSWER).all()
    assert searcher.asked == [["capital of Mali"]]
    assert t.topk_ids.shape[1] == CONFIG.top_k_logprobs
    (kept,) = load_trajectories(save_trajectories(tmp_path / "t.parquet", [t]))
    assert [s.tool for s in kept.searches] == ["search", "get_doc"]


def test_confidence_is_asked_once_greedily_behind_the_report(tools, bpe_tokenizer):
    found, engine, _ = play(
        tools, bpe_tokenizer, [REPORT], ["<answer></answer>"] * 3 + [SEARCH] * 300, said=["90<eos>"]
    )
    assert [r.confidence_text for r in found] == ["90", ""]
    prompt = engine.sessions[1].prompts
    assert len(engine.sessions) == 2 and len(prompt) == 1
    end = bpe_tokenizer.decode(prompt[0])
    assert end.endswith("[Mali]</answer>Confidence:")
    assert engine.sessions[1].calls[0][1] == [CONFIG.confidence_tokens]


@pytest.mark.parametrize("budget", ["max_tool_calls", "max_output_tokens", "final_share"])
def test_each_budget_forces_the_report_once(tools, bpe_tokenizer, budget):
    calls = 2
    texts = [SEARCH] * calls + [REPORT]
    (free,), _, _ = play(tools, bpe_tokenizer, texts)
    second = free.trajectory.searches[1]
    said = int(free.trajectory.generated[: second.payload_span[1]].sum())
    limits = {  # each is first reached by the second search
        "max_tool_calls": 2,
        "max_output_tokens": said,
        "final_share": (second.observation_span[1] - 1) / CONFIG.max_total_tokens,
    }
    (found,), _, _ = play(tools, bpe_tokenizer, texts, **{budget: limits[budget]})
    t = found.trajectory
    assert not free.forced and found.forced and t.valid and len(t.searches) == calls
    assert bpe_tokenizer.decode(t.tokens).count(CONFIG.force_final) == 1
    assert found.trajectory.turns == calls + 1


def test_a_call_after_the_forced_answer_ends_the_rollout(tools, bpe_tokenizer):
    (found,), _, searcher = play(tools, bpe_tokenizer, [SEARCH, SEARCH], max_tool_calls=1)
    t = found.trajectory
    assert (t.valid, t.invalid_reason, t.answer) == (False, CALL_AFTER_FORCE, None)
    assert len(searcher.asked) == 1 and found.confidence_text == ""


def test_a_turn_without_end_is_forced_and_then_cut(tools, bpe_tokenizer):
    endless = "the river Niger in Mali " * 60
    (found,), _, _ = play(tools, bpe_tokenizer, [endless, endless], max_response_tokens=50)
    t = found.trajectory
    assert (found.forced, t.valid, t.truncated, t.invalid_reason) == (True, False, True, TURN_LIMIT)
    assert t.turns == 2 and int(t.generated.sum()) == 100


def test_no_rollout_outgrows_its_window(tools, bpe_tokenizer):
    for total in range(230, 520, 7):
        (found,), engine, _ = play(
            tools, bpe_tokenizer, [SEARCH, OPEN, SEARCH, OPEN, SEARCH, REPORT, REPORT, REPORT],
            max_total_tokens=total,
        )  # fmt: skip
        assert len(found.trajectory.tokens) <= total
        appended = sum(len(ids) for _, ids in engine.sessions[0].appended)
        assert appended == int((found.trajectory.segments == Segment.OBSERVATION).sum())


def test_an_unknown_page_is_said_to_be_none(tools, bpe_tokenizer):
    (found,), _, _ = play(tools, bpe_tokenizer, ["<get_doc>Atlantis</get_doc>", REPORT])
    (page,) = found.trajectory.searches
    assert page.texts == [] and page.tool == "get_doc"
    shown = text_of(bpe_tokenizer, found.trajectory, *page.observation_span)
    assert shown == "<information> No results. </information>"


def test_an_invalid_turn_is_corrected(tools, bpe_tokenizer):
    (found,), _, _ = play(tools, bpe_tokenizer, ["<get_doc></get_doc>", REPORT])
    t = found.trajectory
    assert (t.invalid_actions, t.valid) == (1, True)
    assert np.isnan(t.logprobs[~t.generated]).all()


def test_pages_open_by_id_or_by_an_unambiguous_title():
    assert PAGES.open(" ml ").chunk.text == "Capital: Bamako\nRiver: Niger"
    assert PAGES.open("  ITALY ").chunk.page_id == "it" and PAGES.open("Oslo") is None
    twice = PageStore([Chunk("a-0", "a", "X", "1", ()), Chunk("b-0", "b", "X", "2", ())])
    assert twice.open("X") is None and twice.open("b").chunk.text == "2"
    assert len(twice) == 2


def test_a_page_is_cut_to_its_limit(bpe_tokenizer):
    protocol = ReportProtocol(bpe_tokenizer, CONFIG)
    whole = protocol.page(PAGES.open("ml"), 400)
    cut = protocol.page(PAGES.open("ml"), protocol.overhead + 3)
    assert (whole.cut, cut.cut, len(cut.ids)) == (False, True, protocol.overhead + 3)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"arms": {"grounding": "{question}"}}, "stock"),
        ({"arms": {"stock": "no field"}}, "exactly once"),
        ({"open_tag": "search"}, "must differ"),
        ({"protocol": "native"}, "protocol must be 'tag'"),
        ({"page": "{rank}"}, "only"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        ReportAgentConfig(**changes)


def test_an_engine_that_is_too_short_is_named(tools, bpe_tokenizer):
    with pytest.raises(WorkbenchError, match="the engine takes 4596"):
        play(tools, bpe_tokenizer, [REPORT], max_total_tokens=5000)
