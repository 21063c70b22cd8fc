"""Agreement of label constructions against scikit-learn and by hand (S1 Tables A6, A16)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from workbench.errors import WorkbenchError
from workbench.evaluation.label_agreement import cohen_kappa, label_agreement, sign_flips
from workbench.inference.bootstrap import BootstrapConfig

FEW = BootstrapConfig(draws=300)
PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40)


@given(PAIRS)
def test_kappa_is_scikit_learns(pairs):
    a, b = np.array(pairs).T
    if a.all() == b.all() and (~a).all() == (~b).all() and len({*a, *b}) == 1:
        assert np.isnan(cohen_kappa(a, b))
    else:
        assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))


def test_the_table_by_hand():
    """10 labels, 5 positive; 1 becomes negative and 2 positive: 7 of 10 agree."""
    reference = np.array([1] * 5 + [0] * 5, bool)
    other = np.array([1, 1, 1, 1, 0, 1, 1, 0, 0, 0], bool)
    questions = list("aabbccddee")

    def advantages(labels):
        groups = labels.astype(float).reshape(5, 2)
        return (groups - groups.mean(1, keepdims=True)).ravel()

    table = label_agreement(
        reference, {"same": reference, "other": other}, questions, advantages, FEW
    ).set_index("construction")
    row = table.loc["other"]
    assert row["agreement"] == pytest.approx(0.7) and row["low"] < 0.7 < row["high"]
    assert row["kappa"] == pytest.approx((0.7 - 0.5) / 0.5)
    assert (row["reference_rate"], row["rate"], row["n"]) == (0.5, 0.6, 10)
    assert row["rate_delta"] == pytest.approx(0.1)
    # group c flips from (+, -) to (-, +): two signs; d goes from 0, 0 to +, - : two; others same
    assert row["sign_flips"] == pytest.approx(4 / 10)
    same = table.loc["same"]
    assert (same["agreement"], same["kappa"], same["sign_flips"]) == (1, 1, 0)
    assert (same["low"], same["high"]) == (1, 1)
    bare = label_agreement(reference, {"other": other}, questions, config=FEW)
    assert np.isnan(bare.loc[0, "sign_flips"])


def test_ties_have_no_sign():
    assert sign_flips([1.0, -1.0, 1e-17], [2.0, -0.5, -1e-17]) == 0
    assert sign_flips([1.0, 0.0, -1.0, 1.0], [-1.0, 0.5, -2.0, 1.0]) == 0.5


@pytest.mark.parametrize("bad", [[True], [[True, False]], [0.5, 1.0], [np.nan, 1.0], []])
def test_labels_that_do_not_belong_together_are_refused(bad):
    with pytest.raises(WorkbenchError, match="theirs"):
        label_agreement(np.array([True, False]), {"theirs": np.array(bad)}, ["a", "b"])
    with pytest.raises(WorkbenchError, match="at least one"):
        label_agreement(np.array([], bool), {}, [])
