"""The recipe: two stages one after the other, killed and resumed, and the words it needs."""

import pytest
import torch

from workbench.policy.config import PolicyConfig, SecondStage
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
    second = default.second.training.model_copy(update=FIRST.model_dump() | {"steps": 3, "seed": 1})
    return default.model_copy(
        update={
            "model": world.small,
            "training": FIRST,
            "second": default.second.model_copy(update={"training": second}),
        }
    )


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


def test_steps_are_counted_through_both_stages(unbroken, config):
    model, tokenizer, log, weights = unbroken
    assert [p.step for p in log] == [0, 1, 2, 3, 4]
    assert all(not torch.equal(a, b) for a, b in zip(weights, weights[1:], strict=False))
    assert torch.equal(weights[-1], model.get_input_embeddings().weight)
    assert not model.training and model.config.vocab_size == len(tokenizer)
    assert [s.steps for _, s in stages(config)] == [2, 3]
    assert [d.told for d, _ in stages(config)] == [0.0, 1.0]


def test_a_second_stage_without_steps_is_left_out(build, config, unbroken):
    nothing = config.second.training.model_copy(update={"steps": 0})
    alone = config.model_copy(update={"second": SecondStage(
        demonstrations=config.second.demonstrations, training=nothing,
    )})  # fmt: skip
    assert [s.steps for _, s in stages(alone)] == [2]
    log = []
    build(alone, lambda progress, model: log.append(progress))
    assert log == unbroken[2][:2]


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_killed_in_either_stage_it_goes_on_to_the_same_weights(
    build, config, unbroken, tmp_path, after
):
    def kill(progress, model):
        if progress.step == after:
            raise Killed

    checkpoint = tmp_path / "checkpoint.pt"
    with pytest.raises(Killed):
        build(config, kill, checkpoint)
    names = {p.name for p in tmp_path.iterdir()}
    assert names <= {"checkpoint-1.pt", "checkpoint-2.pt"}
    assert ("checkpoint-2.pt" in names) == (after > 2)
    log = []
    model, _ = build(config, lambda progress, model: log.append(progress), checkpoint)
    assert _same(model, unbroken[0]) and log == unbroken[2]


def test_facts_of_lists_are_facts(world):
    facts = all_facts(world.pages)
    assert len({f.fact_id for f in facts}) == len(facts)
    kinds = {BY_NAME[f.relation].listed for f in facts}
    assert kinds == {True, False}
