"""Worked examples of the RGV paper (S2 App. M.6 and N.1) and small rollouts to vote over."""

import numpy as np
import pytest

from workbench.agent.trajectory import SearchRecord, Segment, Trajectory
from workbench.questions.graph import Item

# (raw answer, cluster), App. M.6
CLUSTERING = [
    ("Tóke Makinwa.", "A"),
    ("The answer is Toke Makinwa.", "A"),
    ("Lilly Singh", "B"),
    ("Lilly Singh.", "B"),
    ("Lilly Singh", "B"),
    ("Toke Makinwa", "A"),
    ("Shannon LaNier", "C"),
    ("Bhuvan Bam", "D"),
]

# question -> (right answer, [(answer, RGV weight, DeepConf weight)]), App. N.1
SUCCESSES = {
    301: (
        "Nwoko Royal Family",
        [
            ("Nwoko Royal Family", 0.184, 6.54),
            ("Nwoko Royal Family", 0.118, 6.66),
            ("Greek royal family", 0.071, 6.46),
            ("Greek royal family", 0.026, 6.70),
            ("British royal family", 0.024, 6.68),
            ("House of Orange-Nassau", 0.009, 6.75),
            ("House of Windsor", 0.008, 6.59),
        ],
    ),
    424: (
        "Raffaele Contigiani",
        [
            ("Raffaele Contigiani", 0.152, 6.98),
            ("Raffaele Contigiani", 0.133, 6.72),
            ("Victor Alfred Lundy", 0.095, 6.75),
            ("Denys Lasdun", 0.092, 6.99),
            ("Denys Lasdun", 0.073, 6.76),
            ("Denys Lasdun", 0.018, 6.48),
        ],
    ),
    56: (
        "Last Christmas",
        [
            ("Last Christmas", 0.115, 7.53),
            ("Crazy Rich Asians", 0.028, 7.96),
            ("Crazy Rich Asians", 0.026, 7.54),
            ("Crazy Rich Asians", 0.026, 7.69),
            ("Rifkin's Festival", 0.018, 7.78),
            ("Rifkin's Festival", 0.018, 7.37),
            ("A Simple Favor", 0.016, 7.70),
        ],
    ),
}


@pytest.fixture
def clustering_case():
    """(raw answer, cluster letter) of the eight rollouts of App. M.6."""
    return CLUSTERING


@pytest.fixture
def successes():
    """Question id -> (right answer, [(answer, RGV weight, DeepConf weight)]) of App. N.1."""
    return SUCCESSES


@pytest.fixture
def make_item():
    def make(item_id="q1", answers=("Bamako",)):
        return Item(item_id, f"Question {item_id}?", answers, "1-hop, single", (), "test")

    return make


@pytest.fixture
def make_rollout():
    """A rollout with ``searches``: one list of (title, text) passages per search call."""

    def make(item_id="q1", answer="Bamako", searches=(), top_k=None, **changes):
        segments = np.array([Segment.PROMPT, Segment.REASONING, Segment.ANSWER], dtype=np.uint8)
        top_k = np.zeros((3, 0)) if top_k is None else np.asarray(top_k, dtype=np.float32)
        records = [
            SearchRecord(
                "a query", turn, (0, 1), (0, 1), (1, 2), [f"c{i}" for i in range(len(hits))],
                [1.0] * len(hits), [title for title, _ in hits], [text for _, text in hits],
            )
            for turn, hits in enumerate(searches)
        ]  # fmt: skip
        fields = dict(
            item_id=item_id, group=item_id, sample=0, seed=0, tokens=np.arange(3),
            segments=segments, logprobs=np.zeros(3), topk_logprobs=top_k,
            topk_ids=np.where(np.isnan(top_k), -1, 1), searches=records, answer=answer,
            answer_span=None, commit_index=-1, valid=answer is not None, invalid_reason="",
            truncated=False, turns=1, invalid_actions=0,
        )  # fmt: skip
        return Trajectory(**(fields | changes))

    return make
