"""Report demonstrations and the adapter: what is shown, what is learnt, what is kept."""

import json
import re

import pytest
import torch

from workbench.agent.report_config import ReportAgentConfig
from workbench.errors import WorkbenchError
from workbench.policy.config import PolicyConfig
from workbench.policy.report_policy import (
    ReportPolicyConfig,
    ReportTraining,
    add_marks,
    build_report_policy,
    load_report_policy,
    marks,
    report_demonstrator,
    save_report_policy,
)
from workbench.policy.store import COMMITTED, file_hash, load_policy
from workbench.seeding import generator

REPORT = ReportAgentConfig(
    passage="({rank}) {title}: {text}", separator=" ", page="{title}: {text}",
    max_observation_tokens=400, max_total_tokens=1700, max_prompt_tokens=1700, max_start_tokens=160,
    arms={
        "stock": "Question: {question} <think>",
        "entity_only": "Question: {question} Answer: <think>",
    },
)  # fmt: skip
BASE = file_hash(COMMITTED / "model.safetensors")


@pytest.fixture(scope="module")
def ready(world, agent):
    model, tokenizer = load_policy()
    add_marks(model, tokenizer, marks(REPORT))

    def build(**shares):
        recipe = ReportPolicyConfig().demonstrations.model_copy(update=shares)
        return report_demonstrator(
            tokenizer, world.pages, world.chunks, world.items, world.searcher, agent, REPORT,
            PolicyConfig(), recipe,
        )  # fmt: skip

    return tokenizer, build


def shown(tokenizer, d):
    return tokenizer.decode(d.tokens)


def test_a_report_answers_in_bold_and_cites_every_page_it_needs(ready, world):
    tokenizer, build = ready
    source = build(unsupported=0, entity_only=0, renamed=0, sloppy=0)
    source.config = source.config.model_copy(update={"swap_answer": 0, "swap_subject": 0})
    for item in [*source.reading[:8], *source.longer[1][:8]]:
        text = shown(tokenizer, source.report(item, generator("t", 0)))
        if item.question.split()[1] not in text:
            continue  # the retriever missed this one and another was drawn
        bold = re.search(r"\*\* (.+?) \*\*", text)[1]
        names = tokenizer.decode(tokenizer.encode(item.answers[0]))
        assert bold == names
        cited = set(re.findall(r"\[ ([^\]]+) \]", text.split("<answer>")[1]))
        pages = {fact for n in item.nodes for fact in n.fact_id.split("&")}
        assert cited == {world.facts[f].title for f in pages}
        assert text.endswith("</answer> Confidence: 90 <eos>")


def test_an_unsupported_report_teaches_nothing_but_doubt(ready):
    tokenizer, build = ready
    source = build(unsupported=1, entity_only=0, renamed=0)
    unsure = 0
    for step in range(30):
        d = source.draw(generator("t", step))
        text = shown(tokenizer, d)
        if not text.endswith("Confidence: 10 <eos>"):
            continue  # the poor query found the passage after all
        unsure += 1
        answer = d.tokens.tolist().index(tokenizer.convert_tokens_to_ids("<answer>"))
        assert d.mask[answer:].sum() == 2 and d.mask[-2:].all()  # the number and the end
    assert unsure > 5


def test_pages_are_opened_by_the_tag_and_never_learnt(ready):
    tokenizer, build = ready
    source = build(unsupported=0, sloppy=1, opened=1, renamed=0)
    tag = tokenizer.convert_tokens_to_ids("<get_doc>")
    end = tokenizer.convert_tokens_to_ids("</information>")
    opened = 0
    for step in range(60):
        d = source.draw(generator("t", step))
        ids = d.tokens.tolist()
        if tag not in ids:
            continue
        opened += 1
        at = ids.index(tag)
        begin = ids.index(tokenizer.convert_tokens_to_ids("<information>"), at)
        assert d.mask[at:begin].all() and not d.mask[begin : ids.index(end, begin) + 1].any()
    assert opened > 3


def test_the_entity_only_prompt_gets_the_entity_alone(ready):
    tokenizer, build = ready
    source = build(entity_only=1, unsupported=0)
    text = shown(tokenizer, source.draw(generator("t", 1)))
    assert "Answer :" in text and "**" not in text and "# Evidence" not in text


def test_marks_are_added_once_and_old_rows_stay(world):
    model, tokenizer = load_policy()
    before = model.get_input_embeddings().weight.detach().clone()
    new = add_marks(model, tokenizer, marks(REPORT))
    after = model.get_input_embeddings().weight.detach()
    assert len(new) == 5 and torch.equal(after[: len(before)], before)
    assert add_marks(model, tokenizer, marks(REPORT)) == []
    again, other = load_policy()
    add_marks(again, other, marks(REPORT))
    assert torch.equal(again.get_input_embeddings().weight, after)


def test_the_adapter_is_kept_and_merged_exactly(world, agent, tmp_path):
    config = ReportPolicyConfig(training=ReportTraining(steps=2, tokens_per_step=600))
    losses = []
    wrapped, tokenizer, _ = build_report_policy(
        world.pages, world.chunks, world.items, world.searcher, agent, REPORT, PolicyConfig(),
        config, lambda progress: losses.append(progress.loss),
    )  # fmt: skip
    assert len(losses) == 2
    save_report_policy(tmp_path / "r", wrapped, marks(REPORT), BASE, {"steps": 2})
    ids = torch.tensor([tokenizer.encode("Question: What is the capital of Mali? ** # Evidence")])
    with torch.no_grad():
        expected = wrapped.eval()(input_ids=ids).logits
    model, loaded = load_report_policy(tmp_path / "r", COMMITTED)
    with torch.no_grad():
        found = model(input_ids=ids).logits
        base, _ = load_policy()
        old = base(input_ids=ids[:, :6]).logits
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert torch.allclose(found, expected, atol=1e-4)
    assert not torch.allclose(found[:, :6, : old.shape[-1]], old, atol=1e-3)
    size = (tmp_path / "r" / "adapter_model.safetensors").stat().st_size
    assert size < 1.5e6


def test_another_base_or_broken_weights_are_refused(world, agent, tmp_path):
    with pytest.raises(WorkbenchError, match="no report policy here"):
        load_report_policy(tmp_path, COMMITTED)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"x")
    manifest = {"weights_sha256": "0" * 64, "base_sha256": BASE, "marks": []}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(WorkbenchError, match="the manifest says"):
        load_report_policy(tmp_path, COMMITTED)
    manifest["weights_sha256"] = file_hash(tmp_path / "adapter_model.safetensors")
    manifest["base_sha256"] = "1" * 64
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(WorkbenchError, match="another base policy"):
        load_report_policy(tmp_path, COMMITTED)
