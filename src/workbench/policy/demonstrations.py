"""Demonstrations that teach the base policy the protocol, reading, and graded knowledge.

Six kinds of sequences, drawn anew for every step:

* *statements*: a fact's question answered from memory; each fact exactly as often as its
  ``exposures`` say, in the normal and in the closed-book prompt.  They are the only place
  where an answer is shown without its passage.
* *masked direct*: other questions answered directly, without loss on the first mention of
  the answer: answering from memory stays likely everywhere, wrong answers are not taught.
* *searched*: one search for each passage that the question graph requires, over what the
  retriever really returns; a passage that an earlier search showed is not searched again.
* *lookups*: made-up passages of real lines under random titles, and many questions of the
  form "title field -> answer" in a row: nearly every third token teaches reading.  Early on
  most of them copy the passages instead, word by word: copying is what reading grows from.
* *sloppy*: one query that names only the subject, or asks for another field, and a second,
  better one when the evidence did not come.

The reasoning before an answer names the page and field of the evidence and mostly not the
answer itself, so that deleting the evidence (S1 Eq. 1) takes the answer away.

Reading must not become recall, so the names and answers of the question are swapped for others
of their kind, or all names in sight are *renamed*, consistently through the whole sequence
(question, queries, passages, answer).
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..corpus.records import Chunk
from ..questions.categories import SINGLE
from ..questions.graph import Item
from ..questions.relations import BY_NAME, Fact
from .drafts import Demonstration, Draft, Made, short_lines
from .inventions import Inventor
from .lookups import STYLES, Lookup, lookups_of
from .mixture import DemonstrationConfig
from .names import Names

# What demonstrations and the environment say beside corpus and questions.
PHRASES = (
    "Question: From memory: , as I recall. Recalling . Known already. Not there. "
    "Looking this up. One of both not ( ) 1 2 3 4 5 : No results. "
    "This was no valid action. Search, or give the answer."
)


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
        self.single = [i for i in items if i.category == SINGLE and i.roots == "named"]
        self.reading = [i for i in self.single if i.split != "test"]
        self._lookups = {i.item_id: lookups_of(i, self.facts) for i in items if i.split != "test"}
        self.eos = tokenizer.eos_token
        self._hits: dict[str, list] = {}
        self._prepare_queries()
        self.longer = self._readable(items)
        lines = short_lines(pages, facts)
        self.names = Names(self._ids, facts, items, (PHRASES, protocol.config.prompt))
        self._on_page: dict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            self._on_page[fact.page_id].append(fact)
        self._lines = [(f, line) for f in facts if (line := lines.get(f.fact_id))]
        self.inventor = Inventor(facts, lines, self.names.titles)

    # -- ingredients -----------------------------------------------------------------

    def _ids(self, text: str) -> list[int]:
        if text not in self._text_ids:
            self._text_ids[text] = self.tokenizer.encode(text, add_special_tokens=False)
        return self._text_ids[text]

    def _readable(self, items) -> list[list[Item]]:
        """By hops, the questions beside named facts whose passages good queries all find."""
        found: list[list[Item]] = [[] for _ in self.config.hops]
        for item in items:
            if item.split == "test" or (item.category == SINGLE and item.roots == "named"):
                continue
            lookups = self._lookups[item.item_id]
            if item.hops <= len(found) and all(
                self._shows(self._hits[lookup.query()], lookup.fact) for lookup in lookups
            ):
                found[item.hops - 1].append(item)
        return found

    def _prepare_queries(self) -> None:
        wanted: set[str] = set()
        for lookups in self._lookups.values():
            wanted.update(l.query(style) for l in lookups for style in range(len(STYLES)))
        ordered = sorted(wanted)
        for start in range(0, len(ordered), 256):
            batch = ordered[start : start + 256]
            for query, hits in zip(batch, self.searcher.search(batch), strict=True):
                self._hits[query] = hits

    def _shows(self, hits, fact: Fact) -> bool:
        """Whether some passage holds the whole mention."""
        return any(
            h.chunk.contains(fact.page_id, fact.paragraph, fact.start)
            and h.chunk.contains(fact.page_id, fact.paragraph, fact.end - 1)
            for h in hits
        )

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
        shares = np.cumsum(c.hops[:2] if early else c.hops)
        hops = int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
        named = c.named_early if early else c.named
        if hops == 0 and (rng.random() < named or not self.longer[0]):
            item = self.reading[rng.integers(len(self.reading))]
            direct = c.direct_known if item.exposures >= 4 else c.direct_unknown
        else:
            pool = self.longer[hops] or self.reading
            item = pool[rng.integers(len(pool))]
            direct = c.direct_chain
        if rng.random() < direct:
            return self.masked_direct(item, rng)
        return self.searched(item, rng)

    def lookups(self, rng, copy: bool) -> Demonstration:
        """Made-up passages and, in random order, answers read from them or their own words."""
        titles = rng.choice(len(self.names.titles), size=3, replace=False)
        hits, asked = [], []
        for rank in titles:
            title = self.names.titles[rank]
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
        pool = self._answer_pool(item)
        own = self._ids(item.answers[0])
        if pool and len(own) == 1:
            answer = self.tokenizer.convert_ids_to_tokens(int(pool[rng.integers(len(pool))]))
        else:
            answer = item.answers[0]
        self._answer_directly(draft, answer, rng, learn=False)
        return self._finish(draft, item, rng, swap=False)

    def _answer_pool(self, item: Item) -> list[int]:
        """Tokens of answers of the right kind."""
        last = self._lookups[item.item_id][-1]
        return self.names.title_tokens if last.backward else self.names.of_kind(last.fact)

    def _search(self, draft: Draft, query: str, rng):
        draft.say("<search>").say(query).say("</search>")
        hits = self._hits[query]
        self._observe(draft, hits, rng)
        return hits

    def searched(self, item: Item, rng) -> Demonstration:
        """One search for each required passage and the answer read from what came back."""
        lookups = self._lookups[item.item_id]
        stop = len(lookups)
        if stop > 1 and rng.random() < self.config.stop_early:
            stop = int(rng.integers(1, stop))
        slip = int(rng.integers(stop)) if rng.random() < self.config.sloppy else None
        told = rng.random() < self.config.told
        made_up = bool(self.config.invented) and rng.random() < self.config.invented
        draft, seen = self._start(item), []
        for place, lookup in enumerate(lookups[:stop]):
            if not self._shows(seen, lookup.fact):
                draft.say("Looking this up. </think>")
                hits = self._invent(draft, lookup, rng) if made_up else None
                hits = hits or self._find(draft, lookup, rng, place == slip)
                if hits is None:
                    return self.masked_direct(item, rng)
                seen += hits
                draft.say("<think>")
            draft.say(self._found(lookup, seen, told, rng)).say(".")
        draft.say("</think> <answer>").say(item.answers[0], stop == len(lookups))
        draft.say("</answer>").say(self.eos)
        return self._finish(draft, item, rng, swap=True)

    def _found(self, lookup: Lookup, hits, told: bool, rng) -> str:
        """The thought after a passage came.

        Where it stands, and if ``told`` what it says, unless that is the answer to the question;
        of a conjunctive node the candidates, at the second passage with which of them are in both.
        """
        place = f"{lookup.fact.title} {BY_NAME[lookup.fact.relation].field}"
        if lookup.backward and lookup.first:
            return "One of " + " , ".join(self._candidates(lookup, hits))
        if told and (lookup.first or lookup.second):
            names = self._candidates(lookup, hits)
            if lookup.second:
                names = [f"{n} {'both' if n in lookup.answers else 'not'}" for n in names]
            return (f"{place}: " if not lookup.backward else "") + " , ".join(names)
        if told and not lookup.last and not lookup.backward:
            return f"{place}: {lookup.fact.answer}"
        return self._cite(lookup.fact, rng)

    def _candidates(self, lookup: Lookup, hits) -> list[str]:
        """Pages that the passages give for a description, or the objects that a page lists."""
        shown = [(h, f) for h in hits for f in self._on_page.get(h.chunk.page_id, ())]
        if lookup.backward:
            same = (lookup.fact.relation, lookup.fact.answer)
            found = [
                f.title for h, f in shown if (f.relation, f.answer) == same and self._shows([h], f)
            ]
        else:
            same = (lookup.fact.relation, lookup.fact.page_id)
            found = [
                f.answer
                for h, f in shown
                if (f.relation, f.page_id) == same and self._shows([h], f)
            ]
        return list(dict.fromkeys(found))

    def _invent(self, draft: Draft, lookup: Lookup, rng):
        """A search that finds made-up passages; None where several passages are compared."""
        hits = None
        if not (lookup.first or lookup.second):
            hits = self.inventor.results(lookup.fact, rng)
        if hits is not None:
            draft.say("<search>").say(lookup.query()).say("</search>")
            self._feed_passages(draft, hits)
        return hits

    def _find(self, draft: Draft, lookup: Lookup, rng, sloppy: bool):
        """Search until the evidence is there; None when the retriever misses it."""
        style = int(rng.integers(1, len(STYLES))) if sloppy else 0
        hits = self._search(draft, lookup.query(style), rng)
        if self._shows(hits, lookup.fact):
            return hits
        if not sloppy:
            return None
        draft.say("<think> Not there. Looking this up. </think>")
        better = self._search(draft, lookup.query(), rng)
        return [*hits, *better] if self._shows(better, lookup.fact) else None

    # -- swaps -----------------------------------------------------------------------

    def _finish(self, draft: Draft, item: Item | None, rng, swap: bool) -> Demonstration:
        tokens = np.asarray(draft.ids, dtype=np.int64)
        mask = np.asarray(draft.mask, dtype=bool)
        if swap:
            self._swap(tokens, item, rng)
        return Demonstration(tokens, mask)

    def _swap(self, tokens: np.ndarray, item: Item, rng) -> None:
        c = self.config
        if c.renamed and rng.random() < c.renamed:
            self.names.rename(tokens, rng)
            return
        facts = [lookup.fact for lookup in self._lookups[item.item_id]]
        answers, subjects = rng.random() < c.swap_answer, rng.random() < c.swap_subject
        self.names.swap(tokens, item, facts, answers, subjects, rng)
