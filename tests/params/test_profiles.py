"""Every committed profile validates, and the paper profiles carry the papers' numbers."""

import pytest

from workbench.errors import WorkbenchError
from workbench.methods.registry import condition_names, load_condition
from workbench.params import load_profile, profile_names
from workbench.workflow.stages import STAGES, check_profile, stage


@pytest.mark.parametrize("name", profile_names())
def test_profile_is_valid_and_names_what_exists(name):
    profile = load_profile(name)
    assert profile.name == name
    for condition in profile.conditions:
        assert load_condition(condition).name == condition
    assert set(profile.stages) <= {stage.name for stage in STAGES}


def test_all_profiles_are_there():
    embedded = {"smoke", "tiny", "study", "study-g1", "small"}
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
    calibration = profile.calibration
    assert (calibration.every, calibration.questions, calibration.rollouts) == (25, 300, 5)
    assert calibration.layers == (21, 24, 27) and calibration.lag is None


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


def test_studies_are_tiny_in_large():
    tiny, studied = load_profile("tiny"), set()
    for study in map(load_profile, ("study", "study-g1")):
        assert len(study.seeds) >= 3 and study.grpo.steps > tiny.grpo.steps
        same = ("corpus", "retrieval", "questions", "agent", "machine", "policy.source")
        assert tiny.digest(*same) == study.digest(*same)
        studied |= set(study.conditions)
    assert set(tiny.conditions) < studied == set(condition_names())


def test_a_condition_sees_its_own_seeds():
    profile = load_profile("tiny", ["seeds=[0, 1, 2]", "seeds_of={oo: [0]}"])
    assert profile.of_condition("oo").seeds == (0,)
    assert profile.of_condition("search_r1").seeds == (0, 1, 2)
    train = stage("train")
    assert train.params(profile, "oo")["seeds"] == [0]
    same = load_profile("tiny", ["seeds=[0]"])
    assert train.settings_hash(profile, "oo") == train.settings_hash(same, "oo")


@pytest.mark.parametrize("seeds", ["[]", "[7]", "[1, 1]", "[1]"])
def test_seeds_of_a_condition_are_some_of_the_seeds(seeds):
    with pytest.raises(WorkbenchError, match="seeds_of.oo"):
        load_profile("tiny", ["seeds=[0, 1]", f"seeds_of={{oo: {seeds}}}"])


@pytest.mark.parametrize("name", ["base", "closed_book"])
def test_no_condition_is_named_like_the_untrained_policy(name):
    listed = f"[oo, {name}]"
    with pytest.raises(WorkbenchError, match=f"'{name}' names the untrained policy"):
        load_profile("tiny", [f"conditions={listed}", "voting.conditions=[oo]"])


def test_a_stage_about_a_condition_runs_where_it_is_trained():
    study = stage("search_g1_study")
    assert study.keys(load_profile("tiny")) == ("main",)
    without = load_profile("tiny", ["conditions=[oo]", "voting.conditions=[oo]"])
    assert study.keys(without) == ()
    report = stage("report").upstream_runs(without, "main")
    assert "search_g1_study/main" not in report and "credit_study/main" in report
    with pytest.raises(WorkbenchError, match="about the condition 'search_g1'"):
        study.check_key(without, "main")


def test_seeds_of_a_condition_that_does_not_exist():
    with pytest.raises(WorkbenchError, match="no condition 'serch_r1'"):
        check_profile(load_profile("tiny", ["seeds_of={serch_r1: [0]}"]))
