"""Descriptions over HTTP: a local server that speaks the chat completions format."""

import json
import time

import pytest

from workbench.questions.sources.descriptions import Root, Trait
from workbench.questions.sources.endpoint import Endpoint, checked
from workbench.questions.sources.settings import DescriptionConfig


def _root(entity, name):
    traits = (Trait("born in Bathmer", ("Bathmer",), 19, 2, 3),)
    return Root(entity, (name,), "person", "countess", True, traits)


ADA, DAN = _root("Q1", "Ada Lorn"), _root("Q4", "Dan Vey")


@pytest.fixture
def ask(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "secret")

    def made(**changes):
        settings = {"model": "m", "base_url": server.url, "key_variable": "TEST_KEY", "retries": 3}
        return Endpoint(DescriptionConfig(**{**settings, **changes}), tmp_path / "cache.jsonl")

    return made


def test_the_request_is_fixed_and_at_temperature_zero(server, ask):
    assert ask().describe([ADA]) == {ADA: "the one from Bathmer"}
    (request,) = server.requests
    assert request["path"] == "/v1/chat/completions"
    assert (request["model"], request["temperature"]) == ("m", 0)
    system, user = request["messages"]
    assert system["role"] == "system" and "without naming" in system["content"]
    assert user["content"].splitlines() == [
        "It is an instance of: person.", "In short: countess.",
        "It is the one born in Bathmer.", "Names that must not occur: Ada Lorn.",
    ]  # fmt: skip
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_failures_are_retried(server, ask):
    answers = [(500, b"{}"), (429, b"{}"), (503, b"not json")]
    server.answer = lambda request: answers.pop(0) if answers else "the one from Bathmer"
    endpoint = ask()
    assert endpoint.describe([ADA]) == {ADA: "the one from Bathmer"}
    assert len(server.requests) == 4 and endpoint.failures == {} and endpoint.asked == 1


def test_what_fails_for_good_is_counted_and_not_cached(server, ask, tmp_path):
    server.answer = lambda request: (500, b"{}")
    endpoint = ask(retries=1)
    assert endpoint.describe([ADA, DAN]) == {}
    assert endpoint.failures == {"no answer: InternalServerError": 2}
    assert len(server.requests) == 4
    server.answer = lambda request: (401, b"{}")
    assert ask().describe([ADA]) == {} and len(server.requests) == 5  # not tried again
    server.answer = lambda request: "the one from Bathmer"
    assert len(ask().describe([ADA, DAN])) == 2


def test_a_slow_answer_is_a_failure(server, ask):
    server.answer = lambda request: time.sleep(1) or "the late one"
    endpoint = ask(timeout=0.1, retries=0)
    assert endpoint.describe([ADA]) == {}
    assert endpoint.failures == {"no answer: APITimeoutError": 1}


def test_no_server_at_all(ask):
    endpoint = ask(base_url="http://127.0.0.1:9/v1", retries=0)
    assert endpoint.describe([ADA]) == {}
    assert endpoint.failures == {"no answer: APIConnectionError": 1}


@pytest.mark.parametrize(
    "body",
    [b"not json", b"[]", b'{"choices": []}', b'{"choices": null}', b"{}", b'{"choices": [{}]}'],
)
def test_an_answer_in_another_format_is_a_failure(server, ask, body):
    server.answer = lambda request: (200, body)
    endpoint = ask(retries=0)
    assert endpoint.describe([ADA]) == {}
    assert endpoint.failures.total() == 1


def test_answers_are_cached_by_content(server, ask, tmp_path):
    ask().describe([ADA, DAN, ADA])
    assert len(server.requests) == 2
    again = ask()
    assert len(again.describe([ADA, DAN])) == 2
    assert len(server.requests) == 2 and again.asked == 0
    ask(model="other").describe([ADA])
    ask().describe([ADA.without(["Bathmer"])])
    assert len(server.requests) == 4
    lines = [json.loads(line) for line in (tmp_path / "cache.jsonl").open()]
    assert [line["entity"] for line in lines] == ["Q1", "Q4", "Q1", "Q1"]


def test_a_cache_that_was_cut_off_is_read_up_to_there(server, ask, tmp_path):
    ask().describe([ADA, DAN])
    path = tmp_path / "cache.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    ask().describe([ADA, DAN])
    assert len(server.requests) == 3
    assert ask().describe([ADA, DAN]).keys() == {ADA, DAN} and len(server.requests) == 3


@pytest.mark.parametrize(
    ("answer", "phrase", "reason"),
    [
        ("the tall one", "the tall one", ""),
        ('  "The tall one."\n', "the tall one", ""),
        ("", "", "empty answer"),
        (None, "", "empty answer"),
        ("the friend of ada lorn", "", "names the root"),
        ("a tall one", "", "does not begin with 'the'"),
        ("the tall one\nor the small one", "", "not a single phrase"),
        ("the " + "very " * 40 + "tall one", "", "not a single phrase"),
    ],
)
def test_what_is_taken_for_a_description(answer, phrase, reason):
    assert checked(answer, ADA) == (phrase, reason)


def test_an_answer_that_names_the_root_is_counted(server, ask):
    server.answer = lambda request: "the countess Ada Lorn"
    endpoint = ask()
    assert endpoint.describe([ADA, DAN]) == {DAN: "the countess Ada Lorn"}
    assert endpoint.failures == {"names the root": 1}
