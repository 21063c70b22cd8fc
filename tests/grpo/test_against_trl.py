"""Our loss and gradient beside TRL's where settings overlap.

TRL's ``loss_type="bnpo"`` is the token mean of a local batch divided by the accumulation
steps, which is S1 Eq. 12; its ``delta`` is the dual clip (for a negative advantage the two
agree, for a positive one both are inactive); its KL is ours without the clip once
``use_bias_correction_kl``, which multiplies it by the ratio, is off.
"""

import copy

import numpy as np
import pytest
import torch

from workbench.grpo.config import ObjectiveConfig
from workbench.grpo.lora import Policy
from workbench.grpo.metrics import token_metrics
from workbench.grpo.update import Updater, make_batch
from workbench.grpo.workers import Workers

OBJECTIVE = ObjectiveConfig(
    epsilon=0.2, dual_clip=1.3, entropy_coefficient=0.02, kl_coefficient=0.1, kl_clip=1e6
)


@pytest.fixture(scope="module")
def trl_trainer(world, tmp_path_factory):
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    vocabulary = {f"t{i}": i for i in range(world.VOCABULARY)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="t1")),
        pad_token="t0",
        eos_token="t2",
    )
    args = GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("trl")),
        loss_type="bnpo",
        epsilon=OBJECTIVE.epsilon,
        delta=OBJECTIVE.dual_clip,
        use_bias_correction_kl=False,
        entropy_coef=OBJECTIVE.entropy_coefficient,
        per_device_train_batch_size=4,
        num_generations=4,
        use_cpu=True,
        bf16=False,
        report_to=[],
    )
    trainer = GRPOTrainer(
        model=world.tiny_model(),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=args,
        train_dataset=Dataset.from_dict({"prompt": ["t3 t4"]}),
        processing_class=tokenizer,
    )
    # Set afterwards: with it the constructor would look for a reference model on disk.
    trainer.beta = OBJECTIVE.kl_coefficient
    trainer.current_gradient_accumulation_steps = 1
    return trainer


def rollouts(world):
    """Rollouts of the base policy, whose log-probs are the old and the reference ones."""
    engine = world.ToyEngine(world.tiny_model(), None)
    found = world.toy_rollout(
        engine, None, world.items(3), world.ToyAgent(), world.toy_config(), 1, 4
    )
    rng = np.random.default_rng(4)
    advantages = [np.where(t.generated, rng.normal() * 2, 0).astype(np.float32) for t in found]
    return found, advantages


def padded(trajectories, advantages) -> dict[str, torch.Tensor]:
    """TRL's inputs: prompts padded on the left, completions on the right, tools masked."""
    prompts = [t.tokens[: t.prompt_length] for t in trajectories]
    completions = [t.tokens[t.prompt_length :] for t in trajectories]
    widths = max(map(len, prompts)), max(map(len, completions))

    def left(rows):
        return torch.tensor(np.array([np.pad(r, (widths[0] - len(r), 0)) for r in rows]))

    def right(rows):
        return torch.tensor(np.array([np.pad(r, (0, widths[1] - len(r))) for r in rows]))

    masks = [t.generated[t.prompt_length :] for t in trajectories]
    logprobs = right([np.nan_to_num(t.logprobs[t.prompt_length :]) for t in trajectories])
    return {
        "prompt_ids": left(prompts).long(),
        "prompt_mask": left([np.ones(len(p), int) for p in prompts]),
        "completion_ids": right(completions).long(),
        "completion_mask": right([np.ones(len(c), int) for c in completions]),
        "tool_mask": right([m.astype(int) for m in masks]),
        "advantages": torch.tensor([a[np.flatnonzero(a)[0]] for a in advantages]),
        "old_per_token_logps": logprobs,
        "ref_per_token_logps": logprobs,
        "num_items_in_batch": torch.tensor(sum(map(np.sum, masks))),
    }


def test_loss_gradient_and_metrics(world, trl_trainer, monkeypatch):
    config = world.toy_config(
        objective=OBJECTIVE, old_logprobs="rollout", trained="full", micro_batch_rollouts=None
    )
    policy = Policy(world.tiny_model(), config, seed=0)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(9)
        for parameter in policy.parameters.values():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    trajectories, advantages = rollouts(world)

    theirs = trl_trainer.model
    theirs.load_state_dict(copy.deepcopy(policy.model.state_dict()))
    theirs.train()
    theirs.zero_grad()
    loss = trl_trainer._compute_loss(theirs, padded(trajectories, advantages))
    loss.backward()

    updater = Updater(policy, config, Workers(), seed=0)
    monkeypatch.setattr(updater, "_step", lambda record: None)
    records = updater.update(make_batch(trajectories, advantages, [0] * 12), step=0)
    expected = dict(theirs.named_parameters())
    for name, parameter in policy.parameters.items():
        torch.testing.assert_close(
            parameter.grad, expected[name].grad, atol=2e-6, rtol=2e-4, msg=name
        )
    ours = token_metrics([records[0].sums(OBJECTIVE, True)], 1)
    logged = {k: v[-1] for k, v in trl_trainer._metrics["train"].items()}
    assert ours["kl"] == pytest.approx(logged["kl"], rel=1e-4)
    assert ours["entropy"] == pytest.approx(logged["entropy"], rel=1e-5)
    assert ours["clip_low"] == pytest.approx(logged["clip_ratio/low_mean"], abs=1e-6)
    assert ours["clip_high"] == pytest.approx(logged["clip_ratio/high_mean"], abs=1e-6)
    assert ours["clip_low"] > 0 and ours["clip_high"] > 0 and ours["clip_dual"] > 0
    assert -ours["objective"] == pytest.approx(loss.item(), rel=1e-5)
