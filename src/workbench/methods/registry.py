"""From an entry of params/conditions to a method object."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

from pydantic import JsonValue

from ..config import Settings
from ..errors import WorkbenchError
from ..params.validate import validate
from ..params.yamlfile import Document, read_yaml
from ..runs import project_root, shown
from .base import NOTHING, Context, Method


class Condition(Settings):
    """One entry of params/conditions: a method with its settings, and where it comes from.

    ``label`` is its name in tables; ``paper`` S1, S2 or S3 with the section; ``settings`` are
    the method's Params; ``published`` what the paper ran it with, for the table beside ours.
    """

    name: str
    label: str
    method: str
    paper: str
    settings: dict[str, JsonValue] = {}
    published: dict[str, JsonValue] = {}


def condition_names() -> list[str]:
    """Names under params/conditions."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def load_condition(name_or_path: str | Path) -> Condition:
    """A validated entry of params/conditions, or of a YAML file elsewhere.

    Raises
    ------
    WorkbenchError
        no such condition or method, or an unknown key or wrong value in the entry or in its
        ``settings``; file, line and field are named.
    """
    text = str(name_or_path)
    path = Path(text) if text.endswith((".yaml", ".yml")) else _folder() / f"{text}.yaml"
    if not path.is_file():
        raise WorkbenchError(
            f"no condition {text!r}",
            where=shown(path.parent),
            fix=f"one of {', '.join(condition_names())}, or a path that ends in .yaml",
        )
    document = read_yaml(path, shown=shown(path))
    document.data.setdefault("name", path.stem)
    condition = validate(Condition, document)
    module = _module(condition.method, document.place(("method",)))
    validate(module.Params, _part(document, "settings"))
    return condition


def build_method(condition: Condition, context: Context = NOTHING) -> Method:
    """The method object that a condition describes.

    Raises
    ------
    WorkbenchError : a wrong setting, or the method needs what ``context`` does not hold.
    """
    module = _module(condition.method, f"condition {condition.name}")
    where = f"condition {condition.name}: settings"
    params = validate(module.Params, Document(condition.settings, {(): where}))
    return module.build(params, context)


def method_needs(method: str) -> tuple[str, ...]:
    """Stages beside corpus and questions that a method's training reads: its ``NEEDS``."""
    return getattr(_module(method, f"method {method}"), "NEEDS", ())


def method_names() -> list[str]:
    """Modules of this room that define a method: ``Params`` and ``build(params, context)``."""
    names = [m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return sorted(name for name in names if hasattr(_import(name), "build"))


def _import(name: str) -> ModuleType:
    return importlib.import_module(f".{name}", __package__)


def _module(method: str, where: str) -> ModuleType:
    known = method_names()
    if method not in known:
        near = difflib.get_close_matches(method, known, n=1)
        fix = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known)}"
        raise WorkbenchError(f"no method {method!r}", where=where, fix=fix)
    return _import(method)


def _part(document: Document, key: str) -> Document:
    """The mapping at ``key`` as a document; places keep the whole dotted name."""
    inside = {k[1:]: place for k, place in document.places.items() if k[:1] == (key,)}
    inside.setdefault((), document.place((key,)))
    return Document(document.data.get(key, {}), inside)


def _folder() -> Path:
    return project_root() / "params" / "conditions"
