"""Small hand-made items and trajectories for the evaluation tests."""

import numpy as np
import pytest

from workbench.agent.trajectory import SearchRecord, Segment, Trajectory
from workbench.questions.graph import Item


@pytest.fixture
def make_item():
    def make(item_id="q1", answers=("Bamako",), category="1-hop, single", **fields):
        return Item(item_id, f"Question {item_id}?", answers, category, (), "test", **fields)

    return make


@pytest.fixture
def make_trajectory():
    """A trajectory of 3 prompt, 2 reasoning, 2 call + 2 query + 5 observation tokens a search,
    and 3 answer tokens, closed by 2 padding tokens."""

    def make(item_id="q1", answer="Bamako", searches=0, sample=0, **changes):
        codes = [Segment.PROMPT] * 3 + [Segment.REASONING] * 2
        records = []
        for turn in range(searches):
            start = len(codes)
            codes += [Segment.CALL, Segment.QUERY, Segment.QUERY, Segment.CALL]
            codes += [Segment.OBSERVATION] * 5
            records.append(
                SearchRecord(
                    "capital of mali", turn, (start + 1, start + 3), (start, start + 4),
                    (start + 4, start + 9), ["c1"], [1.0], ["Mali"], ["The capital is Bamako."],
                )
            )  # fmt: skip
        if answer is not None:
            codes += [Segment.ANSWER] * 3
        codes += [Segment.PADDING] * 2
        n = len(codes)
        fields = dict(
            item_id=item_id, group=item_id, sample=sample, seed=0,
            tokens=np.arange(n, dtype=np.int32), segments=np.array(codes, dtype=np.uint8),
            logprobs=np.zeros(n, np.float32), topk_ids=np.zeros((n, 0), np.int32),
            topk_logprobs=np.zeros((n, 0), np.float32), searches=records, answer=answer,
            answer_span=None, commit_index=-1, valid=answer is not None,
            invalid_reason="" if answer is not None else "no answer", truncated=False,
            turns=searches + 1, invalid_actions=0,
        )  # fmt: skip
        return Trajectory(**(fields | changes))

    return make
