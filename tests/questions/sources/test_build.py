"""End to end on files in the true formats: ten categories, soundness, resuming, bad input."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from workbench.corpus.store import load_corpus
from workbench.errors import WorkbenchError
from workbench.questions.categories import BALANCED, CATEGORIES, category_of
from workbench.questions.checks import refusal
from workbench.questions.grounding import meets
from workbench.questions.sources.build import build
from workbench.questions.sources.descriptions import mentions
from workbench.questions.sources.settings import DescriptionConfig
from workbench.questions.store import load_items

FILES = ("items.jsonl", "chunks.parquet", "report.json", "refused.jsonl")


@pytest.fixture(scope="module")
def items(built):
    return load_items(built[0] / "items.jsonl")


@pytest.fixture(scope="module")
def corpus(built):
    return load_corpus(built[0] / "chunks.parquet")


def test_all_ten_categories_in_the_numbers_wanted(built, items, config):
    _, report = built
    counts = Counter((i.split, i.category) for i in items)
    short = {(s["split"], s["category"]): s["found"] for s in report["short"]
             if s["evidence"] == "any chunks"}  # fmt: skip
    for split, wanted in config.counts.items():
        for category in CATEGORIES:
            assert counts[split, category] == short.get((split, category), wanted[category])
            assert counts[split, category] > 0
    assert report["questions"]["test"] == dict.fromkeys(sorted(CATEGORIES), 2)


def test_every_graph_is_sound_and_of_its_category(items):
    for item in items:
        assert refusal(item) is None
        assert category_of(item.nodes) == item.category
        assert item.question.startswith("What is the name of the ") and "[" not in item.question
        assert item.nodes[-1].answers == item.answers
    assert len({i.question for i in items}) == len(items)


def test_facts_lead_from_the_roots_to_the_answer(items, world):
    """Follow each node's facts through the world itself: one entity fits, and it is the answer."""
    for item in items:
        found: dict[str, int] = {}
        for node in item.nodes:
            reached = []
            for place, fact in enumerate(node.fact_id.split("&")):
                s, p, o = (int(part[1:]) for part in fact.split("-"))
                if node.prerequisites:
                    assert found[node.prerequisites[min(place, len(node.prerequisites) - 1)]] == s
                else:
                    assert f"Q{s}" in item.meta["roots"]
                objects = {b for a, q, b in world.facts if (a, q) == (s, p)}
                assert o in objects and (len(objects) == 1) != ("&" in node.fact_id)
                reached.append(objects)
            assert set.intersection(*reached) == {o}
            found[node.node_id] = o
            assert world.names[o] in node.answers
        met = [*found.values(), *(int(root[1:]) for root in item.meta["roots"])]
        assert len(set(met)) == len(met)  # nothing is found twice, and no root is found


def test_mentions_name_the_answer_and_start_in_a_chunk(items, corpus, world):
    pages = {str(world.page_id(q)): world.record(q)["text"] for q in world.kind}
    for item in items:
        for node in item.nodes:
            for evidence in node.evidence:
                text = pages[evidence.page_id][evidence.paragraph]
                assert {text[a:b] for a, b in evidence.mentions} <= set(node.answers)
                assert any(meets(c, evidence) for c in corpus.chunks)


def test_roots_are_described_and_no_name_of_the_graph_is_in_the_question(items, world):
    for item in items:
        for node in item.nodes:
            assert not mentions(item.question, node.answers)
        for root, phrase in item.meta["roots"].items():
            assert phrase in item.question
            assert not mentions(item.question, [world.names[int(root[1:])]])


def test_chunks_are_those_of_app_b(corpus, world):
    assert {c.page_id for c in corpus.chunks} >= {str(world.page_id(q)) for q in world.kind}
    assert max(len(c.text.split()) for c in corpus.chunks) == 100
    assert any(c.text.startswith("Section::::") or "\nSection::::" in c.text for c in corpus.chunks)
    assert any("BULLET::::- " in c.text for c in corpus.chunks)


def test_halves_of_the_first_categories(built, items, corpus):
    first = {c.page_id: c for c in reversed(corpus.chunks)}
    short = {(s["split"], s["category"]) for s in built[1]["short"]}
    for split, number in (("train", 2), ("test", 1)):
        for category in BALANCED:
            own = [i for i in items if (i.split, i.category) == (split, category)]
            early = [
                i for i in own
                if all(meets(first[e.page_id], e) for n in i.nodes for e in n.evidence)
            ]  # fmt: skip
            assert (split, category) in short or len(early) == number


def test_the_report_counts_what_is_told_by_id(built):
    out, report = built
    told = [json.loads(line) for line in (out / "refused.jsonl").open()]
    graphs = Counter(t["reason"] for t in told if t["stage"] == "graphs")
    assert graphs == report["excluded"] and graphs["graph shortcut"] > 0
    assert all(t["record"] for t in told if t["stage"] == "graphs")
    assert report["grounded"] == 351 and len(told) == graphs.total()
    assert report["pages_with_entity"] == 116 and report["entities_missing_in_dump"] == 0
    for category, number in report["eligible"].items():
        assert number <= report["pool"][category]


