"""The set-up files agree with each other and with what the package imports."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib

import rattler
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from workbench.runs import project_root

ROOT = project_root()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAIN = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = {
    name: [Requirement(text) for text in texts]
    for name, texts in PROJECT["optional-dependencies"].items()
}


def constraints() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if not line.startswith("#")]
    return {canonicalize_name(r.name): r for r in found}


def test_constraints_pin_every_dependency_within_its_range():
    pins = constraints()
    for requirement in MAIN + EXTRAS["dev"]:
        (pin,) = pins[canonicalize_name(requirement.name)].specifier
        assert pin.operator == "==" and requirement.specifier.contains(pin.version), requirement


def test_constraints_are_plain_pins_that_hold_here():
    for name, requirement in constraints().items():
        assert requirement.url is None and "+" not in str(requirement.specifier), requirement
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        assert requirement.specifier.contains(installed.split("+")[0]), (requirement, installed)


def test_torch_is_pinned_to_the_tested_cpu_build():
    assert str(constraints()["torch"].specifier) == "==2.13.0"


def test_extras():
    assert {r.name for r in EXTRAS["gpu"]} == {"vllm", "faiss-gpu"}
    assert {"pytest", "nbval", "hypothesis", "trl"} <= {r.name for r in EXTRAS["dev"]}


def test_every_import_of_the_package_is_a_declared_dependency():
    declared = {canonicalize_name(r.name) for r in MAIN + EXTRAS["gpu"] + EXTRAS["endpoint"]}
    owners = importlib.metadata.packages_distributions()
    for path in (ROOT / "src").rglob("*.py"):
        for name in imported(path):
            if name in sys.stdlib_module_names or name == "workbench":
                continue
            distributions = {canonicalize_name(d) for d in owners.get(name, [name])}
            assert distributions & declared, f"{path.relative_to(ROOT)} imports {name}"


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def test_environment_yml():
    """Conda specs parse and allow the right Python; that the names exist is not checked here."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    specs = {spec.name.normalized: spec for spec in map(rattler.MatchSpec, conda)}
    assert set(specs) == {"python", "pip", "git", "make"}
    allowed = SpecifierSet(PROJECT["requires-python"])
    versions = SpecifierSet(str(specs["python"].version))
    assert versions.contains("3.11.7") and not versions.contains("3.10.14")
    assert all(allowed.contains(v) for v in ("3.11.0", "3.12.4") if versions.contains(v))
    assert pip == {"pip": ["--constraint constraints.txt", "--editable .[dev]"]}
    assert "conda-forge" in environment["channels"]


def make(*arguments: str) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, text=True, capture_output=True, check=False,
        env=environment,
    )  # fmt: skip


def test_readme_commands_exist():
    readme = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^ *(?:\$ )?make ([a-z-]+)", readme, re.MULTILINE))
    targets |= set(re.findall(r"`make ([a-z-]+)", readme))
    assert {"reproduce", "test", "lab", "policy", "figures", "notebooks"} <= targets
    for target in targets:
        done = make("--dry-run", target, "STAMP=Makefile")
        assert done.returncode == 0, done.stderr


def test_workbench_commands_of_readme_and_makefile_exist():
    from typer.main import get_command

    from workbench.cli import app

    texts = (ROOT / "README.md").read_text() + (ROOT / "Makefile").read_text()
    used = set(re.findall(r"(?:`|/)workbench ([a-z][a-z-]+)", texts))
    assert {"reproduce", "params", "publish"} <= used <= set(get_command(app).commands)


def test_make_passes_profile_and_overrides():
    done = make("--dry-run", "reproduce", "STAMP=Makefile", "PROFILE=smoke", "SET=a.b=1 c=[2]")
    assert "--set 'a.b=1' --set 'c=[2]' --profile smoke" in done.stdout


def test_every_command_makes_the_environment_first(tmp_path):
    for target in ("reproduce", "test", "lab", "policy", "figures", "notebooks", "report"):
        done = make("--dry-run", target, f"VENV={tmp_path}/venv")
        assert "-m venv" in done.stdout and "--constraint constraints.txt torch" in done.stdout


def test_wrong_python_is_said(tmp_path):
    done = make("install", f"VENV={tmp_path}/venv", "PYTHON=/bin/false")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed; '/bin/false' is not" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_changed_requirements_reinstall(tmp_path):
    stamp = tmp_path / ".installed"
    stamp.touch()
    os.utime(stamp, (0, 0))
    assert "pip install" in make("--dry-run", "install", f"STAMP={stamp}").stdout
    os.utime(stamp)
    assert "pip install" not in make("--dry-run", "install", f"STAMP={stamp}").stdout


def test_set_up_files_name_no_host():
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "environment.yml", ".ci/run"):
        assert "://" not in (ROOT / name).read_text(), name


def test_ci_runs_the_tests():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK) and "make test" in script.read_text()


def test_light_commands_load_no_heavy_library():
    code = (
        "import sys, workbench.cli, workbench.params, workbench.workflow;"
        "workbench.params.load_profile('smoke');"
        "heavy = {'torch', 'transformers', 'faiss', 'datasets', 'matplotlib', 'papermill'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
