"""Rollouts merged into trees: nothing is lost, and no token sees another rollout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.grpo.forward import pack
from workbench.grpo.trees import Rollout, grow

rollouts = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=7), min_size=1, max_size=6)


def made(tokens, group="g") -> Rollout:
    return Rollout(np.array(tokens, np.int32), np.arange(1, len(tokens)), group)


@settings(max_examples=150, deadline=None)
@given(rollouts)
def test_paths_depths_and_sight(sequences):
    found = [made(tokens) for tokens in sequences]
    tree = grow(found, range(len(found)))
    visible = tree.visible()
    prefixes = {tuple(s[:n]) for s in sequences for n in range(1, len(s))}
    assert len(tree.tokens) == len(tree.depth) == len(prefixes)
    assert sorted(tree.paths) == list(range(len(found)))
    for row, path in tree.paths.items():
        np.testing.assert_array_equal(tree.tokens[path], found[row].inputs)
        np.testing.assert_array_equal(tree.depth[path], np.arange(len(path)))
        for t, node in enumerate(path):
            assert set(np.flatnonzero(visible[node])) == set(path[: t + 1])


def test_a_tree_by_hand():
    # 5 6 7 (8), 5 6 9 (1), 5 6 9 4 (2): shared 5 6, then 7 | 9, then 4 below 9
    tree = grow([made([5, 6, 7, 8]), made([5, 6, 9, 1]), made([5, 6, 9, 4, 2])], [0, 1, 2])
    assert tree.tokens.tolist() == [5, 6, 7, 9, 4]
    assert tree.depth.tolist() == [0, 1, 2, 2, 3]
    assert [tree.paths[row].tolist() for row in range(3)] == [[0, 1, 2], [0, 1, 3], [0, 1, 3, 4]]
    assert tree.visible()[3].tolist() == [True, True, False, True, False]


def test_only_groups_are_merged_and_a_lone_rollout_needs_no_mask():
    found = [made([1, 2, 3], "a"), made([1, 2, 4, 5], "b"), made([1, 2, 3, 3], "a")]
    shared = pack(found, [0, 1, 2], 100, True)
    assert [chunk.padded.ids.tolist() for chunk in shared] == [[[1, 2, 3], [1, 2, 4]]]
    assert shared[0].padded.mask.shape == (2, 1, 3, 3)
    plain = pack(found, [0, 1, 2], 100, False)
    plain = plain[0].padded
    assert plain.ids.shape == (3, 3) and plain.mask is None and plain.positions is None
    assert pack(found, [0, 1], 100, True)[0].padded.mask is None


def test_chunks_keep_to_their_size_and_leave_out_what_has_no_token():
    found = [made(range(n)) for n in (3, 9, 4, 30)] + [Rollout(np.arange(5), np.arange(0))]
    chunks = pack(found, range(5), 16, False)
    assert [chunk.rows for chunk in chunks] == [[3], [1, 2], [0]]
    assert all(chunk.padded.ids.numel() <= 16 for chunk in chunks[1:])


def test_the_first_token_cannot_be_selected():
    with pytest.raises(WorkbenchError, match="no context"):
        Rollout(np.arange(3), np.arange(2))
