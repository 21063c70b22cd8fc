"""The evaluator: one pass, bit-exact state, and files that are whole, matching, and no code."""

import json
import os

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from workbench.errors import WorkbenchError
from workbench.grpo.method_state import load_state, save_state, state_hash
from workbench.readouts.contexts import commit_context, prompt_context
from workbench.readouts.evaluator import Evaluator, load_evaluator
from workbench.readouts.features import features
from workbench.readouts.heads import Head
from workbench.readouts.snapshot import take_snapshot


@pytest.fixture
def evaluator(make_adapted, make_head):
    return Evaluator(
        take_snapshot(make_adapted()),
        make_head(3, 0, "mlp-64"),
        make_head(2, 1),
        {"step": 25, "validation_auc": {"d": 0.9, "b": 0.8}},
    )


@pytest.fixture
def batch(make_trajectory):
    """Two questions: searched, direct and invalid rollouts, two of one prompt each at least."""
    return [
        make_trajectory(0, 1), make_trajectory(0, 2, seed=1), make_trajectory(0, 0),
        make_trajectory(1, 2, valid=False), make_trajectory(1, 0, seed=3),
    ]  # fmt: skip


def test_scores_are_the_heads_on_the_snapshots_states(evaluator, batch, make_adapted, rerandomise):
    model = make_adapted()
    commits = features(model, [commit_context(t) for t in batch[:2]], (3,)).values[:, 0]
    prompts = features(model, [prompt_context(t) for t in batch], (2,)).values[:, 0]
    rerandomise(model, 8)  # training went on
    live = {n: p.detach().clone() for n, p in model.named_parameters()}
    scored = evaluator.score(model, batch)
    np.testing.assert_allclose(scored.d[:2], evaluator.d.score(commits), atol=1e-5)
    np.testing.assert_allclose(scored.b, evaluator.b.score(prompts), atol=1e-5)
    assert scored.d.dtype == scored.b.dtype == np.float64
    assert all(torch.equal(live[n], p) for n, p in model.named_parameters())
    moved = Evaluator(take_snapshot(model), evaluator.d, evaluator.b).score(model, batch)
    assert np.abs(moved.d[:2] - scored.d[:2]).max() > 1e-3


def test_d_is_there_for_valid_searched_rollouts_and_never_nan(evaluator, batch, make_adapted):
    scored = evaluator.score(make_adapted(), batch)
    assert scored.searched.tolist() == [True, True, False, False, False]
    assert (scored.d[2:] == 0).all() and (scored.d[:2] > 0).all()
    assert np.isfinite(scored.d).all() and ((scored.b > 0) & (scored.b < 1)).all()


def test_b_is_one_number_per_prompt(evaluator, batch, make_adapted, monkeypatch):
    rows, score = [], Head.score
    monkeypatch.setattr(Head, "score", lambda head, x: rows.append(len(x)) or score(head, x))
    b = evaluator.score(make_adapted(), batch).b
    assert rows == [2, 2]  # two distinct prompts, two searched rollouts
    assert len(set(b[:3])) == 1 and len(set(b[3:])) == 1 and b[0] != b[4]


def test_one_pass_over_the_rollouts_at_most(evaluator, batch, make_adapted):
    model, seen = make_adapted(), []
    model.get_base_model().model.embed_tokens.register_forward_hook(
        lambda module, args, out: seen.append(args[0].numel())
    )
    scored = evaluator.score(model, batch)
    # The searched rollouts to their commit token (their prompt is read on the way), and the
    # prompt of the question that has none.
    expected = sum(t.commit_index + 1 for t in batch[:2]) + batch[3].prompt_length
    assert scored.forward_tokens == expected
    assert scored.forward_tokens < scored.rollout_tokens == sum(len(t.tokens) for t in batch)
    assert len(seen) == 1 and seen[0] >= expected  # a single batch, padded


def test_batches_without_searched_rollouts(evaluator, batch, make_adapted):
    scored = evaluator.score(make_adapted(), batch[2:])
    assert not scored.d.any() and (scored.b > 0).all()
    nothing = evaluator.score(make_adapted(), [])
    assert nothing.d.shape == nothing.b.shape == (0,) and nothing.forward_tokens == 0


def test_of_the_base_policy(batch, make_model, make_adapted, make_head):
    evaluator = Evaluator(take_snapshot(make_model()), make_head(3), make_head(2, 1))
    plain, under = (evaluator.score(model, batch) for model in (make_model(), make_adapted()))
    np.testing.assert_allclose(plain.d, under.d, atol=1e-5)
    assert not any(name.startswith("snapshot/") for name in evaluator.state())


