"""The sources of a notebook are all modules it imports, directly or not."""

import nbformat
import pytest

from workbench.workflow.sources import imported_modules, notebook_sources


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import workbench.a.b", {"workbench", "workbench.a", "workbench.a.b"}),
        ("from workbench.a import b", {"workbench", "workbench.a", "workbench.a.b"}),
        ("from . import b", {"workbench", "workbench.room", "workbench.room.b"}),
        ("from ..a import b", {"workbench", "workbench.a", "workbench.a.b"}),
        ("from .. import a", {"workbench", "workbench.a"}),
        ("def f():\n    from ..a import b", {"workbench", "workbench.a", "workbench.a.b"}),
        ("import workbenchmark.a, numpy", set()),
        (
            "if TYPE_CHECKING:\n    from ..a import b\nelse:\n    from .. import c",
            {"workbench", "workbench.c"},
        ),
        ("if ready:\n    from .. import a", {"workbench", "workbench.a"}),
    ],
)
def test_imported_modules(source, names):
    assert set(imported_modules(source, "workbench.room")) == names


def test_transitive_sources_without_the_machinery(tmp_path):
    files = {
        "__init__.py": "",
        "runs.py": "from .a import one",
        "params/__init__.py": "from ..c import three",
        "a/__init__.py": "",
        "a/one.py": "def f():\n    from ..b.two import g",
        "b/__init__.py": "",
        "b/two.py": "from . import helper, CONSTANT",
        "b/helper.py": "",
        "b/unused.py": "",
        "c/__init__.py": "",
        "c/three.py": "",
    }
    package = tmp_path / "workbench"
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_markdown_cell("import workbench.c.three"),
        nbformat.v4.new_code_cell("%matplotlib inline\n!ls\nfrom workbench.params import x"),
        nbformat.v4.new_code_cell("import workbench.runs\nfrom workbench.a.one import f"),
    ]
    nbformat.write(book, tmp_path / "n.ipynb")
    found = {
        path.relative_to(package).as_posix()
        for path in notebook_sources(tmp_path / "n.ipynb", package)
    }
    assert found == {
        "__init__.py", "a/__init__.py", "a/one.py", "b/__init__.py", "b/two.py", "b/helper.py",
    }  # fmt: skip
