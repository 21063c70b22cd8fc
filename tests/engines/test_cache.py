"""RowCache: places, growth, copies."""

import torch

from workbench.engines.cache import RowCache


def block(cache, first, lengths, width, fill):
    """Write ``fill + token`` into one layer; returns the keys that are shown."""
    cache.place(first, torch.tensor(lengths), width)
    cache.show(max(lengths) + width)
    new = fill + torch.arange(width, dtype=torch.float32)
    new = new.expand(len(lengths), 2, width)[..., None].expand(-1, -1, -1, 3)
    return cache.update(new, -new, 0)


def test_blocks_are_written_where_rows_end():
    cache = RowCache()
    cache.reserve(3, 5, used=0)
    keys, values = block(cache, 0, [0, 0, 0], 2, 10)
    assert keys.shape == (3, 2, 2, 3) and (values == -keys).all()
    keys, _ = block(cache, 1, [2, 1], 2, 20)  # the last row's second token is overwritten
    assert keys[0, 0, :, 0].tolist() == [10, 11, 20, 21]
    assert keys[1, 1, :3, 0].tolist() == [10, 20, 21]
    keys, _ = block(cache, 0, [2], 1, 30)
    assert keys[0, 0, :, 0].tolist() == [10, 11, 30]


def test_growth_keeps_what_is_used_and_shrinking_frees():
    cache = RowCache()
    cache.reserve(8, 30, used=0)
    assert (cache.slots, cache.capacity) == (8, 32)
    block(cache, 0, [0] * 8, 30, 0)
    cache.reserve(8, 33, used=30)
    assert cache.capacity == 64  # half as much again, in steps of 32
    keys, _ = block(cache, 0, [30] * 8, 1, 99)
    assert keys[7, 1, :, 2].tolist() == [*range(30), 99]
    cache.reserve(4, 31, used=31)
    assert cache.slots == 8  # half is kept
    cache.reserve(3, 31, used=31)
    assert cache.slots == 3 and cache._keys[0].shape[0] == 3
    keys, _ = block(cache, 2, [31], 1, 5)
    assert keys[0, 0, :, 0].tolist() == [*range(30), 99, 5]


def test_copy_and_swap():
    cache = RowCache()
    cache.reserve(4, 4, used=0)
    for slot in range(4):
        block(cache, slot, [0], 4, 10 * slot)
    cache.swap([0, 1], [3, 2], 2)

    def row(slot):
        return cache._keys[0][slot, 1, :4, 0].tolist()

    assert row(0) == [30, 31, 2, 3] and row(3) == [0, 1, 32, 33]
    assert row(1) == [20, 21, 12, 13] and row(2) == [10, 11, 22, 23]
    cache.copy([0, 0], [1, 2], 4)
    assert row(1) == row(2) == row(0)
    cache.copy([], [], 4)