def test_the_state_is_exact_through_a_checkpoint(evaluator, batch, make_adapted, tmp_path):
    state = evaluator.state()
    rest = json.loads(json.dumps(save_state(tmp_path / "m.safetensors", state)))
    again = Evaluator.of(load_state(tmp_path / "m.safetensors", rest))
    assert state_hash(again.state()) == state_hash(state)
    first, second = (e.score(make_adapted(), batch) for e in (evaluator, again))
    np.testing.assert_array_equal(first.d, second.d)
    np.testing.assert_array_equal(first.b, second.b)
    assert again.notes == evaluator.notes


def test_the_file_is_exact_and_holds_no_second_model(evaluator, batch, make_adapted, tmp_path):
    path = evaluator.save(tmp_path / "new" / "evaluator.safetensors")
    again = load_evaluator(path, make_adapted(adapter=4))
    assert state_hash(again.state()) == state_hash(evaluator.state())
    assert os.listdir(path.parent) == [path.name]
    weights = {n for n in load_file(path) if n.startswith("snapshot/")}
    assert weights == {f"snapshot/{n}" for n in evaluator.snapshot.tensors}


def test_a_new_file_replaces_the_old_in_one_step(evaluator, make_adapted, tmp_path, monkeypatch):
    path = evaluator.save(tmp_path / "e.safetensors")
    newer = Evaluator(evaluator.snapshot, evaluator.d, evaluator.b, {"step": 50})

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        newer.save(path)
    assert load_evaluator(path, make_adapted()).notes["step"] == 25
    assert os.listdir(tmp_path) == [path.name]
    monkeypatch.undo()
    newer.save(path)
    assert load_evaluator(path, make_adapted()).notes["step"] == 50


def rewritten(path, change=lambda tensors, record: None):
    with safe_open(path, framework="pt") as stream:
        record = json.loads(stream.metadata()["record"])
    tensors = load_file(path)
    change(tensors, record)
    save_file(tensors, path, metadata={"record": json.dumps(record)})


def _adapter(tensors, record):
    next(t for n, t in tensors.items() if n.startswith("snapshot/")).add_(1e-3)


def _head(tensors, record):
    tensors["b/w0"][0] += 1e-6


def _missing(tensors, record):
    del tensors["d/mean"]


def _unknown(tensors, record):
    tensors["odd"] = torch.zeros(1)


def _schema(tensors, record):
    record["schema"] = 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_adapter, "the snapshot are not what was written"),
        (_head, "the heads are not what was written"),
        (_missing, "'mean' is missing"),
        (_unknown, "'odd' is missing or unknown"),
        (_schema, "schema 0"),
    ],
)
def test_a_changed_file_is_refused(evaluator, make_adapted, tmp_path, change, what):
    path = evaluator.save(tmp_path / "e.safetensors")
    rewritten(path)
    load_evaluator(path, make_adapted())
    rewritten(path, change)
    with pytest.raises(WorkbenchError, match=what) as error:
        load_evaluator(path, make_adapted())
    assert error.value.where == str(path) and error.value.fix


def test_another_policy_is_refused(evaluator, make_adapted, make_model, tmp_path):
    path = evaluator.save(tmp_path / "e.safetensors")
    for model, what in (
        (make_adapted(seed=3), "base policy"),
        (make_adapted(rank=3), "in the snapshot and"),
        (make_model(), "0 active adapters"),
    ):
        with pytest.raises(WorkbenchError, match=what) as error:
            load_evaluator(path, model)
        assert error.value.where == str(path)


def test_a_layer_that_the_model_lacks_is_refused(evaluator, make_adapted, batch, tmp_path):
    deep = Evaluator(evaluator.snapshot, Head.of("logistic", 9, evaluator.b.arrays()), evaluator.b)
    for call in (
        lambda: load_evaluator(deep.save(tmp_path / "e.safetensors"), make_adapted()),
        lambda: deep.score(make_adapted(), batch),
    ):
        with pytest.raises(WorkbenchError, match=r"\[9\] are not layers"):
            call()


def test_no_file_and_no_evaluator(make_adapted, tmp_path):
    with pytest.raises(WorkbenchError, match="no evaluator here"):
        load_evaluator(tmp_path / "none", make_adapted())
    (tmp_path / "text").write_text("hello, this is no safetensors file")
    save_file({"a": torch.zeros(1)}, tmp_path / "plain")
    with pytest.raises(WorkbenchError, match="not an evaluator"):
        load_evaluator(tmp_path / "text", make_adapted())
    with pytest.raises(WorkbenchError, match="schema None"):
        load_evaluator(tmp_path / "plain", make_adapted())


def test_a_searched_rollout_without_commit_token(evaluator, make_adapted, batch):
    batch[1].commit_index = -1
    with pytest.raises(WorkbenchError, match="no answer-commit token"):
        evaluator.score(make_adapted(), batch)
