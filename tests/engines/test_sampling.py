"""Drawing: hand values, the nucleus, frequencies, numbers at the edges."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.engines.sampling import draw, nucleus_floor, top_logprobs

# exact in binary, so that sums and comparisons are
P = torch.tensor([0.125, 0.5, 0.25, 0.125])
LOGITS = P.log()[None]


def at(u, top_p=1.0, temperature=1.0, logits=LOGITS):
    """The token drawn for the uniform number u, and its probability."""
    ids, logprobs = draw(logits, temperature, top_p, torch.tensor([u], dtype=torch.float64))
    return int(ids), float(logprobs.exp())


def test_by_hand():
    eps = 1e-6
    for u, token in ((0, 0), (0.125 - eps, 0), (0.125 + eps, 1), (0.625 - eps, 1), (0.7, 2),
                     (0.875 + eps, 3), (np.nextafter(1.0, 0), 3)):  # fmt: skip
        assert at(u) == (token, pytest.approx(float(P[token])))
    # temperature 0.5 squares the odds: 1/64, 16/64, 4/64, 1/64 of 22/64
    assert at(0.5, temperature=0.5) == (1, pytest.approx(16 / 22))
    assert at(0.99, temperature=0.5) == (3, pytest.approx(1 / 22))
    assert at(0.3, temperature=0) == (1, pytest.approx(0.5))


def test_nucleus_by_hand():
    # likeliest first: .5, .25, then .125 twice
    for top_p, kept in ((0.4, [1]), (0.5, [1]), (0.6, [1, 2]), (0.75, [1, 2]), (0.8, [0, 1, 2, 3])):
        mass = float(P[kept].sum())
        drawn = {at(u, top_p) for u in np.linspace(0, 1, 41, endpoint=False)}
        assert {token for token, _ in drawn} == set(kept)
        for token, p in drawn:
            assert p == pytest.approx(float(P[token]) / mass)
    # the last draw of all takes the last token inside the nucleus, not one behind it
    assert at(np.nextafter(1.0, 0), 0.6)[0] == 2


@settings(deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 0.99), st.booleans())
def test_nucleus_is_the_smallest_likeliest_set(seed, top_p, peaked):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 400, generator=generator) * (6 if peaked else 0.5)
    mass = logits.exp()
    floor = nucleus_floor(mass, top_p)
    for row, least in zip(mass.double().numpy(), floor[:, 0].tolist(), strict=True):
        share = np.sort(row)[::-1].cumsum() / row.sum()
        count = int((row >= least).sum())  # the floor is one of the masses
        # float32 sums may move the edge by one token where the mass meets top_p
        assert share[count - 1] >= top_p - 1e-5
        assert count == 1 or share[count - 2] < top_p + 1e-5


def test_frequencies_follow_the_probabilities():
    n = 20_000
    uniform = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ids, logprobs = draw(LOGITS.expand(n, -1), 1.0, 1.0, uniform)
    counts = torch.bincount(ids, minlength=4) / n
    assert counts.numpy() == pytest.approx(P.numpy(), abs=4 * 0.5 / n**0.5)
    assert torch.allclose(logprobs, P.log()[ids], atol=1e-6)


def test_tokens_without_mass_are_never_drawn():
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]])
    drawn = {at(u, logits=logits)[0] for u in (0.0, 0.25, 0.5, 0.75, np.nextafter(1.0, 0))}
    assert drawn == {1, 3}


def test_large_vocabularies_and_logits():
    logits = torch.full((1, 150_000), 80.0)
    for u in (0.0, 0.5, np.nextafter(1.0, 0)):
        token, p = at(u, logits=logits)
        assert token == pytest.approx(u * 150_000, abs=1.5)
        assert p == pytest.approx(1 / 150_000, rel=1e-4)


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
@pytest.mark.parametrize(("temperature", "top_p"), [(0, 1.0), (1.0, 1.0), (1.0, 0.9)])
def test_broken_logits_show_in_the_logprob(broken, temperature, top_p):
    logits = torch.tensor([[0.0, broken, 1.0], [0.0, 1.0, 2.0]])
    uniform = torch.tensor([0.5, 0.5], dtype=torch.float64)
    _, logprobs = draw(logits, temperature, top_p, uniform)
    assert not logprobs[0].isfinite() and logprobs[1].isfinite()


def test_top_logprobs():
    ids, values = top_logprobs(LOGITS + 3, 2)
    assert ids.tolist() == [[1, 2]]
    assert values.exp().tolist() == [pytest.approx([0.5, 0.25])]
