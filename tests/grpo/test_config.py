"""Settings of a run: the papers' defaults, refusals."""

import pytest
from pydantic import ValidationError

from workbench.grpo import GRPOConfig, ObjectiveConfig


def test_defaults_are_those_of_the_papers():
    config = GRPOConfig(steps=1)
    objective = config.objective
    assert (config.questions_per_step, config.group_size) == (128, 5)
    assert (config.mini_batch_questions, config.micro_batch_rollouts, config.epochs) == (32, 8, 1)
    assert (config.optimiser.lr, config.optimiser.warmup_ratio) == (1e-6, 0.285)
    assert (objective.epsilon, objective.kl_clip) == (0.2, 10.0)
    assert (objective.entropy_coefficient, objective.kl_coefficient) == (0.001, 0.001)
    assert config.updates_per_step == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"group_size": 0},
        {"optimiser": {"lr": "1e-5"}},
        {"objective": {"epsilon": 1.0}},
        {"objective": {"dual_clip": 1.0}},
        {"lora": {"rank": 0}},
        {"learning_rate": 1e-5},
        {"dtype": "float16"},
        {"top_p": 0.95, "old_logprobs": "rollout"},
        {"share_prefixes": True, "attention": "flash_attention_2"},
    ],
)
def test_wrong_settings_are_refused(changes):
    with pytest.raises(ValidationError):
        GRPOConfig(**({"steps": 1} | changes))


def test_an_uneven_last_mini_batch_counts():
    config = GRPOConfig(steps=1, questions_per_step=10, mini_batch_questions=4, epochs=2)
    assert config.updates_per_step == 6 and config.mini_batch == 4
    assert GRPOConfig(steps=1, questions_per_step=3, mini_batch_questions=8).mini_batch == 3
    assert ObjectiveConfig().dual_clip is None
