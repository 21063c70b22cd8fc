"""Demonstrations of the report agent: search or open pages, then a short cited report.

They are the searched demonstrations of the base policy with three things more.  A query that
names only the subject may be followed by opening that page.  The answer turn is a report: the
answer in bold, then a line for each passage that the question needs, as it stands there, with
its document in brackets.  Behind it the policy says how sure it is: ``sure`` when the evidence
was seen; ``unsure`` when the report stands without it, and then nothing but that is learnt.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from ..config import Settings
from ..corpus.records import Chunk, Extent
from ..questions.graph import Item
from ..questions.relations import BY_NAME
from .demonstrations import Demonstrator
from .drafts import Demonstration, Draft, Made
from .lookups import STYLES, Lookup

BOLD, HEADING = "**", "# Evidence"


class ReportDemonstrationConfig(Settings):
    """Shares of the mixture.

    hops : by number of nodes; ``named``: named roots among one-hop questions.
    opened : of the searches by the subject alone, how many go on by opening the page;
    sloppy : of the reports, how many have such a search.
    unsupported : reports whose last search misses; only their confidence is learnt.
    entity_only : share under the entity-only prompt, whose answer is the entity alone.
    renamed : share in which all names and answers are replaced by others of their kind.
    sure, unsure : what is said, in per cent.
    """

    hops: tuple[float, ...] = (0.4, 0.34, 0.16, 0.10)
    named: float = Field(default=0.7, ge=0, le=1)
    sloppy: float = Field(default=0.3, ge=0, le=1)
    opened: float = Field(default=0.6, ge=0, le=1)
    unsupported: float = Field(default=0.15, ge=0, le=1)
    entity_only: float = Field(default=0.2, ge=0, le=1)
    renamed: float = Field(default=0.8, ge=0, le=1)
    sure: int = Field(default=90, ge=0, le=100)
    unsure: int = Field(default=10, ge=0, le=100)


class ReportDemonstrator(Demonstrator):
    """Draws report demonstrations over a corpus, its facts and its questions.

    Parameters
    ----------
    recipe : the mixture; the other arguments are those of ``Demonstrator``, the tokenizer with
        the report's marks and ``protocol`` the report protocol under the stock prompt.
    entity : the report protocol under the entity-only prompt.
    store : the pages that ``get_doc`` opens.
    """

    def __init__(self, *arguments, recipe: ReportDemonstrationConfig, entity, store):
        super().__init__(*arguments)
        self.recipe, self.entity, self.store = recipe, entity, store
        self.single = []  # reports state no facts: nothing is memorised here
        self._said = {fact.fact_id: line for fact, line in self._lines}

    def draw(self, rng, early: bool = False) -> Demonstration:
        """One demonstration of the mixture."""
        shares = np.cumsum(self.recipe.hops)
        hops = int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
        pool = self.longer[hops]
        if not pool or (hops == 0 and rng.random() < self.recipe.named):
            pool = self.reading
        return self.report(pool[rng.integers(len(pool))], rng)

    def report(self, item: Item, rng) -> Demonstration:
        """A report on ``item``; on another one when the retriever misses a passage of it."""
        c = self.recipe
        short = rng.random() < c.entity_only
        lookups = self._lookups[item.item_id]
        missed = rng.random() < c.unsupported
        slip = int(rng.integers(len(lookups))) if rng.random() < c.sloppy else None
        protocol = self.entity if short else self.protocol
        draft, seen, learn = self._start(item, protocol), [], True
        for place, lookup in enumerate(lookups):
            if missed and lookup.last:
                draft.say("Looking this up. </think>", False)
                seen = self._search(draft, lookup.query(int(rng.integers(1, len(STYLES)))), rng)
                learn = self._shows(seen, lookup.fact)
                draft.say("<think>", False)
            elif not self._shows(seen, lookup.fact):
                draft.say("Looking this up. </think>")
                hits = self._look(draft, lookup, rng, place == slip)
                if hits is None:
                    return self.draw(rng)
                seen = [*seen, *hits]
                draft.say("<think>")
            draft.say(self._found(lookup, seen, True, rng), learn).say(".", learn)
        self._write(draft, item, short, learn, rng)
        draft.feed(protocol.confidence).say(str(c.sure if learn else c.unsure)).say(self.eos)
        return self._finish(draft, item, rng, swap=True)

    def _write(self, draft: Draft, item: Item, short: bool, learn: bool, rng) -> None:
        """The answer turn; ``learn`` False: a wrong answer, and no loss."""
        answer = item.answers[0]
        pool = self._answer_pool(item)
        if not learn and pool:
            answer = self.tokenizer.convert_ids_to_tokens(int(pool[rng.integers(len(pool))]))
        draft.say("</think> <answer>", learn)
        if short:
            draft.say(answer, learn).say("</answer>", learn)
            return
        draft.say(BOLD, learn).say(answer, learn).say(f"{BOLD} {HEADING}", learn)
        for lookup in self._lookups[item.item_id]:
            fact = lookup.fact
            said = self._said.get(fact.fact_id, f"{BY_NAME[fact.relation].field}: {fact.answer}")
            draft.say(f"- {fact.title}: {said} [ {fact.title} ]", learn)
        draft.say("</answer>", learn)

    def _look(self, draft: Draft, lookup: Lookup, rng, sloppy: bool):
        """Search until the evidence is there, or open the page that a sloppy query found."""
        opens = sloppy and not lookup.backward and rng.random() < self.recipe.opened
        if not opens:
            return self._find(draft, lookup, rng, sloppy)
        hits = self._search(draft, lookup.query(1), rng)
        fact = lookup.fact
        page = self.store.open(fact.page_id)
        shown = self.protocol.page(page, self.protocol.config.max_page_tokens)
        if self._shows(hits, fact) or shown.cut:
            return hits if self._shows(hits, fact) else None
        tag = self.protocol.config.open_tag
        draft.say("<think> Not there. Looking this up. </think>")
        draft.say(f"<{tag}> {fact.title} </{tag}>").feed(shown.ids)
        place = Extent(fact.paragraph, fact.start, fact.end)
        return [*hits, Made(Chunk("", fact.page_id, fact.title, "", (place,)))]
