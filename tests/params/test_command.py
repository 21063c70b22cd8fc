"""``workbench params``: what it prints, what it refuses, and its exit status."""

import pytest
import yaml
from typer.testing import CliRunner

from workbench.cli import app, main
from workbench.methods.registry import condition_names
from workbench.params import load_profile, profile_names


def run(*arguments):
    done = CliRunner().invoke(app, ["params", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_check_takes_everything_that_is_committed():
    done = run("check")
    assert done.exit_code == 0, done.output
    named = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert named == [
        *(f"profile {name}" for name in profile_names()),
        *(f"condition {name}" for name in condition_names()),
    ]


def test_check_takes_names_paths_and_overrides(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: smoke\nseeds: [1, 2, 3]\n")
    fewer = ("--set", "conditions=[oo]", "--set", "voting.conditions=[oo]")
    done = run("check", "tiny", str(path), *fewer, "-s", "grpo.steps=7")
    assert done.exit_code == 0 and done.stdout.splitlines() == [
        f"profile tiny: 1 conditions, {len(load_profile('tiny').seeds)} seeds",
        f"profile {path}: 1 conditions, 3 seeds",
    ]


@pytest.mark.parametrize(
    ("override", "say"),
    [
        ("grpo.stepz=7", "override grpo.stepz=7: grpo.stepz: unknown key 'stepz' -- did you mean"),
        ("grpo.steps=seven", "override grpo.steps=seven: grpo.steps: "),
        ("grpo.optimiser.lr=1e-5", "'1e-5' is text, not a number -- write 1.0e-5"),
        ("grpo.steps", "override grpo.steps: an override is 'key.key=value'"),
        ("conditions=[oo]", "voting.conditions: 'cov_local' is not among the profile's"),
        ("stages=[corpsu]", "profile smoke: stages: workflow/stages.py: no stage 'corpsu'"),
    ],
)
def test_check_tells_the_fault(override, say):
    done = run("check", "smoke", "--set", override)
    assert done.exit_code == 1 and say in done.stderr and done.stdout == ""


def test_check_looks_conditions_up():
    every = ["oo", "cov_local", "search_r1", "search_g1", "ooo"]
    done = run("check", "smoke", "--set", f"conditions={every}".replace("'", ""))
    assert done.exit_code == 1
    assert "profile smoke: conditions: params/conditions: no condition 'ooo'" in done.stderr


def test_check_goes_on_after_a_fault(tmp_path):
    bad, worse = tmp_path / "bad.yaml", tmp_path / "worse.yaml"
    bad.write_text("extends: smoke\ngrpo: {steps: 0}\n")
    worse.write_text("extends: [smoke\n")
    done = run("check", str(bad), "smoke", str(worse), "nowhere")
    assert done.exit_code == 1 and done.stdout.startswith("profile smoke: ")
    first, second, third = done.stderr.splitlines()
    assert f"{bad}:2: grpo.steps: " in first
    assert f"{worse}:2: not YAML" in second
    assert "no profile 'nowhere' -- one of " in third


def test_show_prints_what_reads_back(tmp_path):
    done = run("show", "smoke", "--set", "seeds=[9]")
    assert done.exit_code == 0 and yaml.safe_load(done.stdout)["seeds"] == [9]


@pytest.mark.parametrize(
    ("arguments", "say"),
    [
        (("reproduce", "smoke"), "'smoke' is no option -- a profile is named --profile smoke"),
        (("reproduce", "--cores", "0"), "should be greater than or equal to 1"),
    ],
)
def test_reproduce_refuses_what_it_would_misread(arguments, say, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["workbench", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code and say in " ".join(capsys.readouterr().err.split())


def test_a_disk_that_cannot_be_written_is_told_in_one_line(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "in" / "report.html"
    monkeypatch.setattr("sys.argv", ["workbench", "report", "-p", "smoke", "--out", str(target)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    said = f"error: {target.parent}: Not a directory -- move the file that is in the way\n"
    assert capsys.readouterr().err == said
