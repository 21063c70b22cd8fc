"""Documents -> Settings, with errors that name file, line, field and remedy."""

from __future__ import annotations

import difflib
import json
import re
import typing
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import WorkbenchError
from .yamlfile import Document

T = TypeVar("T", bound=BaseModel)

_NUMBER_AS_TEXT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


def validate(model: type[T], document: Document) -> T:
    """Check a document against a Settings class.

    Lists become tuples where the class asks for tuples; nothing else is converted.

    Raises
    ------
    WorkbenchError
        an unknown key, a missing key, or a value of the wrong type or range; all faults are
        told at once, each with its place.
    """
    try:
        return model.model_validate_json(json.dumps(document.data))
    except ValidationError as error:
        faults = [_fault(model, document, e) for e in error.errors(include_url=False)]
    (where, what, fix), *others = faults
    if others:
        what, fix = f"{what} -- {fix}" if fix else what, None
        what += "".join(f"\n{WorkbenchError(w, where=at, fix=f)}" for at, w, f in others)
    raise WorkbenchError(what, where=where, fix=fix)


def _fault(model: type[BaseModel], document: Document, error: dict) -> tuple[str, str, str | None]:
    loc, kind, value = tuple(error["loc"]), error["type"], error["input"]
    where = document.place(loc)
    if kind == "extra_forbidden":
        known = _keys_at(model, loc[:-1])
        near = difflib.get_close_matches(str(loc[-1]), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return where, f"unknown key {loc[-1]!r}", hint
    if kind == "missing":
        return where, f"the key {loc[-1]!r} is missing", "add it"
    if isinstance(value, str) and _NUMBER_AS_TEXT.fullmatch(value) and "float" in kind:
        return where, f"{value!r} is text, not a number", f"write {_with_point(value)}"
    if kind == "value_error":
        return where, str(error["ctx"]["error"]), None
    got = "" if isinstance(value, (dict, list)) else f", not {value!r}"
    return where, error["msg"] + got, None


def _with_point(text: str) -> str:
    mantissa, exponent = re.split("[eE]", text)
    mantissa = mantissa if "." in mantissa else mantissa + ".0"
    sign = "" if exponent[0] in "+-" else "+"
    return f"{mantissa}e{sign}{exponent}"


def _keys_at(model: type[BaseModel], loc: tuple) -> list[str]:
    """Field names of the settings class that ``loc`` leads to."""
    here: list[object] = [model]
    for part in loc:
        found = []
        for candidate in here:
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                if part in candidate.model_fields:
                    found += _alternatives(candidate.model_fields[part].annotation)
        here = found or here
    keys: list[str] = []
    for candidate in here:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            keys += [name for name in candidate.model_fields if name not in keys]
    return keys


def _alternatives(annotation: object) -> list[object]:
    arguments = typing.get_args(annotation)
    if not arguments:
        return [annotation]
    return [choice for argument in arguments for choice in _alternatives(argument)]
