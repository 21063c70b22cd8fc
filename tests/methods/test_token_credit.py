"""The frame of every token's advantage."""

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from workbench.errors import WorkbenchError
from workbench.methods import Context, build_method, load_condition
from workbench.methods.token_credit import token_credit
from workbench.questions.graph import Evidence, Node


@pytest.fixture(scope="module")
def tokenizer():
    """Every token id n is the word "w<n>"."""
    model = models.WordLevel({f"w{i}": i for i in range(60)}, unk_token="w0")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0")


def test_every_token_of_every_method(small, tokenizer):
    item = small.item_of([Node("v1", "?", ("x",), (Evidence("p0", 1, ((5, 8),)),))])
    hit, miss = (small.Searched((small.CORPUS[c],)) for c in ("p0#1.0", "p3#1.0"))
    group = [small.searched(hit), small.searched(miss, miss, answer="z")]
    methods = {
        name: build_method(load_condition(name), Context(small.CORPUS))
        for name in ("oo", "cov_local")
    }
    frame = token_credit([item] * 2, group, methods, tokenizer)
    assert len(frame) == 2 * sum(len(t.tokens) for t in group)
    assert list(frame["method"].unique()) == ["oo", "cov_local"]
    part = frame[(frame["method"] == "cov_local") & (frame["rollout"] == 1)]
    scores = methods["cov_local"].score([item] * 2, group)
    expected = methods["cov_local"].advantages([item] * 2, group, scores)[1]
    np.testing.assert_array_equal(part["advantage"], expected)
    assert part["advantage"].dtype == np.float32
    assert part["position"].tolist() == part["token_id"].tolist() == list(range(len(expected)))
    assert [t.strip() for t in part["text"]] == [f"w{i}" for i in range(len(expected))]
    assert set(part["segment"]) == {
        "prompt", "reasoning", "call", "query", "observation", "answer",
    }  # fmt: skip
    first, second = group[1].searches
    numbers = part["search"].to_numpy()
    assert (numbers[first.payload_span[0] : first.observation_span[1]] == 0).all()
    assert (numbers[second.payload_span[0] : second.observation_span[1]] == 1).all()
    assert (numbers >= 0).sum() == 18
    assert part["reward"].unique().tolist() == part["outcome"].unique().tolist() == [0.0]


def test_nothing_to_show_is_refused(small, tokenizer):
    with pytest.raises(WorkbenchError, match="at least one rollout and one method"):
        token_credit([], [], {}, tokenizer)
