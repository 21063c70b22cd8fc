"""Cached multi-turn generation equals what a full forward pass from scratch says."""

import numpy as np
import pytest
import torch

from workbench.engines import rows as rows_module
from workbench.engines.base import Sampling
from workbench.engines.transformers_engine import TransformersEngine
from workbench.errors import WorkbenchError

STOP = ("</search>", "</answer>")
GREEDY = Sampling(temperature=0.0, top_k_logprobs=3)


@pytest.fixture(params=[True, False], ids=["lean", "transformers"])
def lean(request):
    """Both forward passes behind the engine."""
    return request.param


def full_logprobs(model, tokens):
    """float64 [T, V]; row t predicts token t + 1. Nothing of the engine is used."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens])).logits[0]
    return logits.double().log_softmax(-1).numpy()


def ragged_rollout(engine, sampling, seed=3, prompts=None, limits=(7, 12, 5)):
    """Three turns with observations of different lengths; rows leave after each turn.

    Returns per row its tokens, and (start, generation) of every turn.
    """
    rng = np.random.default_rng(0)
    if prompts is None:
        prompts = [rng.integers(9, 60, n).tolist() for n in (3, 9, 1, 6, 4)]
    session = engine.open(prompts, sampling, seed)
    tokens, turns = [list(p) for p in prompts], [[] for _ in prompts]
    rows = list(range(len(prompts)))
    for turn, limit in enumerate(limits):
        generations = session.generate(rows, [limit + row for row in rows], STOP)
        for row, generation in zip(rows, generations, strict=True):
            turns[row].append((len(tokens[row]), generation))
            tokens[row] += generation.tokens.tolist()
        if turn < len(limits) - 1:
            leaving = rows[turn + 1]
            session.drop([leaving])
            rows = [row for row in rows if row != leaving]
            seen = {row: np.random.default_rng([turn, row]).integers(9, 60, 2 + 5 * row).tolist()
                    for row in rows}  # fmt: skip
            session.append(rows, [seen[row] for row in rows])
            for row in rows:
                tokens[row] += seen[row]
    return tokens, turns


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("prefill_tokens", [2048, 16])
def test_greedy_turns_equal_a_full_forward(
    tokenizer, make_model, kind, attention, prefill_tokens, lean
):
    model = make_model(kind, attn_implementation=attention)
    engine = TransformersEngine(
        model, tokenizer, dtype="float32", lean=lean, prefill_tokens=prefill_tokens
    )
    tokens, turns = ragged_rollout(engine, GREEDY)
    kinds = set()
    for row, sequence in enumerate(tokens):
        truth = full_logprobs(model, sequence)
        for start, generation in turns[row]:
            kinds.add(generation.finish)
            for i, token in enumerate(generation.tokens):
                predicted = truth[start + i - 1]
                assert token == predicted.argmax()
                assert generation.logprobs[i] == pytest.approx(predicted[token], abs=1e-4)
                best = np.argsort(-predicted)[:3]
                assert generation.topk_ids[i].tolist() == best.tolist()
                assert generation.topk_logprobs[i] == pytest.approx(predicted[best], abs=1e-4)
    assert len(kinds) > 1 and sum(map(len, turns)) == 12


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_sampled_logprobs_equal_score(tokenizer, make_model, kind, lean):
    engine = TransformersEngine(make_model(kind), tokenizer, dtype="float32", lean=lean)
    tokens, turns = ragged_rollout(engine, Sampling(top_k_logprobs=2), seed=11)
    masks = []
    for sequence, parts in zip(tokens, turns, strict=True):
        mask = np.zeros(len(sequence), bool)
        for start, generation in parts:
            mask[start : start + len(generation.tokens)] = True
        masks.append(mask)
    for scored, sequence, mask, parts in zip(
        engine.score(tokens, masks, top_k=2), tokens, masks, turns, strict=True
    ):
        assert scored.tokens.tolist() == np.array(sequence)[mask].tolist()
        for name in ("logprobs", "topk_logprobs", "topk_ids"):
            sampled = np.concatenate([getattr(g, name) for _, g in parts])
            assert getattr(scored, name) == pytest.approx(sampled, abs=1e-4)


def test_a_row_does_not_depend_on_the_rows_beside_it(tokenizer, make_model, lean):
    engine = TransformersEngine(make_model(), tokenizer, dtype="float32", lean=lean)
    prompts = [[10, 11, 12], [20, 21, 22, 23, 24], [30]]
    for sampling in (GREEDY, Sampling()):
        together = engine.open(prompts, sampling, 5).generate([0, 1, 2], [40, 40, 40], STOP)
        shuffled = engine.open(prompts, sampling, 5).generate([2, 0, 1], [40, 40, 40], STOP)
        alone = engine.open(prompts, sampling, 5).generate([0], [40], STOP)
        assert alone[0].tokens.tolist() == together[0].tokens.tolist()
        assert shuffled[1].tokens.tolist() == together[0].tokens.tolist()
        assert shuffled[0].tokens.tolist() == together[2].tokens.tolist()


def test_draws_do_not_depend_on_the_number_of_rows(tokenizer, make_model, monkeypatch, lean):
    monkeypatch.setattr(rows_module, "_DRAWS", 16)  # so that further blocks of draws are needed
    engine = TransformersEngine(make_model(), tokenizer, dtype="float32", lean=lean, eos=[])
    one = engine.open([[10]], Sampling(), 5).generate([0], [40], ())[0]
    two = engine.open([[10], [11]], Sampling(), 5).generate([0, 1], [40, 40], ())[0]
    assert one.tokens.tolist() == two.tokens.tolist()
    other = engine.open([[10]], Sampling(), 6).generate([0], [40], ())[0]
    assert one.tokens.tolist() != other.tokens.tolist()


def test_subsets_of_rows_may_generate_in_any_order(tokenizer, make_model, lean):
    model = make_model()
    engine = TransformersEngine(model, tokenizer, dtype="float32", lean=lean)
    prompts = [[10, 11], [12], [13, 14, 15], [16]]
    session = engine.open(prompts, GREEDY, 0)
    tokens = [list(p) for p in prompts]
    for rows in ([3], [1, 2], [0, 3], [2], [0, 1, 2, 3], [3, 1]):
        for row, generation in zip(rows, session.generate(rows, [4] * len(rows), STOP)):
            tokens[row] += generation.tokens.tolist()
    for sequence, prompt in zip(tokens, prompts, strict=True):
        truth = full_logprobs(model, sequence).argmax(-1)
        assert sequence[len(prompt) :] == truth[len(prompt) - 1 : -1].tolist()


def test_every_token_is_processed_once_and_equal_prompts_share(tokenizer, make_model, lean):
    engine = TransformersEngine(make_model(), tokenizer, dtype="float32", lean=lean)
    tokens, turns = ragged_rollout(engine, Sampling())
    # A row's last sampled token is never needed; every other token is processed once.
    assert engine.tokens_processed == sum(map(len, tokens)) - len(tokens)
    assert lean or engine.tokens_padded > 0

    engine = TransformersEngine(make_model(), tokenizer, dtype="float32", lean=lean)
    prompt = [9, 10, 11, 12, 13]
    session = engine.open([prompt, prompt, [9, 10], prompt], GREEDY, 0)
    four = session.generate(range(4), [3] * 4, ())
    assert engine.tokens_processed == 5 + 2 + sum(len(g.tokens) - 1 for g in four)
    assert four[0].tokens.tolist() == four[3].tokens.tolist()
    session.append([3, 0], [[20], [21]])
    three, zero = session.generate([3, 0], [3, 3], ())
    for start, more, generation in ((four[3], 20, three), (four[0], 21, zero)):
        sequence = [*prompt, *start.tokens, more, *generation.tokens]
        truth = full_logprobs(engine._model, sequence).argmax(-1)
        assert generation.tokens.tolist() == truth[len(sequence) - 4 : -1].tolist()


def test_cache_follows_what_is_live(tokenizer, make_model):
    engine = TransformersEngine(make_model(), tokenizer, dtype="float32", lean=False, eos=[])
    session = engine.open([[9 + i] for i in range(32)], Sampling(), 0)
    session.generate(range(32), [40] * 32, ())
    before = session._cache.slots, session._cache.capacity
    session.drop(range(4, 32))
    session.append(range(4), [[10] * 60] * 4)
    session.generate(range(4), [2] * 4, ())
    assert before[0] == 32 and before[1] < 100
    assert session._cache.slots == 4 and session._cache.capacity < 160
    assert session._cache._keys[0].shape[:3] == (4, 2, session._cache.capacity)


def test_stop_string_of_several_tokens(byte_tokenizer, make_model):
    # The tokenizer merges "</" and writes "answer>" in pieces; greedy continuation is forced
    # by a model whose next token is a function of the current one.
    ids = byte_tokenizer(" Paris</answer> x", add_special_tokens=False).input_ids
    model = successor_model(make_model, byte_tokenizer, ids)
    engine = TransformersEngine(model, byte_tokenizer, dtype="float32")
    (generation,) = engine.open([ids[:1]], GREEDY, 0).generate([0], [50], STOP)
    text = byte_tokenizer.decode(generation.tokens)
    assert generation.finish == "stop" and "</answer>" in text
    assert "</answer>" not in byte_tokenizer.decode(generation.tokens[:-1])
    assert len(generation.tokens) > 2


def successor_model(make_model, tokenizer, ids):
    """A model that says ``ids[i + 1]`` after ``ids[i]``; ids must not repeat."""
    assert len(set(ids)) == len(ids)
    size = len(tokenizer)
    model = make_model(
        vocabulary=size, hidden_size=size + size % 2, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, head_dim=16,
    )  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.model.norm.weight.fill_(1)
        model.model.embed_tokens.weight[:, :size] = torch.eye(size)
        for a, b in zip(ids, ids[1:]):
            model.lm_head.weight[b, a] = 1
    return model


def test_eos_is_kept_and_ends_the_turn(tokenizer, make_model):
    ids = [10, 11, 0, 12, 2, 13]
    model = successor_model(make_model, tokenizer, ids)
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    (generation,) = engine.open([[10]], GREEDY, 0).generate([0], [50], STOP)
    # the pad token 0 in the middle is an ordinary token
    assert generation.tokens.tolist() == [11, 0, 12, 2] and generation.finish == "eos"
    (scored,) = engine.score([ids], [np.arange(6) > 0])
    assert scored.tokens.tolist() == ids[1:]


def test_limits_and_misuse(tokenizer, make_model):
    engine = TransformersEngine(make_model(), tokenizer, dtype="float32", max_rows=2)
    session = engine.open([[9, 10], [11]], GREEDY, 0)
    nothing, some = session.generate([0, 1], [0, 3], ())
    assert nothing.finish == "length" and len(nothing.tokens) == 0
    assert nothing.topk_ids.shape == (0, 3)
    assert 1 <= len(some.tokens) <= 3
    for call, what in (
        (lambda: engine.open([[1]] * 3, GREEDY, 0), "3 rows"),
        (lambda: engine.open([[]], GREEDY, 0), "empty"),
        (lambda: session.generate([2], [1], ()), "unknown"),
        (lambda: session.generate([0, 0], [1, 1], ()), "twice"),
        (lambda: session.generate([0], [255], ()), "may grow by 255"),
    ):
        with pytest.raises(WorkbenchError, match=what):
            call()
    session.drop([0])
    with pytest.raises(WorkbenchError, match="dropped"):
        session.append([0], [[1]])


def test_broken_weights_are_told(tokenizer, make_model):
    model = make_model()
    with torch.no_grad():
        model.model.norm.weight[0] = float("nan")
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    for sampling in (GREEDY, Sampling(), Sampling(top_p=0.9)):
        with pytest.raises(WorkbenchError, match="NaN"):
            engine.open([[9]], sampling, 0).generate([0], [2], ())
    with pytest.raises(WorkbenchError, match="NaN"):
        engine.score([[9, 10]], [np.array([False, True])])


def test_score_refuses_what_it_cannot_score(tokenizer, make_model):
    engine = TransformersEngine(make_model(), tokenizer, dtype="float32")
    nothing = engine.score([[9, 10]], [np.zeros(2, bool)], top_k=2)
    assert nothing[0].logprobs.shape == (0,) and nothing[0].topk_ids.shape == (0, 2)
    for mask, what in (([True, False], "token 0"), ([True], "expected bool"), ([0, 1], "bool")):
        with pytest.raises(WorkbenchError, match=what):
            engine.score([[9, 10]], [np.array(mask)])


def test_rows_that_are_alike_are_processed_once_in_every_turn(tokenizer, make_model):
    """Groups that part at different times, with rows that sit out or leave in between."""
    model = make_model()
    engine = TransformersEngine(model, tokenizer, dtype="float32", eos=[])
    prompts = [[10, 11], [10, 11], [12], [10, 11], [12]]
    session = engine.open(prompts, GREEDY, 0)
    tokens = [list(p) for p in prompts]

    def turn(rows, limits):
        before = engine.tokens_processed
        for row, generation in zip(rows, session.generate(rows, limits, ()), strict=True):
            tokens[row] += generation.tokens.tolist()
        return engine.tokens_processed - before - sum(limits) + len(rows)

    def observe(rows, seen):
        session.append(rows, seen)
        for row, more in zip(rows, seen, strict=True):
            tokens[row] += more

    assert turn([0, 1, 2, 3, 4], [3] * 5) == 2 + 1
    observe([0, 1, 2, 3, 4], [[20, 21]] * 3 + [[22]] + [[20, 21]])
    assert turn([4, 0, 1, 3], [40, 2, 2, 2]) == 3 + 3 + 2  # row 2 sits out
    session.drop([1])
    observe([0, 3], [[30, 31, 32]] * 2)
    assert turn([0, 2, 3], [2, 40, 3]) == 4 + 3 + 4  # row 2 is alone now
    for row, sequence in enumerate(tokens):
        truth = full_logprobs(model, sequence).argmax(-1)
        last = sequence[-2 if row in (0, 1) else -3 :]
        assert last == truth[-1 - len(last) : -1].tolist()


def test_weights_behind_a_lean_pass_are_followed_in_place(tokenizer, make_model):
    model = make_model("qwen2")
    engine = TransformersEngine(model, tokenizer, dtype="float32")
    assert engine.lean is not None
    sequence, mask = list(range(9, 29)), np.arange(20) > 0
    for change in (model.model.layers[1].self_attn.k_proj.bias, model.model.norm.weight):
        old = engine.score([sequence], [mask])[0].logprobs
        with torch.no_grad():
            change.mul_(3)
        new = engine.score([sequence], [mask])[0].logprobs
        truth = full_logprobs(model, sequence)[np.arange(19), sequence[1:]]
        assert abs(new - old).max() > 0.05
        assert new == pytest.approx(truth, abs=1e-4)


def test_unknown_architectures_run_as_transformers_runs_them(tokenizer, make_model):
    class Other(type(make_model())):
        pass

    known, scaled, other = make_model(), make_model(), make_model()
    scaled.config.rope_parameters["rope_type"] = "linear"
    other.__class__ = Other
    for model, lean in ((known, True), (scaled, False), (other, False)):
        assert (TransformersEngine(model, tokenizer, dtype="float32").lean is not None) == lean
