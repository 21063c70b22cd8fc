"""Calibration rounds of the committed policy, in this process and in one of their own."""

import json
import os
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from workbench.agent.config import AgentConfig
from workbench.agent.rollout import rollout
from workbench.corpus.chunking import ChunkConfig, chunk_pages
from workbench.corpus.embedded import load_pages, select_fields
from workbench.corpus.store import save_corpus
from workbench.engines.base import Sampling
from workbench.engines.transformers_engine import TransformersEngine
from workbench.errors import WorkbenchError
from workbench.policy.recipe import closed_book_agent
from workbench.policy.store import load_policy
from workbench.questions.build import QuestionConfig, build_items
from workbench.questions.names import page_names
from workbench.questions.relations import FIELDS
from workbench.questions.store import load_items, save_items
from workbench.readouts.calibration import calibration_items, fit, measure_targets
from workbench.readouts.config import CalibrationConfig
from workbench.readouts.evaluator import Evaluator
from workbench.readouts.probes import Unfit
from workbench.readouts.refit import FAILED, RESULT, TASK, Failure, Refits, RefitTask, run_round
from workbench.readouts.selection import SelectionConfig
from workbench.retrieval.config import RetrievalConfig
from workbench.retrieval.index import build_index
from workbench.retrieval.searcher import load_searcher

