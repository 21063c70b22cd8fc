"""English function words that carry no evidence, about 130 (S2 App. A step iv).

S2 gives the size of its list and not the list.  This one was written for the workbench from
the closed word classes of English, class by class, and belongs to no published list.
"""

from __future__ import annotations

_ARTICLES_AND_DETERMINERS = """
a an the this that these those each every some any all both few many much more most other
another such no same
"""
_PRONOUNS = """
i me my myself we us our you your he him his himself she her herself
it its itself they them their themselves who whom whose which what
"""
_PREPOSITIONS = """
about above after against among at before below between by down during for from in into of
off on out over since through to under until up with within without
"""
_CONJUNCTIONS = """
and or but nor so if because as than though although while
"""
_AUXILIARIES = """
am is are was were be been being have has had having do does did doing will would shall
should can could
"""
_ADVERBS = """
not only very too also just then there here now when where why how again
"""

STOPWORDS: frozenset[str] = frozenset(
    " ".join(
        (
            _ARTICLES_AND_DETERMINERS,
            _PRONOUNS,
            _PREPOSITIONS,
            _CONJUNCTIONS,
            _AUXILIARIES,
            _ADVERBS,
        )
    ).split()
)