def test_the_same_bytes_from_plain_files_and_other_shards(built, world, write, config, tmp_path):
    kilt = write(tmp_path / "kilt.json", world.kilt_lines())
    dump = write(tmp_path / "truthy.nt", world.dump_lines())
    other = config.model_copy(update={"shard_lines": 7, "dump_shard_lines": 31})
    build(kilt, dump, tmp_path / "out", other)
    items = (tmp_path / "out" / "items.jsonl").read_bytes()
    assert items == (built[0] / "items.jsonl").read_bytes()
    chunks = load_corpus(tmp_path / "out" / "chunks.parquet")
    assert chunks.sha256 == built[1]["chunks_sha256"]


_KILLED = """
import os, signal, sys, json
from workbench.questions.sources import build, work
from workbench.questions.sources.settings import SourceConfig
left = [int(sys.argv[4])]
commit = work.Work.commit
def killing(self, *arguments):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    commit(self, *arguments)
work.Work.commit = killing
config = SourceConfig.model_validate_json(sys.stdin.read())
build.build(*sys.argv[1:4], config)
"""


@pytest.mark.parametrize("commits", [3, 15])
def test_a_killed_run_goes_on_to_the_same_result(built, files, config, tmp_path, commits):
    """Killed before its 4th commit (pages) or its 16th (sentences), rows of a shard written."""
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, *map(str, files), str(out), str(commits)],
        input=config.model_dump_json(), text=True, env={**os.environ}, check=False,
    )  # fmt: skip
    assert done.returncode == -9
    assert not (out / "items.jsonl").exists()
    report = build(*files, out, config)
    assert report == built[1]
    for name in FILES:
        assert (out / name).read_bytes() == (built[0] / name).read_bytes()
    assert not list(out.glob("*.part"))


def test_a_finished_run_is_not_read_again(files, config, built, monkeypatch):
    from workbench.questions.sources import passes

    monkeypatch.setattr(passes, "Lines", None)
    assert build(*files, built[0], config) == built[1]


def test_other_settings_need_another_folder(files, config, built):
    other = config.model_copy(update={"subjects": "page"})
    with pytest.raises(WorkbenchError, match="pass over sentences was begun with.*another --out"):
        build(*files, built[0], other)


def test_broken_sources_are_told_and_what_was_read_is_used(world, write, config, tmp_path):
    lines = world.kilt_lines()
    lines.insert(3, "{broken")
    kilt = write(tmp_path / "kilt.json", lines)
    dump = write(tmp_path / "truthy.nt.bz2", ["no triple", *world.dump_lines(), "x" * 20_000])
    dump.write_bytes(dump.read_bytes()[:-20])
    with pytest.warns(UserWarning, match=r"truthy\.nt\.bz2: .* after line \d+: .*what was read is"):
        report = build(kilt, dump, tmp_path / "out", config)
    assert report["read"]["dump"]["broken"] and 0 < report["grounded"] < 351
    assert report["refused"] == [
        {"stage": "dump", "reason": "not N-Triples: no valid subject", "records": 1},
        {"stage": "pages", "reason": "not JSON", "records": 1},
    ]
    told = [json.loads(line) for line in (tmp_path / "out" / "refused.jsonl").open()]
    assert [t["line"] for t in told if t["stage"] == "pages"] == [4]


def test_sources_that_share_nothing_are_refused(world, write, config, tmp_path):
    kilt = write(tmp_path / "kilt.json", world.kilt_lines()[:1])
    dump = write(tmp_path / "truthy.nt", world.dump_lines()[:1])
    with pytest.raises(WorkbenchError, match="no sentence says a fact of the dump"):
        build(kilt, dump, tmp_path / "out", config)


def test_a_corpus_of_the_evidence_and_a_few_pages(files, config, built, items, tmp_path):
    few = config.model_copy(update={"corpus_pages": 5})
    build(*files, tmp_path / "out", few)
    kept = {c.page_id for c in load_corpus(tmp_path / "out" / "chunks.parquet").chunks}
    needed = {e.page_id for i in items for n in i.nodes for e in n.evidence}
    assert needed <= kept and len(needed) <= len(kept) <= len(needed) + 5


def test_an_endpoint_that_fails_leaves_the_templates(files, config, built, tmp_path):
    dead = DescriptionConfig(model="m", base_url="http://127.0.0.1:9/v1", retries=0)
    report = build(*files, tmp_path / "out", config.model_copy(update={"descriptions": dead}))
    failures = report["descriptions"].pop("failures")
    assert failures["no answer: APIConnectionError"] == report["descriptions"].pop("requests")
    assert report["descriptions"] == built[1]["descriptions"]
    items = (tmp_path / "out" / "items.jsonl").read_bytes()
    assert items == (built[0] / "items.jsonl").read_bytes()


def test_an_endpoint_describes_the_roots_and_is_asked_once(files, config, tmp_path, server):
    asked = DescriptionConfig(model="m", base_url=server.url)
    config = config.model_copy(update={"descriptions": asked})

    failures = [(500, b"{}")]  # one of the requests, which come from several threads

    def answer(request):
        facts = request["messages"][1]["content"]
        return failures.pop() if failures else f"the one numbered {len(facts) % 7}"

    server.answer = answer
    report = build(*files, tmp_path, config)
    described = report["descriptions"]
    assert described["endpoint"] > 50 and described["failures"] == {}
    assert described["requests"] == len(server.requests) - 1
    for item in load_items(tmp_path / "items.jsonl"):
        assert all(p.startswith("the one numbered ") for p in item.meta["roots"].values())
    items, number = (tmp_path / "items.jsonl").read_bytes(), len(server.requests)
    build(*files, tmp_path, config)
    assert (tmp_path / "items.jsonl").read_bytes() == items
    assert len(server.requests) == number
