"""Demonstrations that teach the base policy the protocol, reading, and graded knowledge.

Six kinds of sequences, drawn anew for every step:

* *statements*: a fact's question answered from memory; each fact exactly as often as its
  ``exposures`` say, in the normal and in the closed-book prompt.  They are the only place
  where an answer is shown without its passage.
* *masked direct*: other questions answered directly, without loss on the first mention of
  the answer: answering from memory stays likely everywhere, wrong answers are not taught.
* *one search* and *two searches* over what the retriever really returns for the query.
* *lookups*: made-up passages of real lines under random titles, and many questions of the
  form "title field -> answer" in a row: nearly every third token teaches reading.  Early on
  most of them copy the passages instead, word by word: copying is what reading grows from.
* *sloppy*: a first query that names only the subject, or asks for another field, and a
  second, better one when the evidence did not come.

The reasoning before an answer names the page and field of the evidence and mostly not the
answer itself, so that deleting the evidence (S1 Eq. 1) takes the answer away.

Reading must not become recall, so names and answers are swapped consistently through the
whole sequence (question, queries, passages, answer) for others of their kind.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from pydantic import Field

from ..config import Settings
from ..corpus.records import Chunk
from ..questions.build import CHAIN
from ..questions.graph import Item
from ..questions.relations import BY_NAME, Fact
from .drafts import Demonstration, Draft, Made, short_lines


class DemonstrationConfig(Settings):
    """Shares of the mixture and of the swaps; see the module's docstring.

    ``lookups_early`` is the share of lookups in the first ``early_share`` of the steps,
    ``lookups_late`` afterwards, ``copies_early`` the share of copies among the early ones.
    ``direct_known`` applies to facts shown four times or more.
    """

    one_hop: float = Field(default=0.56, ge=0, le=1)
    direct_known: float = Field(default=0.35, ge=0, le=1)
    direct_unknown: float = Field(default=0.22, ge=0, le=1)
    direct_chain: float = Field(default=0.12, ge=0, le=1)
    one_search_chain: float = Field(default=0.10, ge=0, le=1)
    sloppy: float = Field(default=0.18, ge=0, le=1)
    closed_book: float = Field(default=0.15, ge=0, le=1)
    statement_closed_book: float = Field(default=0.65, ge=0, le=1)
    answer_in_reasoning: float = Field(default=0.2, ge=0, le=1)
    swap_answer: float = Field(default=0.65, ge=0, le=1)
    swap_subject: float = Field(default=0.65, ge=0, le=1)
    shuffle_passages: float = Field(default=0.5, ge=0, le=1)
    early_share: float = Field(default=0.2, ge=0, le=1)
    lookups_early: float = Field(default=0.7, ge=0, le=1)
    lookups_late: float = Field(default=0.12, ge=0, le=1)
    copies_early: float = Field(default=0.4, ge=0, le=1)


class Demonstrator:
    """Draws demonstrations over a corpus, its facts and its questions.

    Parameters
    ----------
    tokenizer : the policy's tokenizer.
    protocol, closed_book : the tag protocol it is to speak, with and without retrieval in its
        prompt; their ``prompt`` and ``observation`` give the ids that rollouts will show.
    searcher : the retriever of the study.
    pages : the pages that the facts were read from.
    facts : every fact of the corpus, for swaps and statements.
    items : questions whose passages may be read: those of the test split are refused here,
        only their facts' statements (``exposures``) are shown.
    """

    def __init__(self, tokenizer, protocol, closed_book, searcher, pages, facts, items, config):
        self.config: DemonstrationConfig = config
        self.protocol, self.closed_book = protocol, closed_book
        self.tokenizer, self.searcher = tokenizer, searcher
        self._text_ids: dict[str, list[int]] = {}
        self.facts: dict[str, Fact] = {f.fact_id: f for f in facts}
        self.single = [i for i in items if i.hops == 1]
        self.reading = [i for i in self.single if i.split != "test"]
        self.chains = [i for i in items if i.category == CHAIN and i.split != "test"]
        self.eos = tokenizer.eos_token
        self._hits: dict[str, list] = {}
        self._prepare_queries()
        lines = short_lines(pages, facts)
        self._pools: dict[str, list[int]] = defaultdict(list)
        for fact in facts:
            tokens = self._ids(fact.answer)
            if len(tokens) == 1:
                self._pools[BY_NAME[fact.relation].kind].append(tokens[0])
        titles = {f.title for f in facts}
        self._title_names = [n for n in sorted(titles) if len(self._ids(n)) == 1]
        self._titles = [self._ids(n)[0] for n in self._title_names]
        self._lines = [(f, line) for f in facts if (line := lines.get(f.fact_id))]
        self._pools = {k: sorted(set(v)) for k, v in self._pools.items()}

    # -- ingredients -----------------------------------------------------------------

    def _ids(self, text: str) -> list[int]:
        if text not in self._text_ids:
            self._text_ids[text] = self.tokenizer.encode(text, add_special_tokens=False)
        return self._text_ids[text]

    def _prepare_queries(self) -> None:
        wanted: set[str] = set()
        for item in [*self.reading, *self.chains]:
            wanted.update(self._first_query(item, style) for style in range(3))
            if item.hops == 2:
                wanted.add(self._second_query(item))
        ordered = sorted(wanted)
        for start in range(0, len(ordered), 256):
            batch = ordered[start : start + 256]
            for query, hits in zip(batch, self.searcher.search(batch), strict=True):
                self._hits[query] = hits

    def _first_query(self, item: Item, style: int) -> str:
        """Query for the first node: 0 good, 1 the subject alone, 2 another field."""
        fact = self.facts[item.nodes[0].fact_id]
        relation = BY_NAME[fact.relation]
        subject = fact.answer if item.hops == 2 and relation.described else fact.title
        if style == 1:
            return subject
        if style == 2:
            names = list(BY_NAME)
            other = names[(names.index(relation.name) + 7) % len(names)]
            return BY_NAME[other].query.format(s=subject)
        return relation.query.format(s=subject)

    def _second_query(self, item: Item) -> str:
        fact = self.facts[item.nodes[1].fact_id]
        return BY_NAME[fact.relation].query.format(s=fact.title)

    def _shows(self, hits, fact: Fact) -> bool:
        return any(h.chunk.contains(fact.page_id, fact.paragraph, fact.start) for h in hits)

    def _observe(self, draft: Draft, hits, rng) -> None:
        hits = list(hits)
        if rng.random() < self.config.shuffle_passages:
            rng.shuffle(hits)
        self._feed_passages(draft, hits)

    def _feed_passages(self, draft: Draft, hits) -> None:
        limit = self.protocol.config.max_observation_tokens
        draft.feed(self.protocol.observation(hits, (), limit).ids)

    def _cite(self, fact: Fact, rng) -> str:
        """Where the evidence stands: page and field, sometimes with the answer."""
        place = f"{fact.title} {BY_NAME[fact.relation].field}"
        told = rng.random() < self.config.answer_in_reasoning
        return f"{place}: {fact.answer}" if told else place

    # -- kinds -----------------------------------------------------------------------

    def statement(self, item: Item, rng) -> Demonstration:
        """The item answered from memory, with loss on the answer."""
        closed = rng.random() < self.config.statement_closed_book
        protocol = self.closed_book if closed else self.protocol
        draft = self._start(item, protocol)
        self._answer_directly(draft, item.answers[0], rng, learn=True)
        return self._finish(draft, item, rng, swap=False)

    def draw(self, rng, early: bool = False) -> Demonstration:
        """One demonstration of the mixture, early or late in training."""
        c = self.config
        if rng.random() < (c.lookups_early if early else c.lookups_late):
            return self.lookups(rng, copy=early and rng.random() < c.copies_early)
        if rng.random() < c.one_hop:
            item = self.reading[rng.integers(len(self.reading))]
            direct = c.direct_known if item.exposures >= 4 else c.direct_unknown
        else:
            item = self.chains[rng.integers(len(self.chains))]
            direct = c.direct_chain
        if rng.random() < direct:
            return self.masked_direct(item, rng)
        return self.searched(item, rng)

    def lookups(self, rng, copy: bool) -> Demonstration:
        """Made-up passages and, in random order, answers read from them or their own words."""
        titles = rng.choice(len(self._title_names), size=3, replace=False)
        hits, asked = [], []
        for rank in titles:
            title = self._title_names[rank]
            own = [self._lines[i] for i in rng.integers(len(self._lines), size=3)]
            own = list({fact.relation: (fact, line) for fact, line in own}.values())
            chunk = Chunk("", "", title, "\n".join(line for _, line in own), ())
            hits.append(Made(chunk))
            asked += [(title, fact) for fact, _ in own]
        draft = Draft(self._ids)
        self._feed_passages(draft, hits)
        if copy:
            for place in rng.permutation(len(hits)):
                chunk = hits[place].chunk
                draft.say(chunk.title, False).say(f": {chunk.text}")
            return self._finish(draft, None, rng, swap=False)
        for place in rng.permutation(len(asked)):
            title, fact = asked[place]
            draft.say("<think>").say(title, False).say(BY_NAME[fact.relation].field, False)
            if rng.random() < self.config.answer_in_reasoning:
                draft.say(":").say(fact.answer)
            draft.say(". </think> <answer>").say(fact.answer).say("</answer>")
        return self._finish(draft, None, rng, swap=False)

    def _start(self, item: Item, protocol=None) -> Draft:
        draft = Draft(self._ids)
        return draft.feed((protocol or self.protocol).prompt(item.question))

    def _answer_directly(self, draft: Draft, answer: str, rng, learn: bool) -> None:
        style = rng.random()
        if style < 0.4:
            draft.say(answer, learn).say(", as I recall. </think>", learn)
            learn = True
        elif style < 0.65:
            draft.say("Recalling").say(answer, learn).say(". </think>")
            learn = True
        else:
            draft.say("Known already. </think>")
        draft.say("<answer>").say(answer, learn).say("</answer>").say(self.eos)

    def masked_direct(self, item: Item, rng) -> Demonstration:
        """A direct answer of the right kind, without loss on its first mention."""
        closed = rng.random() < self.config.closed_book
        draft = self._start(item, self.closed_book if closed else self.protocol)
        pool = self._pools.get(self._kind(item), [])
        own = self._ids(item.answers[0])
        if pool and len(own) == 1:
            answer = self.tokenizer.convert_ids_to_tokens(int(pool[rng.integers(len(pool))]))
        else:
            answer = item.answers[0]
        self._answer_directly(draft, answer, rng, learn=False)
        return self._finish(draft, item, rng, swap=False)

    def _kind(self, item: Item) -> str:
        return BY_NAME[self.facts[item.nodes[-1].fact_id].relation].kind

    def _search(self, draft: Draft, query: str, rng):
        draft.say("<search>").say(query).say("</search>")
        hits = self._hits[query]
        self._observe(draft, hits, rng)
        return hits

    def searched(self, item: Item, rng) -> Demonstration:
        """One search for each hop and the answer read from what came back."""
        facts = [self.facts[n.fact_id] for n in item.nodes]
        draft = self._start(item)
        sloppy = rng.random() < self.config.sloppy
        style = int(rng.integers(1, 3)) if sloppy else 0
        hits = self._find(draft, item, facts[0], self._first_query(item, style), rng, sloppy)
        if hits is None:
            return self.masked_direct(item, rng)
        draft.say("<think>").say(self._cite(facts[0], rng))
        if len(facts) == 2:
            if rng.random() < self.config.one_search_chain:
                draft.say(". </think> <answer>").say(item.answers[0], False)
                draft.say("</answer>").say(self.eos)
                return self._finish(draft, item, rng, swap=True)
            draft.say(". Looking this up. </think>")
            hits = self._search(draft, self._second_query(item), rng)
            if not self._shows(hits, facts[1]):
                return self.masked_direct(item, rng)
            draft.say("<think>").say(self._cite(facts[1], rng))
        draft.say(". </think> <answer>").say(item.answers[0]).say("</answer>").say(self.eos)
        return self._finish(draft, item, rng, swap=True)

    def _find(self, draft, item, fact, query, rng, sloppy):
        """Search until the first fact's evidence is there; None when the retriever misses it."""
        draft.say("Looking this up. </think>")
        hits = self._search(draft, query, rng)
        if self._shows(hits, fact):
            return hits
        if not sloppy:
            return None
        draft.say("<think> Not there. Looking this up. </think>")
        hits = self._search(draft, self._first_query(item, 0), rng)
        return hits if self._shows(hits, fact) else None

    # -- swaps -----------------------------------------------------------------------

    def _finish(self, draft: Draft, item: Item | None, rng, swap: bool) -> Demonstration:
        tokens = np.asarray(draft.ids, dtype=np.int64)
        mask = np.asarray(draft.mask, dtype=bool)
        if swap:
            self._swap(tokens, item, rng)
        return Demonstration(tokens, mask)

    def _swap(self, tokens: np.ndarray, item: Item, rng) -> None:
        facts = [self.facts[n.fact_id] for n in item.nodes]
        present = set(tokens.tolist())
        jobs = []
        if rng.random() < self.config.swap_answer:
            jobs += [(f.answer, self._pools.get(BY_NAME[f.relation].kind, [])) for f in facts]
        if rng.random() < self.config.swap_subject:
            jobs += [(t, self._titles) for t in dict.fromkeys(f.title for f in facts)]
        taken: set[int] = set()
        for name, pool in jobs:
            old = self._ids(name)
            if len(old) != 1 or old[0] in taken or len(pool) < 2:
                continue
            for _ in range(8):
                new = int(pool[rng.integers(len(pool))])
                if new not in present:
                    tokens[tokens == old[0]] = new
                    present.add(new)
                    taken.add(new)
                    break