PAGES = ("ag", "ml", "fr", "gm", "it", "ek", "sw", "no")
AGENT = AgentConfig(
    passage="({rank}) {title}: {text}", separator=" ", max_observation_tokens=200,
    max_rounds=4, max_start_tokens=160, max_prompt_tokens=900, max_response_tokens=96,
    max_total_tokens=1000,
)  # fmt: skip
CONFIG = CalibrationConfig(
    questions=40, rollouts=2, layers=(2, 4),
    selection=SelectionConfig(folds=2, architectures=["logistic"]),
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibration")
    everything = load_pages()
    pages = [p for p in select_fields(everything, FIELDS) if p.page_id in PAGES]
    corpus = save_corpus(
        folder / "corpus.parquet", chunk_pages(pages, ChunkConfig(words=30, boundary="paragraph"))
    )
    retrieval = RetrievalConfig(encoder="bm25", top_k=3)
    build_index(corpus, retrieval, folder / "index")
    found = build_items(pages, QuestionConfig(), page_names(everything)).items
    items = [i for i in found if i.hops == 1]
    save_items(folder / "items.jsonl", items)
    task = RefitTask(
        policy="data/policy", corpus=str(folder / "corpus.parquet"), index=str(folder / "index"),
        questions=str(folder / "items.jsonl"), item_ids=tuple(i.item_id for i in items),
        retrieval=retrieval, agent=AGENT,
        closed_book=closed_book_agent(AGENT, "From memory: {question} <think>"),
        calibration=CONFIG, seed=3,
    )  # fmt: skip
    return SimpleNamespace(
        task=task, searcher=load_searcher(folder / "index", corpus, retrieval), folder=folder
    )


@pytest.fixture(scope="module")
def policy():
    return load_policy("data/policy")


@pytest.fixture(scope="module")
def measured(place, policy):
    model, tokenizer = policy
    items = calibration_items(load_items(place.task.questions), CONFIG, 3)
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    return measure_targets(
        engine, model, place.searcher, items, AGENT, place.task.closed_book, CONFIG, 3, 1
    )


@pytest.fixture(scope="module")
def adapted():
    """The base policy with an adapter that changes nothing yet."""
    import peft

    config = peft.LoraConfig(r=2, lora_alpha=4.0, target_modules=["q_proj"])
    return peft.get_peft_model(load_policy("data/policy")[0], config).eval()


@pytest.fixture(scope="module")
def refitted(place, adapted):
    refits = Refits(place.folder / "rounds", place.task)
    refits.prepare(1, adapted)
    refits.start(1)
    return refits, refits.collect(1, adapted)


def test_extra_decodes_are_bounded(measured):
    cost, questions = measured.cost, len(measured.items)
    assert questions == CONFIG.questions
    assert cost["rollouts"] == questions * CONFIG.rollouts
    extra = cost["closed_book_decodes"] + cost["deletion_decodes"]
    assert 0 < extra <= questions + len(measured.searched) <= questions * (1 + CONFIG.rollouts)
    assert measured.prompt_states.shape == (questions, 2, 192)
    assert measured.commit_states.shape == (len(measured.searched), 2, 192)


def test_labels_vary(measured):
    assert 0 < measured.reliance.changed.mean() < 1
    assert 0 < measured.closed_book.sufficient.mean() < 1


def test_a_round_of_its_own_process_gives_the_evaluator_of_this_one(measured, refitted, adapted):
    refits, found = refitted
    here = fit(measured, adapted, CONFIG, 3).evaluator
    assert isinstance(found, Evaluator) and found.hashes() == here.hashes()
    assert found.snapshot.kind == "adapter"
    report = refits.report(1)
    assert report["cost"]["rollouts"] == measured.cost["rollouts"]
    assert report["heads"]["d"]["rows"] == len(measured.searched)


def test_scoring_is_at_most_one_forward_pass(refitted, policy, adapted, place):
    model, tokenizer = adapted, policy[1]
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    items = load_items(place.task.questions)[:6]
    rolled = rollout(engine, place.searcher, items, AGENT, Sampling(), 0, 3)
    scored = refitted[1].score(model, rolled)
    assert 0 < scored.forward_tokens <= scored.rollout_tokens
    assert ((0 <= scored.d) & (scored.d <= 1) & (0 <= scored.b) & (scored.b <= 1)).all()


def test_a_killed_round_leaves_no_evaluator(place, policy):
    refits = Refits(place.folder / "killed", place.task)
    refits.prepare(1, policy[0])
    refits.start(1)
    os.kill(refits._running[1].pid, signal.SIGKILL)
    found = refits.collect(1, policy[0])
    assert isinstance(found, Failure) and "status -9" in found.reason
    assert not (refits.round(1) / RESULT).exists()
    assert isinstance(Refits(place.folder / "killed", place.task).collect(1, policy[0]), Failure)


def test_a_policy_trained_in_full_is_kept_whole(place, policy, tmp_path):
    refits = Refits(tmp_path, place.task)
    refits.prepare(1, policy[0])
    run_round(refits.round(1))
    found = refits.collect(1, policy[0])
    assert found.snapshot.kind == "full"
    assert found.snapshot.tensors.keys() == dict(policy[0].named_parameters()).keys()


def test_a_round_that_cannot_be_fitted_says_why(place, policy, tmp_path):
    few = CONFIG.model_copy(update={"questions": 2, "rollouts": 1})
    refits = Refits(tmp_path, place.task.model_copy(update={"calibration": few}))
    refits.prepare(1, policy[0])
    run_round(refits.round(1))
    assert refits.ready(1)
    found = refits.collect(1, policy[0])
    assert isinstance(found, Failure) and found.reason
    assert json.loads((refits.round(1) / FAILED).read_text())["reason"] == found.reason


def test_broken_inputs_end_in_a_failure_that_names_them(place, policy, tmp_path):
    refits = Refits(tmp_path, place.task.model_copy(update={"corpus": str(tmp_path / "none")}))
    refits.prepare(1, policy[0])
    refits.start(1)
    found = refits.collect(1, policy[0])
    assert isinstance(found, Failure) and "none" in found.reason


def test_one_class_is_unfit(measured, policy):
    labels = replace(measured.reliance, changed=measured.reliance.changed | True)
    with pytest.raises(Unfit, match="all .* labels are 1"):
        fit(replace(measured, reliance=labels), policy[0], CONFIG, 3)


def test_a_task_that_is_gone(place, policy, tmp_path):
    refits = Refits(tmp_path, place.task)
    with pytest.raises(WorkbenchError, match="the task of this calibration round is gone"):
        refits.start(4)
    refits.prepare(4, policy[0])
    assert (refits.round(4) / TASK).is_file() and not refits.ready(4)


def test_other_workers_only_wait(place, adapted, tmp_path, refitted):
    other = Refits(tmp_path, place.task, first=False)
    other.prepare(1, adapted)
    other.start(1)
    assert (
        not refitted[0].folder == tmp_path and not other.ready(1) and not list(tmp_path.iterdir())
    )
    started = time.monotonic()
    refitted[1].save(other.round(1) / RESULT)
    assert other.collect(1, adapted).hashes() == refitted[1].hashes()
    assert time.monotonic() - started < 60
