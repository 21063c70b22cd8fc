"""Search-G1 as a method: which evaluator is in force when, and what it makes of rollouts."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from workbench.errors import WorkbenchError
from workbench.grpo.method_state import load_state, save_state, state_hash
from workbench.methods.base import Attached, Context, Stateful
from workbench.methods.registry import build_method, load_condition
from workbench.methods.search_g1 import Params, build
from workbench.methods.shaping import Shaping, outcomes, shaped_reward
from workbench.questions.graph import Item
from workbench.readouts.evaluator import Evaluator
from workbench.readouts.heads import head_of
from workbench.readouts.probes import fit_probe
from workbench.readouts.refit import Failure, Refits
from workbench.readouts.snapshot import take_snapshot

LAYER, HIDDEN = 2, 16


@pytest.fixture(scope="module")
def model():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=64, hidden_size=HIDDEN, num_hidden_layers=3, num_attention_heads=2,
                num_key_value_heads=1, intermediate_size=24, max_position_embeddings=64,
                initializer_range=0.4,
            )
        ).eval()  # fmt: skip


def _evaluator(model, seed):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(60, HIDDEN))
    heads = [
        head_of(fit_probe("logistic", states, states[:, place] > 0), "logistic", LAYER)
        for place in (0, 1)
    ]
    return Evaluator(take_snapshot(model), *heads)


@dataclass
class Schedule:
    """Stands for the processes: a round is ready when it is said to be."""

    results: dict
    task: object
    done: set = field(default_factory=set)
    prepared: list = field(default_factory=list)
    started: list = field(default_factory=list)
    last: int | None = None
    closed: bool = False

    def worthwhile(self, step):
        return Refits("", self.task, last=self.last).worthwhile(step)

    def close(self):
        self.closed = True

    def prepare(self, number, model):
        self.prepared.append(number)

    def start(self, number):
        self.started.append(number)

    def ready(self, number):
        return number in self.done

    def collect(self, number, model):
        return self.results[number]


@pytest.fixture
def make(model):
    def make(results=(), every=1, lag=None, **params):
        sizes = SimpleNamespace(every=every, lag=lag)
        rounds = Schedule(dict(enumerate(results, 1)), SimpleNamespace(calibration=sizes))
        first = _evaluator(model, 0)
        method = build(Params(**params), Context(evaluator=first, refits=rounds))
        method.attach(model)
        return method, rounds, first

    return make


def test_it_has_the_hooks(make):
    method = make()[0]
    assert isinstance(method, Attached) and isinstance(method, Stateful)


def test_with_lag_installation_is_exact(make, model):
    new = _evaluator(model, 1)
    method, rounds, first = make([new, new], every=3, lag=2)
    ages = [method.after_update(step)["evaluator_age"] for step in range(1, 9)]
    # Round 1 starts at 3 and is installed at 5; round 2 starts at 6 and is installed at 8.
    assert ages == [1, 2, 3, 4, 0, 1, 2, 0]
    assert rounds.prepared == rounds.started == [1, 2]
    assert method.evaluator is new and method.counts["installed"] == 2


def test_a_round_may_start_where_one_is_installed(make, model):
    new = _evaluator(model, 1)
    method, rounds, _ = make([new] * 3, every=3, lag=3)
    for step in range(1, 10):
        method.after_update(step)
    assert rounds.started == [1, 2, 3] and method.installed == 9


def test_no_round_starts_that_could_score_nothing(make, model):
    method, rounds, _ = make([_evaluator(model, 1)] * 3, every=3, lag=2)
    rounds.last = 9  # installed after update 8 one still scores the rollouts of the ninth
    for step in range(1, 10):
        method.after_update(step)
    assert rounds.started == [1, 2]
    method.release()
    assert rounds.closed


def test_without_lag_the_old_one_stays_until_both_heads_are_done(make, model):
    new = _evaluator(model, 1)
    method, rounds, _ = make([new], every=2)
    first = method.evaluator
    for step in (1, 2, 3, 4):
        method.after_update(step)
        assert method.evaluator is first
    assert rounds.started == [1]  # one at a time
    rounds.done.add(1)
    assert method.after_update(5)["evaluator_age"] == 0 and method.evaluator is new


def test_a_failed_round_changes_nothing(make):
    method, rounds, _ = make([Failure("killed")], every=2, lag=0)
    first = method.evaluator
    method.after_update(1)
    metrics = method.after_update(2)
    assert method.evaluator is first and method.installed == 0
    assert metrics["refits_failed"] == 1 and metrics["refits_installed"] == 0


def test_the_interval_is_a_multiple_of_the_profiles(make):
    method, rounds, _ = make([None] * 4, every=4, interval=0.5)
    for step in range(1, 3):
        method.after_update(step)
    assert rounds.started == [1]


def test_frozen_readouts_never_refit(make):
    method, rounds, _ = make(interval=None)
    first = method.evaluator
    assert [method.after_update(s)["evaluator_age"] for s in (1, 2)] == [1, 2]
    assert not rounds.started and method.evaluator is first


def test_state_comes_back_bit_by_bit(make, model, tmp_path):
    new = _evaluator(model, 1)
    method, rounds, _ = make([new, new], every=3, lag=2)
    for step in range(1, 7):
        method.after_update(step)
    state = method.state()
    kept = load_state(tmp_path / "m", save_state(tmp_path / "m", state))
    other, again, _ = make([None, new], every=3, lag=2)
    other.restore(kept)
    assert state_hash(other.state()) == state_hash(state)
    assert other.pending == (2, 6) and again.started == [2]  # the round under way is run again
    assert other.after_update(7) == method.after_update(7)
    assert other.after_update(8) == method.after_update(8)
    assert other.evaluator.hashes() == method.evaluator.hashes()


def test_rewards_are_eq6_of_its_scores(make, model, rolled_out):
    method, _, first = make(interval=None)
    right = [rolled_out("paris", n) for n in (0, 1, 2)]
    item = Item(right[0].item_id, "?", ("paris",), "1-hop, single", (), "train")
    batch = [*right, rolled_out("rome", 1), rolled_out(None, 0, valid=False)]
    batch = [replace(t, commit_index=len(t.tokens) - 1 if t.valid else -1) for t in batch]
    scores = method.score([item] * 5, batch)
    scored = first.score(model, batch)
    expected = shaped_reward(outcomes([item] * 5, batch), scored.d, scored.b, Shaping())
    assert np.array_equal(scores.reward, expected.reward)
    d, b = scored.d, scored.b
    assert scores.reward == pytest.approx(
        [1 + 0.5 * b[0], 1 + 0.6 * d[1] * (1 - b[1]), 0.98 + 0.6 * d[2] * (1 - b[2]), 0.05, -0.1]
    )
    shares = method.shares([item] * 5, batch, scores, method.advantages([item] * 5, batch, scores))
    assert shares["reliance_score"] == pytest.approx((d[[1, 2, 3]].sum(), 3))


def test_trained_in_full_the_first_evaluator_keeps_the_base_policy(make, model, rolled_out):
    method = make(interval=None)[0]
    asked = [rolled_out("paris", 0)]
    before = method.evaluator.score(model, asked).b
    weight = model.model.embed_tokens.weight
    kept = weight.detach().clone()
    try:
        with torch.no_grad():
            weight.add_(0.3)
        assert method.evaluator.score(model, asked).b == before
        assert _evaluator(model, 0).score(model, asked).b != before
    finally:
        with torch.no_grad():
            weight.copy_(kept)


def test_what_is_missing_is_named(model):
    with pytest.raises(WorkbenchError, match="no evaluator to start with"):
        build(Params(), Context())
    with pytest.raises(WorkbenchError, match="nothing to run refits with"):
        build(Params(), Context(evaluator=_evaluator(model, 0)))
    with pytest.raises(WorkbenchError, match="no policy to read"):
        build(Params(interval=None), Context(evaluator=_evaluator(model, 0))).score([], [])


@pytest.mark.parametrize("name", ["search_g1", "search_g1_frozen", "search_g1_no_cost"])
def test_conditions_build(name, model):
    condition = load_condition(name)
    context = Context(evaluator=_evaluator(model, 0), refits=Schedule({}, None))
    assert build_method(condition, context).name == "search_g1"
