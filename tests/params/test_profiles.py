"""Every committed profile validates, and the paper profiles carry the papers' numbers."""

import pytest

from workbench.methods.registry import load_condition
from workbench.params import load_profile, profile_names
from workbench.workflow.stages import STAGES


@pytest.mark.parametrize("name", profile_names())
def test_profile_is_valid_and_names_what_exists(name):
    profile = load_profile(name)
    assert profile.name == name
    for condition in profile.conditions:
        assert load_condition(condition).name == condition
    assert set(profile.stages) <= {stage.name for stage in STAGES}


def test_all_profiles_are_there():
    embedded = {"smoke", "tiny", "study", "small"}
    assert set(profile_names()) == embedded | {"paper-3b", "paper-7b", "paper-qwen3-4b"}


@pytest.mark.parametrize(
    ("name", "model"),
    [("paper-3b", "Qwen/Qwen2.5-3B-Instruct"), ("paper-7b", "Qwen/Qwen2.5-7B-Instruct")],
)
def test_search_g1_numbers(name, model):
    """S1 section 7.2.1."""
    profile = load_profile(name)
    agent, grpo, objective = profile.agent, profile.grpo, profile.grpo.objective
    assert profile.policy.source == model
    assert len(profile.seeds) == 4
    assert (agent.protocol, agent.max_rounds, agent.passages) == ("tag", 4, 3)
    assert (agent.max_prompt_tokens, agent.max_response_tokens) == (4096, 500)
    assert (agent.max_start_tokens, agent.max_observation_tokens) == (2048, 500)
    assert (grpo.questions_per_step, grpo.mini_batch_questions) == (128, 32)
    assert (grpo.micro_batch_rollouts, grpo.group_size, grpo.epochs) == (8, 5, 1)
    assert (grpo.temperature, grpo.top_p) == (1.0, 0.95)
    assert (grpo.optimiser.lr, grpo.optimiser.warmup_ratio) == (1e-6, 0.285)
    assert (objective.epsilon, objective.entropy_coefficient) == (0.2, 0.001)
    assert (objective.kl_coefficient, objective.kl_clip, objective.dual_clip) == (0.001, 10, None)
    assert (profile.retrieval.encoder, profile.retrieval.top_k) == ("intfloat/e5-base-v2", 3)


def test_retrieval_credit_numbers():
    """S3 section 4 and Table 2."""
    profile = load_profile("paper-qwen3-4b")
    grpo, objective = profile.grpo, profile.grpo.objective
    assert profile.policy.source == "Qwen/Qwen3-4B-Instruct-2507"
    assert (profile.agent.protocol, profile.agent.max_rounds) == ("native", 4)
    assert profile.agent.passages == 3
    assert (profile.corpus.chunks.words, profile.corpus.chunks.boundary) == (100, "word")
    assert (grpo.questions_per_step, grpo.group_size, grpo.epochs) == (128, 5, 1)
    assert (grpo.temperature, grpo.top_p) == (1.0, 1.0)
    assert (grpo.optimiser.lr, grpo.optimiser.warmup_ratio) == (1e-6, 0.285)
    assert (objective.epsilon, objective.dual_clip, objective.kl_coefficient) == (0.2, 3.0, 0.001)
    assert profile.machine.dtype == "bfloat16"


def test_voting_rollouts_are_those_of_s2():
    assert {load_profile(name).voting.rollouts for name in profile_names()} == {8}


def test_study_is_tiny_in_large():
    tiny, study = load_profile("tiny"), load_profile("study")
    assert len(study.seeds) >= 3 and study.grpo.steps > tiny.grpo.steps
    same = ("corpus", "retrieval", "questions", "agent", "machine", "conditions", "policy.source")
    assert tiny.digest(*same) == study.digest(*same)
