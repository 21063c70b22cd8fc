"""YAML with places: every value remembers the file and line it was written on.

Values follow YAML 1.1 as papermill reads it, except that dates stay text and a key written
twice in one mapping is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from ..errors import WorkbenchError

Key = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """SafeLoader without dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(slots=True)
class Document:
    """Nested ``data`` and, for each key path into it, where it was written."""

    data: dict
    places: dict[Key, str] = field(default_factory=dict)

    def place(self, key: Key) -> str:
        """``"file:line: dotted.key"`` of a value, or of the nearest thing around it."""
        for length in range(len(key), -1, -1):
            if key[:length] in self.places:
                dotted = ".".join(map(str, key))
                return f"{self.places[key[:length]]}: {dotted}" if dotted else self.places[()]
        return ".".join(map(str, key))

    def merged(self, above: Document) -> Document:
        """This document with ``above`` laid over it: mappings merge, other values replace."""
        merged = Document(dict(self.data), dict(self.places))
        _lay_over(merged.data, above.data, ())
        for key, place in above.places.items():
            for length in range(1, len(key)):
                around = key[:length]
                if around in above.places or isinstance(_value_at(self.data, around), Mapping):
                    continue
                merged.places[around] = place  # what was written there below is replaced
            stale = [k for k in merged.places if k[: len(key)] == key]
            if stale and not isinstance(_value_at(above.data, key), Mapping):
                for k in stale:
                    del merged.places[k]
            merged.places[key] = place
        return merged


def read_yaml(path: Path, *, shown: str | None = None) -> Document:
    """Read one YAML file whose top is a mapping.

    Raises
    ------
    WorkbenchError
        the file cannot be read, is not YAML, repeats a key, or its top is not a mapping.
    """
    shown = shown or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise WorkbenchError("no such file", where=shown) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise WorkbenchError("not UTF-8 text", where=f"{shown}:{line}") from None
    return parse_yaml(text, shown)


def parse_yaml(text: str, shown: str) -> Document:
    """``read_yaml`` on text; ``shown`` is the file name used in messages."""
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        document = Document({}, {(): shown})
        if node is not None:
            if not isinstance(node, yaml.MappingNode):
                raise WorkbenchError("the top of the file must be 'key: value' lines", where=shown)
            document.data = _build(loader, node, (), shown, document.places)
            document.places[()] = shown
        return document
    except RecursionError:
        raise WorkbenchError(
            "a value contains itself, or is nested too deep", where=shown
        ) from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise WorkbenchError(f"not YAML: {error.reason}", where=f"{shown}:{line}") from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise WorkbenchError(f"not YAML: {error.problem}", where=f"{shown}{line}") from None
    finally:
        if loader is not None:
            loader.dispose()


def parse_override(text: str) -> Document:
    """``"grpo.steps=10"`` as a document; the value is read as YAML."""
    dotted, equals, value = text.partition("=")
    shown = f"override {text}"
    keys = tuple(dotted.strip().split("."))
    if not equals or not all(keys):
        raise WorkbenchError("an override is 'key.key=value'", where=shown)
    try:
        parsed = yaml.load(value, _Loader)
    except yaml.YAMLError:
        raise WorkbenchError(f"{value!r} is not a YAML value", where=shown) from None
    return override_document(keys, parsed, shown)


def override_document(keys: Key, value: object, shown: str) -> Document:
    """A document that sets one key path to ``value``."""
    data: object = value
    for key in reversed(keys):
        data = {key: data}
    return Document(data, {keys: shown})  # type: ignore[arg-type]


def _build(loader: _Loader, node: yaml.Node, key: Key, shown: str, places: dict[Key, str]):
    places[key] = f"{shown}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        built: dict = {}
        for key_node, value_node in node.value:
            name = loader.construct_object(key_node)
            line = f"{shown}:{key_node.start_mark.line + 1}"
            if not isinstance(name, str):
                raise WorkbenchError(f"the key {name!r} is not text", where=line, fix="quote it")
            if name in built:
                raise WorkbenchError(f"{name!r} is written twice", where=line, fix="keep one")
            built[name] = _build(loader, value_node, (*key, name), shown, places)
            places[(*key, name)] = line
        return built
    if isinstance(node, yaml.SequenceNode):
        return [
            _build(loader, child, (*key, i), shown, places) for i, child in enumerate(node.value)
        ]
    return loader.construct_object(node)


def _lay_over(below: dict, above: Mapping, key: Key) -> None:
    for name, value in above.items():
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping):
            below[name] = dict(below[name])
            _lay_over(below[name], value, (*key, name))
        else:
            below[name] = value


def _value_at(data: object, key: Iterable[str | int]) -> object:
    """The value at a key path, None where there is none."""
    for part in key:
        try:
            data = data[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return data
