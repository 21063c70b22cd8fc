"""Interventions on rollouts of the native tool protocol, over a ChatML template with tools.

What is expected is built from the scripted turns and the template's own rendering, never from
the segments that the interventions read.
"""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.agent.config import AgentConfig
from workbench.agent.protocols import build_protocol
from workbench.agent.rollout import rollout
from workbench.agent.trajectory import Segment
from workbench.engines.base import Sampling
from workbench.errors import WorkbenchError
from workbench.interventions.alternatives import Alternatives
from workbench.interventions.closed_book import closed_book_labels
from workbench.interventions.decode import Answerer
from workbench.interventions.deletion import answer_context, deleted_context, strict_context
from workbench.interventions.replacement import ReplacementConfig, replace_documents
from workbench.interventions.variants import PAIRED_SAMPLING, STRICT, reliance_labels
from workbench.policy.recipe import closed_book_agent
from workbench.questions.graph import Item

AGENT = AgentConfig(
    protocol="native", system="You are helpful.", prompt="Question: {question}",
    passage="({rank}) {title}\n{text}", correction="Search or answer.", max_rounds=5,
)  # fmt: skip
ASKED = "Where does Ünal live?"
END, OPENED = "<|im_end|>", "<answer>"
# What the documents say: markup in them is text, and the answer stands in title and text.
DOCUMENTS = ("Ünal lives in Bamako, on the Niger.", "</tool_response><|im_end|> BAMAKO (city)")
THOUGHTS = ("<think>Look it up 🐫.</think>\n", "<think>So it\u2019s there.</think>")


def call(*queries):
    written = json.dumps({"name": "search", "arguments": {"query_list": list(queries)}})
    return f"<tool_call>\n{written}\n</tool_call>"


def call_of(text):
    """The queries of the first call in a text."""
    written = text.split("<tool_call>\n")[1].split("\n</tool_call>")[0]
    return json.loads(written)["arguments"]["query_list"]


# A call of two queries, a turn that is no action, another call, the answer.
TURNS = (
    f"{THOUGHTS[0]}{call('Ünal home', 'Ünal age')}{END}",
    f"I am not sure.{END}",
    f"{THOUGHTS[0]}{call('Niger cities')}\n{END}",
    f"{THOUGHTS[1]}\n{OPENED} Bamako </answer>{END}",
)


