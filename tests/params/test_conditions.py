"""The thirteen conditions of the retrieval-credit study carry the paper's names and numbers."""

import pytest

from workbench.methods import Context, build_method, load_condition
from workbench.params import load_profile
from workbench.reporting.published import published

SIGNALS = {"cov": "Cov", "cov_dep": "Cov-Dep", "am": "AM"}
LABELS = {"oo": "OO"}
LABELS |= {f"{s}_{kind}": f"{SIGNALS[s]}-{kind}" for s in SIGNALS for kind in ("scalar", "local")}
LABELS |= {
    f"{s}_{kind.replace('-', '_')}": f"{SIGNALS[s]}-{kind}"
    for s in ("cov", "am")
    for kind in ("permute", "no-flat", "flat-only")
}


def test_labels_are_those_of_the_paper():
    assert {name: load_condition(name).label for name in LABELS} == LABELS
    assert set(LABELS.values()) == set(published("retrieval_credit", "8")["method"])


@pytest.mark.parametrize("name", [n for n in LABELS if n != "oo"])
def test_numbers_of_the_paper(name):
    """S3 sections 3 and 4, App. A.3."""
    condition = load_condition(name)
    params = build_method(condition, Context(chunks={})).params
    assert (params.delta, params.digits) == (1e-6, 4)
    signal, _, kind = name.partition("_dep_") if "_dep_" in name else name.partition("_")
    assert params.signal == (f"{signal}_dep" if "_dep_" in name else signal)
    if kind == "scalar":
        assert (condition.method, params.alpha) == ("retrieval_scalar", 0.25)
        return
    assert (condition.method, params.weight) == ("retrieval_local", 0.5)
    assert params.permute == (kind == "permute") and params.permutation_seed == 1729
    assert params.outcome_groups == (kind if "flat" in kind else "all")
    assert params.flat_range == 1e-6


def test_the_papers_profile_trains_all_thirteen():
    profile = load_profile("paper-qwen3-4b")
    assert set(profile.conditions) == set(LABELS) and len(profile.conditions) == 13
    assert profile.grpo.objective.dual_clip == 3.0
    for name in ("smoke", "tiny", "study"):
        assert load_profile(name).grpo.objective.dual_clip == 3.0
