"""The choice of the best rows against a plain sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.retrieval.ranking import top_rows


@given(scores=st.lists(st.integers(-2, 2), max_size=30), k=st.integers(1, 35), data=st.data())
def test_top_rows_is_a_sort_by_score_then_row(scores, k, data):
    rows = np.array(data.draw(st.permutations(range(100, 100 + len(scores)))), dtype=np.int64)
    values = np.array(scores, dtype=np.float64)
    found, best = top_rows(rows, values, k)
    wanted = sorted(zip(rows.tolist(), scores, strict=True), key=lambda p: (-p[1], p[0]))[:k]
    assert list(zip(found.tolist(), best.tolist(), strict=True)) == wanted
