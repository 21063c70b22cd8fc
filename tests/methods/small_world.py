"""Makers of trajectories, and a small corpus with question graphs over it.

Loaded by path from conftest.py, because tests are not a package.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from workbench.agent.trajectory import SearchRecord, Segment, Trajectory
from workbench.corpus.records import Chunk, Extent
from workbench.questions.graph import Evidence, Item, Node


def trajectory(segments, answer="x", item_id="q", **changes) -> Trajectory:
    n = len(segments)
    plain = {
        "item_id": item_id,
        "group": item_id,
        "sample": 0,
        "seed": 0,
        "tokens": np.arange(n, dtype=np.int32),
        "segments": np.array(segments, dtype=np.uint8),
        "logprobs": np.zeros(n, np.float32),
        "topk_ids": np.zeros((n, 0), np.int32),
        "topk_logprobs": np.zeros((n, 0), np.float32),
        "searches": [],
        "answer": answer,
        "answer_span": None,
        "commit_index": -1,
        "valid": answer is not None,
        "invalid_reason": "" if answer is not None else "truncated",
        "truncated": False,
        "turns": 1,
        "invalid_actions": 0,
    }
    return Trajectory(**(plain | changes))


@dataclass
class Searched:
    """One executed search to be: what it returned, and its sizes in tokens."""

    chunks: tuple[Chunk, ...] = ()
    query: int = 2
    call: int = 5  # the full call, query included
    cut: bool = False


def searched(*searches: Searched, answer="x", item_id="q", **changes) -> Trajectory:
    """Prompt, then reasoning, call and observation for each search, then the answer."""
    codes, records = [Segment.PROMPT] * 3, []
    for turn, search in enumerate(searches):
        codes += [Segment.REASONING] * 2
        start = len(codes)
        before = (search.call - search.query) // 2
        after = search.call - search.query - before
        codes += [Segment.CALL] * before + [Segment.QUERY] * search.query + [Segment.CALL] * after
        codes += [Segment.OBSERVATION] * 4
        records.append(
            SearchRecord(
                query="a query",
                turn=turn,
                query_span=(start + before, start + before + search.query),
                payload_span=(start, start + search.call),
                observation_span=(start + search.call, start + search.call + 4),
                chunk_ids=[c.chunk_id for c in search.chunks],
                scores=[1.0] * len(search.chunks),
                titles=[c.title for c in search.chunks],
                texts=[c.text for c in search.chunks],
                observation_cut=search.cut,
            )
        )
    codes += [Segment.REASONING] * 2 + [Segment.ANSWER] * 3
    plain = {"searches": records, "turns": 1 + len(records)}
    return trajectory(codes, answer, item_id, **(plain | changes))


# Four pages of three paragraphs of 60 characters in chunks of 20, and one chunk across two.
PAGES, PARAGRAPHS, WIDTH = 4, 3, 20
CORPUS = {
    f"p{page}#{paragraph}.{start}": Chunk(
        f"p{page}#{paragraph}.{start}",
        f"p{page}",
        f"Page {page}",
        f"words of page {page}",
        (Extent(paragraph, start, start + WIDTH),),
    )
    for page in range(PAGES)
    for paragraph in range(1, PARAGRAPHS + 1)
    for start in range(0, 60, WIDTH)
}
CORPUS["wide"] = Chunk("wide", "p0", "Page 0", "wide", (Extent(1, 40, 60), Extent(2, 0, 20)))


def item_of(nodes, answers=("x",), item_id="q", split="train") -> Item:
    return Item(item_id, "a question?", answers, "4-hop-3, fan-in", tuple(nodes), split)


@st.composite
def graphs(draw) -> Item:
    """A question of up to six nodes with up to two required passages each."""
    spans = st.tuples(st.integers(0, 59), st.integers(1, 25)).map(lambda s: (s[0], s[0] + s[1]))
    passages = st.builds(
        Evidence,
        st.sampled_from([f"p{i}" for i in range(PAGES)]),
        st.integers(1, PARAGRAPHS),
        st.lists(spans, min_size=1, max_size=2).map(tuple),
    )
    nodes = []
    for i in range(draw(st.integers(1, 6))):
        before = [node.node_id for node in nodes]
        needs = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
        evidence = draw(st.lists(passages, min_size=1, max_size=2))
        nodes.append(Node(f"v{i}", "?", ("x",), tuple(evidence), tuple(needs)))
    return item_of(draw(st.permutations(nodes)))


results = st.lists(st.sampled_from(sorted(CORPUS)), max_size=3).map(
    lambda ids: tuple(CORPUS[i] for i in ids)
)


def searches(max_size=4):
    """Searches with random results and sizes."""
    one = st.builds(
        Searched,
        results,
        st.integers(1, 4),
        st.integers(4, 9),
        st.sampled_from([False, False, False, True]),
    )
    return st.lists(one, max_size=max_size)
