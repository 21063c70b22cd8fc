"""AgentConfig refuses texts and budgets that cannot work."""

import pytest
from pydantic import ValidationError

from workbench.agent.config import AgentConfig, split_template


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"prompt": "Question:"}, "prompt must hold"),
        ({"prompt": "{question} {question}"}, "prompt must hold"),
        ({"prompt": "{question} {context}"}, "prompt must hold"),
        ({"observation": "<information>"}, "observation must hold"),
        ({"ignored": "{queries!r}"}, "only plain"),
        ({"passage": "{title}"}, "passage must hold"),
        ({"passage": "{text} {score}"}, "passage may hold"),
        ({"passage": "{text"}, "expected '}'"),
        ({"search_tag": "answer"}, "must differ"),
        ({"max_start_tokens": 5000}, "limits must rise"),
        ({"max_rounds": 0}, "greater than 0"),
        ({"max_rounds": "4"}, "valid integer"),
        ({"rounds": 4}, "Extra inputs"),
        ({"protocol": "report"}, "'tag' or 'native'"),
    ],
)
def test_refused(change, what):
    with pytest.raises(ValidationError, match=what):
        AgentConfig(**change)


def test_turns_and_templates():
    assert AgentConfig().turns == 4 and AgentConfig(answer_round=True).turns == 5
    assert split_template('{{"a"}} {question}? {{') == ('{"a"} ', "? {")
