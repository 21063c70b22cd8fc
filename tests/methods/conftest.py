"""A maker of trajectories for reward tests."""

import numpy as np
import pytest

from workbench.agent.trajectory import SearchRecord, Trajectory


@pytest.fixture
def rolled_out():
    def make(answer, searches=0, valid=True, group="q", segments=(0, 1, 5)) -> Trajectory:
        n = len(segments)
        record = SearchRecord("a query", 0, (0, 0), (0, 0), (0, 0), [], [], [], [])
        return Trajectory(
            item_id=group,
            group=group,
            sample=0,
            seed=0,
            tokens=np.arange(n, dtype=np.int32),
            segments=np.array(segments, dtype=np.uint8),
            logprobs=np.zeros(n, np.float32),
            topk_ids=np.zeros((n, 0), np.int32),
            topk_logprobs=np.zeros((n, 0), np.float32),
            searches=[record] * searches,
            answer=answer,
            answer_span=None,
            commit_index=-1,
            valid=valid,
            invalid_reason="" if valid else "truncated",
            truncated=not valid,
            turns=1 + searches,
            invalid_actions=0,
        )

    return make
