"""Which files of the package a notebook depends on, read from its import statements.

Snakemake reruns a notebook when a declared input changes, so every module that the notebook
imports, directly or through other modules (imports inside functions included), is one.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import workbench

PACKAGE = "workbench"
PACKAGE_ROOT = Path(workbench.__file__).resolve().parent

# What these contribute to a result is recorded as params; they run notebooks, not models.
MACHINERY = ("workbench.params", "workbench.runs", "workbench.workflow", "workbench.cli")


def notebook_sources(
    notebook: Path, package_root: Path = PACKAGE_ROOT, modules: Iterable[str] = ()
) -> list[Path]:
    """Package files that the code cells of a notebook import, transitively; sorted.

    ``modules`` are further ones that it imports by a name found in its params.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    pending = [
        *modules,
        *(name for source in code for name in imported_modules(_without_magics(source), PACKAGE)),
    ]
    found: set[Path] = set()
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen or _is_machinery(name):
            continue
        seen.add(name)
        if (path := _file_of(name, package_root)) is not None:
            found.add(path)
            pending += _imports_of(path, name)
    return sorted(found)


def imported_modules(source: str, package: str) -> list[str]:
    """Dotted names under ``workbench`` that Python code may import.

    ``package`` is what relative imports start from.  ``from a import b`` gives ``a`` and
    ``a.b``; whether ``a.b`` is a module is for the caller to see.  Parents are included,
    because importing ``a.b`` runs ``a/__init__.py``.  What is imported for type checking only
    is left out.
    """
    names: list[str] = []
    for node in _executed(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    inside = [n for n in names if n.split(".")[0] == PACKAGE]
    return sorted({".".join(n.split(".")[:i]) for n in inside for i in range(1, n.count(".") + 2)})


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, except what stands under ``if TYPE_CHECKING:``."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for branch in child.orelse:
                yield from _executed(branch)
        else:
            yield from _executed(child)


@cache
def _imports_of(path: Path, name: str) -> list[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return imported_modules(path.read_text(encoding="utf-8"), package)


def _file_of(name: str, package_root: Path) -> Path | None:
    stem = package_root.joinpath(*name.split(".")[1:])
    for path in (stem / "__init__.py", stem.with_suffix(".py")):
        if name != PACKAGE and path.is_file():
            return path
    return package_root / "__init__.py" if name == PACKAGE else None


def _is_machinery(name: str) -> bool:
    return any(name == m or name.startswith(m + ".") for m in MACHINERY)


def _without_magics(source: str) -> str:
    return "\n".join(
        "" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()
    )