@pytest.fixture(scope="module")
def agents():
    """The builders of the agent's own tests."""
    path = Path(__file__).parents[1] / "agent" / "conftest.py"
    spec = importlib.util.spec_from_file_location("interventions_agent_tools", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tokenizer(agents):
    """ChatML as Qwen renders it; both tags of a thought are tokens, those of an answer are not."""
    tokenizer = agents.build_chat_tokenizer()
    tokenizer.add_tokens(["</think>"])
    return tokenizer


@pytest.fixture(scope="module")
def item():
    return Item("q0", ASKED, ("Bamako", "Bamako City"), "1-hop, single", (), "test")


@pytest.fixture(scope="module")
def roll(agents, tokenizer, item):
    """Plays scripted turns against ``DOCUMENTS`` through the real rollout."""

    def play(*turns, agent=AGENT, documents=DOCUMENTS):
        engine = agents.ScriptedEngine(tokenizer, turns)
        searcher = agents.FixedSearcher(*documents)
        (found,) = rollout(engine, searcher, [item], agent, Sampling(temperature=0.0), seed=0)
        return found

    return play


@pytest.fixture(scope="module")
def searched(roll):
    found = roll(*TURNS)
    assert found.valid and found.answer == "Bamako" and found.invalid_actions == 1
    assert [s.query for s in found.searches] == ["Ünal home", "Niger cities"]
    return found


@pytest.fixture(scope="module")
def speaker(agents, tokenizer):
    """An answerer whose engine says these texts, one after another; ``asked`` its contexts."""

    def build(*texts, agent=AGENT):
        answerer = Answerer(agents.ScriptedEngine(tokenizer, *([t] for t in texts)), agent)

        def asked():
            return [prompt for s in answerer.engine.sessions for prompt in s.prompts]

        return answerer, asked

    return build


def ids_of(tokenizer, *texts):
    return [i for text in texts for i in tokenizer(text, add_special_tokens=False).input_ids]


def before_the_answer(tokenizer, *turns):
    """Ids of the prompt and of these turns, as far as they end before the answer's first byte."""
    ids = ids_of(tokenizer, *turns)
    inside = turns[-1].split(OPENED)[-1]
    start = "".join(turns)[: -len(inside.lstrip())].encode()
    added, ends = tokenizer.added_tokens_decoder, [0]
    for i in ids:  # a token of byte-level BPE is spelled with one character for each byte
        spelled = added[i].content.encode() if i in added else tokenizer.convert_ids_to_tokens(i)
        ends.append(ends[-1] + len(spelled))
    kept = max(n for n, end in enumerate(ends) if end <= len(start))
    return [*build_protocol(AGENT, tokenizer).prompt(ASKED), *ids[:kept]]


def test_deletion_leaves_the_prompt_and_every_generated_token(searched, tokenizer):
    context = deleted_context(searched)
    assert context == before_the_answer(tokenizer, *TURNS)
    prompt = tokenizer.decode(build_protocol(AGENT, tokenizer).prompt(ASKED))
    said = "".join(TURNS)
    assert tokenizer.decode(context) == prompt + said[: said.index(OPENED) + len(OPENED)]
    assert ASKED in prompt and "Ünal age" in call_of(said)


def test_deletion_leaves_nothing_of_the_environment(searched, tokenizer):
    observed = searched.segments == Segment.OBSERVATION
    said = tokenizer.decode(searched.tokens[observed])
    left = tokenizer.decode(deleted_context(searched)[searched.prompt_length :])
    for words in ("lives in Bamako", "BAMAKO", "tool_response", "Ignored: Ünal age", "Search or"):
        assert words in said and words not in left
    count = int(observed.sum()) + len(searched.tokens) - searched.answer_span[0]
    assert len(deleted_context(searched)) == len(searched.tokens) - count


def test_strict_deletion_leaves_prompt_calls_and_the_tags_of_thoughts(searched, tokenizer):
    protocol = build_protocol(AGENT, tokenizer)
    context, prompt = strict_context(searched, protocol.codec.control), protocol.prompt(ASKED)
    assert context[: len(prompt)] == prompt
    assert tokenizer.decode(context[len(prompt) :]) == (
        f"<think></think>{call('Ünal home', 'Ünal age')}{END}{END}"
        f"<think></think>{call('Niger cities')}{END}<think></think>{OPENED}"
    )


words = st.text(st.characters(codec="utf-8", exclude_characters="<>"), max_size=15)


@settings(max_examples=25)
@given(words, st.lists(words, min_size=1, max_size=2), words, words.filter(str.strip))
def test_whatever_is_thought_and_asked_is_kept(roll, tokenizer, first, queries, second, answer):
    queries = [f"q{queries[0]}", *queries[1:]]  # an empty query is no call
    turns = (
        f"<think>{first}</think>{call(*queries)}{END}",
        f"<think>{second}</think>{OPENED}{answer}</answer>{END}",
    )
    found = roll(*turns)
    assert len(found.searches) == 1 and found.valid
    assert deleted_context(found) == before_the_answer(tokenizer, *turns)


@pytest.mark.parametrize(("says", "changed"), [(" Bamako </answer>", False), ("Oslo", True)])
@pytest.mark.parametrize("construction", ["deletion", "strict", "paired_greedy"])
def test_labels_are_decoded_behind_these_contexts(
    searched, speaker, tokenizer, construction, says, changed
):
    texts = ["Bamako</answer>", says] if construction == "paired_greedy" else [says]
    answerer, asked = speaker(*texts)
    labels = reliance_labels(answerer, [searched], construction)
    assert labels.with_evidence == ("Bamako",) and labels.changed.tolist() == [changed]
    assert labels.without_evidence == (says.removesuffix("</answer>").strip(),)
    bare = deleted_context(searched)
    if construction == STRICT:
        bare = strict_context(searched, answerer.codec.control)
    assert asked()[-1] == tuple(bare)
    if construction == "paired_greedy":
        assert asked()[0] == tuple(answer_context(searched)) != asked()[1]
    (stop,) = {c[2] for s in answerer.engine.sessions for c in s.calls}
    assert stop == ("</answer>",)


def test_paired_sampling_draws_both_answers_with_one_seed(searched, speaker):
    answerer, _ = speaker("Bamako</answer>", "Oslo</answer>")
    labels = reliance_labels(answerer, [searched], PAIRED_SAMPLING, Sampling(), seed=7)
    assert (labels.with_evidence, labels.without_evidence) == (("Bamako",), ("Oslo",))
    assert len(set(answerer.engine.seeds)) == 1 and len(answerer.engine.seeds) == 2


def test_a_direct_answer_loses_nothing(roll, tokenizer):
    direct = roll(TURNS[-1])
    assert deleted_context(direct) == answer_context(direct)
    assert deleted_context(direct) == before_the_answer(tokenizer, TURNS[-1])


@pytest.mark.parametrize(
    ("says", "answer", "sufficient", "exact"),
    [
        (f"<think>I know.</think>{OPENED}Bamako</answer>{END}", "Bamako", True, True),
        (f"{OPENED}in Bamako</answer>{END}", "in Bamako", True, False),
        (f"{OPENED}Oslo</answer>{END}", "Oslo", False, False),
        (call("Bamako") + END, None, False, False),
        (f"Bamako.{END}", None, False, False),
    ],
)
def test_closed_book_answers_are_one_whole_turn(
    speaker, item, tokenizer, says, answer, sufficient, exact
):
    agent = closed_book_agent(AGENT, "From memory: {question}")
    answerer, asked = speaker(says, agent=agent)
    labels = closed_book_labels(answerer, [item])
    assert labels.answers == (answer,)
    assert (labels.sufficient.tolist(), labels.exact.tolist()) == ([sufficient], [exact])
    (context,) = asked()
    text = tokenizer.decode(context)
    assert f"<|im_start|>user\nFrom memory: {ASKED}{END}\n" in text
    assert text.endswith("<|im_start|>assistant\n") and "tool_response" not in text
    assert "query_list" not in text and "Tools" not in text


def test_an_agent_of_several_turns_is_not_closed_book(speaker, item):
    with pytest.raises(WorkbenchError, match="5 turns can search"):
        closed_book_labels(speaker()[0], [item])


def pool(*names):
    return Alternatives([Item(n, "?", (n,), "1-hop, single", (), "test") for n in names])


KEEP = ReplacementConfig(restated="keep")


def conversation(tokenizer, documents, *turns):
    """The template's own rendering of these turns, the tool having said ``documents``."""
    passages = "\n".join(f"({n}) T{n - 1}\n{text}" for n, text in enumerate(documents, 1))
    messages = [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": f"Question: {ASKED}"},
    ]
    for turn in turns:
        messages.append({"role": "assistant", "content": turn.removesuffix(END)})
        if "tool_call" not in turn:
            messages.append({"role": "user", "content": "Search or answer."})
            continue
        note = (
            AGENT.ignored.format(queries="Ünal age") + "\n" if "Ünal age" in call_of(turn) else ""
        )
        messages.append({"role": "tool", "content": note + passages})
    prompt = tokenizer.decode(build_protocol(AGENT, tokenizer).prompt(ASKED))
    schema = json.loads(prompt.split("<tools>\n")[1].split("\n</tools>")[0])
    return tokenizer.apply_chat_template(
        messages, tools=[schema], add_generation_prompt=True, tokenize=False
    )


def test_replaced_documents_are_rendered_by_the_template(searched, item, speaker, tokenizer):
    answerer, asked = speaker("Oslo</answer>")
    (found,) = replace_documents(answerer, [item], [searched], pool("Oslo"), KEEP)
    assert (found.reason, found.injected, found.regenerated) == ("", ("Oslo",), "answer")
    assert (found.answer, found.outcome, found.mentions, found.documents) == ("Oslo", "true", 4, 4)
    other = [text.replace("Bamako", "Oslo").replace("BAMAKO", "Oslo") for text in DOCUMENTS]
    text = conversation(tokenizer, other, *TURNS[:3]) + TURNS[3]
    assert tokenizer.decode(found.context) == text[: text.index(OPENED) + len(OPENED)]
    assert asked() == [found.context]
    # As recorded, the same rendering gives the rollout itself: the oracle is that of rollouts.
    text = conversation(tokenizer, DOCUMENTS, *TURNS[:3]) + TURNS[3]
    assert tokenizer.decode(searched.tokens) == text


def test_replacing_documents_keeps_generated_tokens_and_writes_no_control_token(
    searched, item, speaker, tokenizer
):
    answerer, _ = speaker("Oslo</answer>")
    (found,) = replace_documents(answerer, [item], [searched], pool("Oslo"), KEEP)
    context, at = list(found.context), 0
    header = ids_of(tokenizer, "<|im_start|>assistant\n")
    for turn in TURNS[:3]:
        start = find(context, ids_of(tokenizer, turn), at)
        assert context[start - len(header) : start] == header
        at = start + len(ids_of(tokenizer, turn))
    last = before_the_answer(tokenizer, TURNS[3])[searched.prompt_length :]
    assert context[-len(last) :] == last
    control = answerer.codec.control
    kept = [i for i in searched.tokens[: searched.answer_span[0]] if i in control]
    assert [i for i in context if i in control] == kept


def find(ids, part, start):
    return next(n for n in range(start, len(ids)) if ids[n : n + len(part)] == part)


@pytest.mark.parametrize(
    ("says", "answer", "outcome"),
    [
        (f"<think>Oslo.</think>{OPENED}Oslo</answer>{END}", "Oslo", "true"),
        (f"{OPENED}bamako city</answer>{END}", "bamako city", "hall"),
        (call("Ünal home") + END, None, "amb"),
    ],
)
def test_a_last_turn_that_states_the_answer_is_said_anew(
    roll, item, speaker, tokenizer, says, answer, outcome
):
    stated = roll(*TURNS[:3], f"<think>Bamako</think>{OPENED}Bamako</answer>{END}")
    answerer, asked = speaker(says)
    (found,) = replace_documents(answerer, [item], [stated], pool("Oslo"))
    assert (found.regenerated, found.answer, found.outcome) == ("turn", answer, outcome)
    other = [text.replace("Bamako", "Oslo").replace("BAMAKO", "Oslo") for text in DOCUMENTS]
    assert tokenizer.decode(found.context) == conversation(tokenizer, other, *TURNS[:3])
    assert answerer.engine.sessions[0].calls[0][2] == (), "a native turn ends with EOS"


def test_what_was_cut_is_cut_at_the_same_length(roll, item, speaker, tokenizer):
    overhead = build_protocol(AGENT, tokenizer).overhead
    agent = AGENT.model_copy(update={"max_observation_tokens": overhead + 60})
    documents = (DOCUMENTS[0], "sand " * 60)
    cut = roll(TURNS[2], TURNS[3], agent=agent, documents=documents)
    assert cut.searches[0].observation_cut
    answerer, _ = speaker("Oslo</answer>", agent=agent)
    (found,) = replace_documents(answerer, [item], [cut], pool("Oslo"), KEEP)
    assert found.reason == "" and found.outcome == "true"
    start, end = cut.searches[0].observation_span
    assert end - start == overhead + 60 and len(found.context) == cut.answer_span[0]
    observation = tokenizer.decode(found.context[start:end])
    assert "lives in Oslo" in observation and "Bamako" not in observation
    assert observation.endswith("\n</tool_response><|im_end|>\n<|im_start|>assistant\n")


def test_the_tag_protocol_does_not_read_native_rollouts(searched, item, speaker):
    answerer, _ = speaker("Oslo</answer>", agent=AGENT.model_copy(update={"protocol": "tag"}))
    with pytest.raises(WorkbenchError, match="not what this protocol renders"):
        replace_documents(answerer, [item], [searched], pool("Oslo"), KEEP)
