"""Profiles from params/profiles: read, inherit, override, validate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from ..errors import WorkbenchError
from ..runs import project_root, shown
from .profile import Profile
from .validate import validate
from .yamlfile import Document, override_document, parse_override, read_yaml


def profile_names() -> list[str]:
    """Names under params/profiles."""
    return sorted(p.stem for p in (project_root() / "params" / "profiles").glob("*.yaml"))


def load_profile(
    name_or_path: str | Path, overrides: Iterable[str] | Mapping[str, object] = ()
) -> Profile:
    """A validated profile.

    Parameters
    ----------
    name_or_path : a name under params/profiles, or a YAML file.
    overrides : ``["grpo.steps=10"]`` or ``{"grpo.steps": 10}``, laid over the file.

    Raises
    ------
    WorkbenchError
        no such profile, a cycle of ``extends``, or a fault in a value; file, line and field
        are named.
    """
    path = _profile_path(name_or_path)
    document = _read_inheriting(path, ())
    document.data.setdefault("name", path.stem)
    if isinstance(overrides, Mapping):
        layers = [
            override_document(tuple(k.split(".")), v, f"override {k}") for k, v in overrides.items()
        ]
    else:
        layers = [parse_override(text) for text in overrides]
    for layer in layers:
        document = document.merged(layer)
    return validate(Profile, document)


def dump_profile(profile: Profile) -> str:
    """The resolved profile as YAML that ``load_profile`` reads back to the same."""
    return yaml.safe_dump(profile.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _profile_path(name_or_path: str | Path, beside: Path | None = None) -> Path:
    text = str(name_or_path)
    if text.endswith((".yaml", ".yml")):
        path = Path(text) if beside is None else beside.parent / text
        if not path.is_file():
            raise WorkbenchError("no such profile", where=shown(path), fix="check the path")
        return path
    for folder in ([beside.parent] if beside else []) + [project_root() / "params" / "profiles"]:
        if (path := folder / f"{text}.yaml").is_file():
            return path
    raise WorkbenchError(
        f"no profile {text!r}",
        where=shown(beside) if beside else "params/profiles",
        fix=f"one of {', '.join(profile_names())}, or a path that ends in .yaml",
    )


def _read_inheriting(path: Path, below: tuple[Path, ...]) -> Document:
    path = path.resolve()
    if path in below:
        chain = " -> ".join(p.stem for p in (*below[below.index(path) :], path))
        raise WorkbenchError(
            f"profiles extend each other in a circle: {chain}",
            where=shown(path),
            fix="remove one 'extends'",
        )
    document = read_yaml(path, shown=shown(path))
    base = document.data.pop("extends", None)
    place = document.places.pop(("extends",), None)
    if base is None:
        return document
    if not isinstance(base, str):
        raise WorkbenchError("'extends' names one profile", where=place)
    parent = _read_inheriting(_profile_path(base, beside=path), (*below, path))
    parent.data.pop("name", None)
    return parent.merged(document)
