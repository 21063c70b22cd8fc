"""The recipe: three stages one after the other, killed and resumed, and the words it needs."""

import pytest
import torch

from workbench.policy.config import PolicyConfig
from workbench.policy.recipe import all_facts, build_policy, stages
from workbench.policy.sft import SFTConfig
from workbench.questions.relations import BY_NAME

FIRST = SFTConfig(steps=2, tokens_per_step=400, micro_tokens=512, warmup_steps=0, dtype="float32",
                  checkpoint_every=1)  # fmt: skip


class Killed(Exception):
    pass


@pytest.fixture(scope="module")
def config(world):
    default = PolicyConfig()
    return default.model_copy(
        update={
            "model": world.small,
            "training": FIRST,
            "second": _with(default.second, FIRST, steps=3, seed=1),
            "third": _with(default.third, FIRST, steps=2, seed=2),
        }
    )


def _with(stage, training, **changes):
    """A stage with another schedule."""
    update = training.model_dump() | changes
    return stage.model_copy(update={"training": stage.training.model_copy(update=update)})


@pytest.fixture(scope="module")
def build(world, agent):
    def run(config, on_step=lambda progress, model: None, checkpoint=None):
        return build_policy(
            world.pages, world.chunks, world.items, world.searcher, agent, config, on_step,
            checkpoint,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def unbroken(build, config):
    log, weights = [], []

    def on_step(progress, model):
        log.append(progress)
        weights.append(model.get_input_embeddings().weight.detach().clone())

    model, tokenizer = build(config, on_step)
    return model, tokenizer, log, weights


def _same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_steps_are_counted_through_all_stages(unbroken, config):
    model, tokenizer, log, weights = unbroken
    assert [p.step for p in log] == [0, 1, 2, 3, 4, 5, 6]
    assert all(not torch.equal(a, b) for a, b in zip(weights, weights[1:], strict=False))
    assert torch.equal(weights[-1], model.get_input_embeddings().weight)
    assert not model.training and model.config.vocab_size == len(tokenizer)
    assert [s.steps for _, s in stages(config)] == [2, 3, 2]


def test_stages_go_from_telling_little_to_pages_of_no_corpus():
    """As the recipe has it: what was read is told later on, under names and passages made up."""
    made = [d for d, _ in stages(PolicyConfig())]
    assert [d.told for d in made] == [0.0, 1.0, 1.0]
    assert [d.renamed for d in made] == [0.0, 0.85, 0.85]
    assert [d.invented for d in made] == [0.0, 0.0, 0.65]
    assert len({s.seed for _, s in stages(PolicyConfig())}) == 3


def test_a_stage_without_steps_is_left_out(build, config, unbroken):
    none = {name: _with(getattr(config, name), FIRST, steps=0) for name in ("second", "third")}
    assert [s.steps for _, s in stages(config.model_copy(update=none))] == [2]
    without = config.model_copy(update={"second": none["second"]})
    assert [s.steps for _, s in stages(without)] == [2, 2]
    log = []
    build(without, lambda progress, model: log.append(progress))
    assert log[:2] == unbroken[2][:2] and [p.step for p in log] == [0, 1, 2, 3]


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_killed_in_any_stage_it_goes_on_to_the_same_weights(
    build, config, unbroken, tmp_path, after
):
    def kill(progress, model):
        if progress.step == after:
            raise Killed

    checkpoint = tmp_path / "checkpoint.pt"
    with pytest.raises(Killed):
        build(config, kill, checkpoint)
    names = {p.name for p in tmp_path.iterdir()}
    begun = [(after > first) for first in (0, 2, 5)]  # a step after the stage's first was taken
    assert names == {f"checkpoint-{n}.pt" for n, one in enumerate(begun, start=1) if one}
    log = []
    model, _ = build(config, lambda progress, model: log.append(progress), checkpoint)
    assert _same(model, unbroken[0]) and log == unbroken[2]


def test_facts_of_lists_are_facts(world):
    facts = all_facts(world.pages)
    assert len({f.fact_id for f in facts}) == len(facts)
    kinds = {BY_NAME[f.relation].listed for f in facts}
    assert kinds == {True, False}
