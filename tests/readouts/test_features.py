"""Hidden states: which layer, which token, one pass, nothing computed twice."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.readouts.contexts import commit_context, is_searched, prompt_context
from workbench.readouts.features import FeatureConfig, carriers, features


def contexts(count=7, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 40, int(n)).astype(np.int32) for n in rng.integers(1, 20, count)]


def reference(model, context):
    """float32 [blocks + 1, H] of transformers, one sequence at a time."""
    ids = torch.as_tensor(context, dtype=torch.long)[None]
    with torch.no_grad():
        states = model(input_ids=ids, output_hidden_states=True).hidden_states
    return np.stack([s[0, -1].numpy() for s in states])


def test_states_are_those_of_transformers(make_model):
    model, found = make_model(), contexts()
    got = features(model, found, (0, 1, 2, 3))
    assert got.values.dtype == np.float32 and got.values.shape == (7, 4, 16)
    expected = np.stack([reference(model, c) for c in found])
    np.testing.assert_allclose(got.values, expected, rtol=1e-4, atol=1e-5)


def test_layers_come_in_the_order_asked_for(make_model):
    model, found = make_model(), contexts()
    got = features(model, found, (3, 0, 2))
    every = features(model, found, (0, 1, 2, 3))
    np.testing.assert_array_equal(got.values, every.values[:, [3, 0, 2]])
    np.testing.assert_array_equal(got.at(2), every.values[:, 2])


def test_of_an_adapted_model_the_adapters_count(make_adapted):
    model, found = make_adapted(), contexts()
    got = features(model, found, (1, 3)).values
    expected = np.stack([reference(model.get_base_model(), c) for c in found])
    np.testing.assert_allclose(got, expected[:, [1, 3]], rtol=1e-4, atol=1e-5)
    with model.disable_adapter():
        assert np.abs(features(model, found, (1, 3)).values - got).max() > 0.1


@pytest.mark.parametrize("budget", [1, 25, 10_000])
def test_batches_do_not_matter(make_model, budget):
    model, found = make_model(), contexts(12)
    got = features(model, found, (0, 2), FeatureConfig(batch_tokens=budget))
    expected = features(model, found, (0, 2), FeatureConfig(batch_tokens=60))
    np.testing.assert_allclose(got.values, expected.values, rtol=1e-4, atol=1e-5)
    assert got.forward_tokens == expected.forward_tokens


def test_blocks_above_the_highest_layer_do_not_run(make_model):
    model, ran = make_model(), []
    for number, block in enumerate(model.model.layers, start=1):
        block.register_forward_hook(lambda *_, number=number: ran.append(number))
    features(model, contexts(1), (0,))
    assert ran == []
    features(model, contexts(1), (2, 1))
    assert ran == [1, 2]
    features(model, contexts(1), (3,))
    assert ran == [1, 2, 1, 2, 3]


def test_no_hook_stays_behind_not_even_after_an_error(make_model):
    model = make_model()
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[0, 0] = float("nan")
    with pytest.raises(WorkbenchError, match="layer 2"):
        features(model, contexts(2), (1, 2))
    assert not any(b._forward_hooks or b._forward_pre_hooks for b in model.model.layers)


def test_prefixes_and_copies_are_not_run_again(make_model):
    model, long = make_model(), np.arange(1, 15, dtype=np.int32)
    other = np.array([9, 8, 7], dtype=np.int32)
    found = [long[:4], other, long, long[:9], other.copy(), long[:4]]
    got = features(model, found, (1, 3))
    assert got.forward_tokens == len(long) + len(other)
    expected = np.stack([reference(model, c)[[1, 3]] for c in found])
    np.testing.assert_allclose(got.values, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(got.values[0], got.values[5])


@given(st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=5), max_size=12))
def test_a_carrier_holds_its_context_and_is_its_own(sequences):
    found = carriers([np.array(s, dtype=np.int32) for s in sequences])
    for row, carrier in enumerate(found):
        assert found[carrier] == carrier
        assert sequences[carrier][: len(sequences[row])] == sequences[row]
    kept = [tuple(sequences[c]) for c in set(found)]
    assert not any(a != b and b[: len(a)] == a for a in kept for b in kept)
    assert len(set(kept)) == len(kept)


def test_nothing_to_read(make_model):
    got = features(make_model(), [], (1, 2))
    assert got.values.shape == (0, 2, 16) and got.forward_tokens == 0


@pytest.mark.parametrize("layers", [(4,), (-1,), (0, 99), (), (1, 1)])
def test_layers_outside_the_model(make_model, layers):
    with pytest.raises(WorkbenchError, match="model of 3 blocks"):
        features(make_model(), contexts(1), layers)


@pytest.mark.parametrize(
    ("context", "what"),
    [
        (np.array([], np.int32), "1 to 64 token ids"),
        (np.zeros(65, np.int32), "1 to 64 token ids"),
        (np.zeros(3, np.float32), "float32"),
        (np.array([1, 40], np.int32), "knows 0 to 39"),
        (np.array([-1, 4], np.int32), "from -1"),
    ],
)
def test_contexts_that_are_none(make_model, context, what):
    with pytest.raises(WorkbenchError, match=what) as error:
        features(make_model(), [np.array([1], np.int32), context], (1,))
    assert error.value.where == "context 1"


def test_training_mode_is_refused(make_model):
    with pytest.raises(WorkbenchError, match="training mode"):
        features(make_model().train(), contexts(1), (1,))


def test_no_gradient_is_kept(make_adapted):
    model = make_adapted()
    features(model, contexts(3), (1, 3))
    assert all(p.grad is None for p in model.parameters())


def test_the_two_positions_of_a_trajectory(make_trajectory):
    trajectory = make_trajectory(q=1, searches=2)
    assert is_searched(trajectory)
    assert len(prompt_context(trajectory)) == trajectory.prompt_length == 5
    commit = commit_context(trajectory)
    assert len(commit) == trajectory.answer_span[1] == trajectory.commit_index + 1
    np.testing.assert_array_equal(commit[:5], prompt_context(trajectory))
    assert not is_searched(make_trajectory(searches=0))
    assert not is_searched(make_trajectory(searches=2, valid=False))


def test_positions_that_are_not_there(make_trajectory):
    with pytest.raises(WorkbenchError, match="no answer-commit token"):
        commit_context(make_trajectory(valid=False))
    bare = make_trajectory()
    bare.segments[0] = 1
    with pytest.raises(WorkbenchError, match="no prompt tokens"):
        prompt_context(bare)
