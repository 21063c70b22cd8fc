"""Answer match, and the events of any potential."""

import numpy as np
import pytest

from workbench.corpus.records import Chunk
from workbench.methods.credit import new_maxima
from workbench.methods.signals import build_signal


def document(title, text):
    return Chunk(title, "p", title, text, ())


def matched(small, answers, *results, **changes):
    planned = [small.Searched(tuple(r), **changes) for r in results]
    item = small.item_of([], answers)
    return build_signal("am").potentials(item, small.searched(*planned))


@pytest.mark.parametrize(
    ("answers", "title", "text", "found"),
    [
        (("The Hague",), "Netherlands", "The seat is the  HAGUE, a city.", True),
        (("Bamako",), "Bamako", "a city", True),
        (("Mali", "Bamako city"), "Africa", "Bamako city lies on a river", True),
        (("Bamako city",), "Bamako", "city", False),  # title and body are not joined
        (("no",), "Nolan Ryan", "known", False),
        (("3.5",), "x", "version 35", True),  # the project's normaliser
        (("1914–1918",), "x", "in 1914-1918", False),
        (("The", "!?"), "The", "the a !?", False),  # no alias is left
        (("Rome",), "x", "“Rome” is", True),
        (("new york",), "x", "new yorker, york new, New York", True),
    ],
)
def test_answer_match(small, answers, title, text, found):
    assert matched(small, answers, [document(title, text)]) == [float(found)]


def test_a_match_is_never_put_together_and_stays(small):
    parts = [document("Bamako", "river"), document("x", "city")]
    whole = [document("x", "Bamako city")]
    assert matched(small, ("Bamako city",), parts, [], whole, []) == [0, 0, 1, 1]


def test_only_what_a_complete_observation_shows_is_matched(small):
    hit = [document("x", "Bamako")]
    assert matched(small, ("Bamako",), hit, cut=True) == [0.0]
    silent = small.searched(small.Searched(), answer="Bamako")
    silent.searches[0].query, silent.searches[0].ignored_queries = "Bamako", ["Bamako"]
    assert build_signal("am").potentials(small.item_of([], ("Bamako",)), silent) == [0.0]


def test_events_of_rounded_and_exact_potentials():
    thirds = [1 / 3, 2 / 3, 2 / 3, 1.0]
    assert new_maxima(thirds, 4).tolist() == [0.3333, 0.3334, 0.0, 0.3333]
    exact = new_maxima(thirds)
    assert exact[0] == exact[1] == exact[3] and exact[2] == 0  # freed of float noise
    np.testing.assert_allclose(exact, [1 / 3, 1 / 3, 0, 1 / 3], atol=1e-12)


def test_a_potential_that_falls_earns_only_above_its_maximum():
    assert new_maxima([0.5, 0.25, 0.5, 0.75]).tolist() == [0.5, 0.0, 0.0, 0.25]
    assert new_maxima([]).shape == (0,)
