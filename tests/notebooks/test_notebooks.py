"""Every notebook keeps the house's form; that it runs is nbval's business."""

import ast

import nbformat
import pytest

from workbench.params import load_profile
from workbench.runs import project_root
from workbench.workflow.refresh import parameter_defaults, refresh
from workbench.workflow.stages import STAGES, stage

FOLDER = project_root() / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def with_conditions(*names):
    listed = f"[{', '.join(names)}]"
    return load_profile("tiny", [f"conditions={listed}", f"voting.conditions={listed}"])


def test_each_notebook_is_a_stage_and_each_stage_a_notebook():
    assert [s.notebook for s in STAGES] == [path.stem for path in NOTEBOOKS]
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{i:02}" for i in range(1, len(STAGES) + 1)]


def test_readme_maps_every_notebook():
    readme = (project_root() / "README.md").read_text()
    for path in NOTEBOOKS:
        assert f"(notebooks/{path.name})" in readme, path.name


def test_stages_come_after_what_they_read():
    names = [s.name for s in STAGES]
    for entry in STAGES:
        wanted = [name for name, _ in entry.wanted]
        read = (*entry.upstream, *entry.own, *entry.optional, *wanted)
        assert all(names.index(up) < names.index(entry.name) for up in read)


def test_only_a_method_that_needs_a_stage_reads_it():
    train, tiny = stage("train"), with_conditions("oo", "search_g1")
    assert train.upstream_of(tiny, "oo") == ("corpus", "questions")
    assert train.upstream_of(tiny, "search_g1") == ("corpus", "questions", "calibration")
    evaluation, plain = stage("evaluation"), with_conditions("oo")
    assert "calibration" in evaluation.upstream_of(tiny, "main")
    assert "calibration" not in evaluation.upstream_of(plain, "main")
    other = load_profile("tiny", ["calibration.every=3"])
    tiny = load_profile("tiny")
    assert train.settings_hash(tiny, "oo") == train.settings_hash(other, "oo")
    assert train.settings_hash(tiny, "search_g1") != train.settings_hash(other, "search_g1")


def test_a_condition_reads_its_own_run_and_the_base_policy_none():
    profile, entry = with_conditions("oo", "search_r1"), stage("grounding")
    assert entry.keys(profile) == ("base", "oo", "search_r1")
    assert list(entry.upstream_runs(profile, "oo")) == [
        "questions/main", "train/oo", "predictions/oo",
    ]  # fmt: skip
    assert list(entry.upstream_runs(profile, "base")) == ["questions/main", "predictions/base"]
    assert "condition" not in entry.params(profile, "base")
    assert entry.params(profile, "oo")["condition"]["method"] == "outcome_f1"


def test_an_optional_stage_is_read_where_the_profile_runs_it():
    report, profile = stage("report"), load_profile("tiny", ["stages=[report, credit_view]"])
    assert "credit_view" in report.upstream_of(profile, "main")
    assert "credit_study" not in report.upstream_of(profile, "main")


@pytest.mark.parametrize("name", ["smoke", "tiny", "paper-3b"])
@pytest.mark.parametrize("entry", STAGES, ids=lambda s: s.name)
def test_declared_parts_exist(entry, name):
    profile = load_profile(name)
    for key in entry.keys(profile):
        assert set(entry.params(profile, key)) >= set(entry.parts)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
class TestForm:
    def test_opens_with_what_one_learns_and_ends_with_two_exercises(self, path):
        first, *_, last = read(path).cells
        assert first.source.startswith(f"# {path.stem[:2]} · ")
        assert "**What you will learn**" in first.source
        assert last.cell_type == "markdown" and "## Two exercises" in last.source
        assert "\n1. " in last.source and "\n2. " in last.source

    def test_parameters_are_the_smoke_profile(self, path):
        defaults = parameter_defaults(path)
        assert defaults["profile"] == "smoke" and defaults["overrides"] == []
        entry = next(s for s in STAGES if s.notebook == path.stem)
        assert ("condition" in defaults) == entry.per_condition
        if entry.per_condition:
            entry.check_key(load_profile("smoke"), defaults["condition"])

    def test_opens_its_own_stage_and_finishes(self, path):
        sources = [cell.source for cell in code_cells(path)]
        entry = next(s for s in STAGES if s.notebook == path.stem)
        assert sum(f'open_run("{entry.name}"' in source for source in sources) == 1
        assert "run.finish()" in sources[-1]

    def test_outputs_are_kept_and_belong_to_no_machine(self, path, tmp_path):
        counts = [cell.execution_count for cell in code_cells(path)]
        assert counts == list(range(1, len(counts) + 1)), "run: make notebooks"
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        refresh(copy, path)  # refuses errors, stderr and paths of a machine
        assert copy.read_bytes() == path.read_bytes()
        tag = "nbval-check-output"
        compared = [c for c in code_cells(path) if tag in c.metadata.get("tags", ())]
        assert len(compared) >= 2 and all(cell.outputs for cell in compared)

    def test_no_long_function_lives_in_it(self, path):
        for cell in code_cells(path):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    assert node.end_lineno - node.lineno < 25, node.name


def test_refresh_refuses_noise(tmp_path):
    from workbench.errors import WorkbenchError

    book = nbformat.v4.new_notebook()
    cell = nbformat.v4.new_code_cell("x")
    book.cells = [cell]
    nbformat.write(book, tmp_path / "kept.ipynb")
    home = "/" + "home/someone/file.txt"
    for output, say in (
        (nbformat.v4.new_output("stream", name="stderr", text="a bar"), "stderr"),
        (nbformat.v4.new_output("stream", name="stdout", text=f"see {home}"), home),
        (nbformat.v4.new_output("error", ename="E", evalue="v", traceback=[]), "error"),
    ):
        cell.outputs = [output]
        nbformat.write(book, tmp_path / "run.ipynb")
        with pytest.raises(WorkbenchError, match=say):
            refresh(tmp_path / "kept.ipynb", tmp_path / "run.ipynb")
    cell.source = "y"
    nbformat.write(book, tmp_path / "run.ipynb")
    with pytest.raises(WorkbenchError, match="not the one that was executed"):
        refresh(tmp_path / "kept.ipynb", tmp_path / "run.ipynb")


def test_undeclared_params_and_inputs_are_refused():
    from workbench.errors import WorkbenchError
    from workbench.workflow.notebook import Parts, Run

    profile = load_profile("smoke")
    parts = Parts(profile, ("corpus", "evaluation.questions"), "s")
    assert parts.corpus == profile.corpus
    assert parts.evaluation.questions == profile.evaluation.questions
    for wrong in (lambda: parts.grpo, lambda: parts.evaluation.samples):
        with pytest.raises(WorkbenchError, match="does not declare that it uses"):
            wrong()
    run = Run(stage("corpus"), profile, "main", parts, FOLDER, None)
    with pytest.raises(WorkbenchError, match="does not declare that it reads 'questions/main'"):
        run.input("questions")
