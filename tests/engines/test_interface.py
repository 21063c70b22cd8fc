"""The engine that exists meets the interface that its callers rely on."""

import inspect

import pytest

from workbench.engines.base import Engine, Session
from workbench.engines.session import TransformersSession
from workbench.engines.transformers_engine import TransformersEngine

PAIRS = [(Engine, TransformersEngine), (Session, TransformersSession)]


@pytest.mark.parametrize(
    ("interface", "engine", "name"),
    [
        (interface, engine, name)
        for interface, engine in PAIRS
        for name, member in vars(interface).items()
        if inspect.isfunction(member) and not name.startswith("_")
    ],
)
def test_every_function_of_the_interface_takes_the_same_arguments(interface, engine, name):
    wanted = inspect.signature(getattr(interface, name)).parameters
    given = inspect.signature(getattr(engine, name)).parameters
    assert list(given)[: len(wanted)] == list(wanted)
    assert [p.default for p in given.values()][: len(wanted)] == [
        p.default for p in wanted.values()
    ]
    more = list(given.values())[len(wanted) :]
    assert all(p.default is not p.empty for p in more), "further arguments are optional"


def test_the_interface_names_what_the_trainer_calls():
    assert {"open", "score", "refresh"} <= vars(Engine).keys()
