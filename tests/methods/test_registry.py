"""Entries of params/conditions: validated, unknown keys refused with their place."""

from types import SimpleNamespace

import pytest

from workbench.errors import WorkbenchError
from workbench.methods import (
    Condition,
    Context,
    build_method,
    condition_names,
    load_condition,
    method_names,
)
from workbench.readouts.config import CalibrationConfig
from workbench.readouts.refit import Refits

ENTRY = """\
label: A label
method: search_r1
paper: S1
settings:
  direct_bonus: 0.25
"""


@pytest.fixture
def entry(tmp_path):
    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return path

    return write


TASK = SimpleNamespace(calibration=CalibrationConfig(), model_copy=lambda update: TASK)


@pytest.mark.parametrize("name", condition_names())
def test_every_entry_builds_its_method(name):
    condition = load_condition(name)
    context = Context(chunks={}, evaluator="evaluator.safetensors", refits=Refits("rounds", TASK))
    method = build_method(condition, context)
    assert condition.name == name and method.name == condition.method
    assert condition.published and condition.label and condition.paper[:2] in ("S1", "S2", "S3")


def test_every_method_has_an_entry():
    assert {load_condition(name).method for name in condition_names()} == set(method_names())
    assert {"outcome_f1", "search_r1"} <= set(method_names())


def test_a_file_elsewhere_is_named_by_its_stem(entry):
    condition = load_condition(entry(ENTRY))
    assert condition.name == "mine"
    assert build_method(condition).params.direct_bonus == 0.25


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("direct_bonus: 0.25", "direct_bonos: 0.25", r"mine\.yaml:5.*direct_bonos.*direct_bonus"),
        ("direct_bonus: 0.25", "direct_bonus: 5e-1", r"mine\.yaml:5: direct_bonus.*text"),
        ("direct_bonus: 0.25", "direct_bonus: -1.0", r"mine\.yaml:5: direct_bonus"),
        ("method: search_r1", "method: search_r2", r"mine\.yaml:2: method: .*search_r1"),
        ("method: search_r1", "method: registry", r"mine\.yaml:2: method: no method 'registry'"),
        ("label: A label", "lable: A label", r"mine\.yaml:1.*lable"),
        ("paper: S1\n", "", r"paper.*missing"),
    ],
)
def test_faults_name_file_line_and_field(entry, old, new, message):
    with pytest.raises(WorkbenchError, match=message):
        load_condition(entry(ENTRY.replace(old, new)))


def test_no_such_condition():
    with pytest.raises(WorkbenchError, match="no condition 'search_r3'.*oo, .*search_r1"):
        load_condition("search_r3")


def test_bad_settings_are_refused_without_a_file_too():
    condition = Condition(
        name="x", label="x", method="search_r1", paper="S1", settings={"bonus": 1.0}
    )
    with pytest.raises(WorkbenchError, match="condition x: settings.*bonus"):
        build_method(condition)
