"""Facts that a sentence of KILT says: two linked entities in it, and a relation between them.

The entities of a sentence are the targets of its links and the page's own.  For each ordered
pair that a property of the knowledge base connects, the passage is kept with the places where
it names the object (all of them in the paragraph) and the subject.  Of several passages of
one fact those on the subject's or the object's own page come first, then the hash decides: so
passages are not always first ones, and the choice does not depend on the order of the file.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ...corpus.chunking import chunk_page
from ...corpus.records import Chunk, Page
from ...corpus.store import ChunkWriter
from ...seeding import seed_of
from .kilt import SECTION, Anchor, KiltPage, Refused, parse_page
from .mentions import Span, find_names, merged, sentences
from .passes import run_pass
from .settings import SourceConfig
from .work import Progress, Work

Fact = tuple[int, int, int]


def statement_id(fact: Fact) -> str:
    """``Q42-P69-Q691283``."""
    return f"Q{fact[0]}-P{fact[1]}-Q{fact[2]}"


def entity_names(work: Work, qids: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """The names of entities: label, KILT's names, aliases of the dump; each once."""
    qids = list(dict.fromkeys(qids))
    names: dict[int, list[str]] = {qid: [] for qid in qids}
    aliases: dict[int, list[str]] = {}
    terms = "SELECT qid, label, aliases FROM terms WHERE qid IN ({})"
    for qid, label, other in work.select_in(terms, qids):
        names[qid] += [label] if label else []
        aliases[qid] = json.loads(other)
    pages = "SELECT qid, names FROM pages WHERE qid IN ({}) ORDER BY page"
    for qid, own in work.select_in(pages, qids):
        names[qid] += json.loads(own)
    return {q: tuple(dict.fromkeys((*own, *aliases.get(q, ())))) for q, own in names.items()}


def chunk_of(chunks: Iterable[Chunk]) -> dict[int, list[tuple[int, int, int]]]:
    """Paragraph -> (start, end, ordinal of the chunk) of what the chunks hold of it."""
    extents: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for ordinal, chunk in enumerate(chunks):
        for extent in chunk.extents:
            extents[extent.paragraph].append((extent.start, extent.end, ordinal))
    return extents


class Sentences:
    """The reader of the third pass: fills ``grounded`` and writes the chunks, shard by shard."""

    def __init__(self, work: Work, config: SourceConfig, folder: Path, ended: int):
        self._work, self._config, self._folder = work, config, folder
        self._ignored = {int(p[1:]) for p in config.ignored}
        self._chunks: list[Chunk] = []
        self._next = ended + 1
        self._last = ended
        folder.mkdir(parents=True, exist_ok=True)

    def may_end_before(self, line: bytes) -> bool:
        """Anywhere."""
        return True

    def flush(self) -> None:
        """Write the shard's chunks; a file of a shard that was not committed is replaced."""
        if self._chunks:
            with ChunkWriter(self._folder / f"{self._next:09d}.parquet") as writer:
                writer.write(self._chunks)
        self._chunks.clear()
        self._next = self._last + 1

    def take(self, number: int, line: bytes) -> None:
        """One page."""
        self._last = number
        if not line.strip():
            return
        try:
            kilt = parse_page(line)
        except Refused:
            if not line.endswith(b"\n"):
                raise
            return  # noted in the first pass
        page = kilt.page
        first = self._work.db.execute(
            "SELECT line FROM pages WHERE page = ?", (int(page.page_id),)
        ).fetchone()
        if first is None or first[0] != number:
            return
        for record in kilt.misplaced:
            self._work.refuse("sentences", number, record, "an anchor outside its paragraph")
        chunks = chunk_page(page, self._config.chunks)
        self._chunks += chunks
        links = self._targets(kilt.anchors)
        facts = self._facts({kilt.qid, *links.values()} - {None})
        if facts:
            extents = chunk_of(chunks)
            for fact, paragraph, mentions, subject in self._said(kilt, links, facts):
                self._keep(number, page, extents, fact, paragraph, mentions, subject, kilt.qid)

    def _targets(self, anchors: tuple[Anchor, ...]) -> dict[Anchor, int]:
        """Anchor -> the item of the page that it leads to."""
        by_page = {a.page_id for a in anchors if a.page_id is not None}
        by_title = {a.title for a in anchors if a.page_id is None and a.title}
        select = self._work.select_in
        rows = "SELECT {key}, qid FROM pages WHERE {key} IN ({{}}) AND qid NOT NULL ORDER BY page"
        of_page = dict(select(rows.format(key="page"), sorted(by_page)))
        of_title = dict(select(rows.format(key="title"), sorted(by_title)))
        found = {
            a: of_title.get(a.title) if a.page_id is None else of_page.get(a.page_id)
            for a in anchors
        }
        return {a: qid for a, qid in found.items() if qid is not None}

    def _facts(self, qids: set[int]) -> dict[int, list[tuple[int, int]]]:
        """Subject -> (property, object) among these entities."""
        facts: dict[int, list[tuple[int, int]]] = defaultdict(list)
        if len(qids) > 1:
            rows = (
                "SELECT s, p, o FROM facts WHERE s IN (SELECT value FROM json_each(?1)) "
                "AND o IN (SELECT value FROM json_each(?1)) AND o != s"
            )
            for s, p, o in self._work.db.execute(rows, (json.dumps(sorted(qids)),)):
                if p not in self._ignored:
                    facts[s].append((p, o))
        return facts

    def _said(
        self, kilt: KiltPage, links: Mapping[Anchor, int], facts: Mapping[int, list]
    ) -> Iterator[tuple[Fact, int, list[Span], list[Span]]]:
        """(fact, paragraph, spans of the object, spans of the subject), each pair once."""
        text = kilt.page.text
        involved = {*facts, *(o for pairs in facts.values() for _, o in pairs)}
        names = entity_names(self._work, sorted(involved))
        by_paragraph: dict[int, list[Anchor]] = defaultdict(list)
        for anchor in links:
            by_paragraph[anchor.paragraph].append(anchor)
        prose = (i for i, p in enumerate(text) if i and p.strip() and not p.startswith(SECTION))
        lead = next(prose, 0)
        for index in sorted(by_paragraph):
            if index == 0 or text[index].startswith(SECTION):
                continue
            anchors = by_paragraph[index]
            spans: dict[int, list[Span]] = defaultdict(list)
            for anchor in anchors:
                spans[links[anchor]].append((anchor.start, anchor.end))
            if kilt.qid in involved:
                spans[kilt.qid] += find_names(text[index], names[kilt.qid])
            if not any(o in spans for s in (*spans, kilt.qid) for _, o in facts.get(s, ())):
                continue
            seen: set[Fact] = set()
            bounds = sentences(text[index], [(a.start, a.end) for a in anchors])
            for place, (start, end) in enumerate(bounds):
                here = {q for q, own in spans.items() if any(start <= a < end for a, _ in own)}
                about = self._config.subjects == "page" or (index == lead and place == 0)
                for s in here | ({kilt.qid} if about else set()):
                    seen |= {(s, p, o) for p, o in facts.get(s, ()) if o in here}
            for fact in sorted(seen):
                subject, obj = (
                    [*spans.get(q, ()), *find_names(text[index], names[q])]
                    for q in (fact[0], fact[2])
                )
                yield fact, index, obj, subject

    def _keep(self, number, page: Page, extents, fact, paragraph, mentions, subject, qid) -> None:
        held = {
            span: ordinal
            for span in mentions
            for start, end, ordinal in extents.get(paragraph, ())
            if start <= span[0] < end
        }
        name = statement_id(fact)
        if not held:
            record = f"{name} in {page.page_id}:{paragraph}"
            self._work.refuse("sentences", number, record, "no mention inside a chunk")
            return
        kept, seed = merged(held), self._config.seed
        draw = seed_of("passage", seed, name, page.page_id, paragraph)
        choice = f"{int(qid not in (fact[0], fact[2]))}{draw:020d}"
        self._work.db.execute(
            "INSERT INTO grounded VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (s, p, o) DO UPDATE SET "
            "choice = excluded.choice, page = excluded.page, paragraph = excluded.paragraph, "
            "mentions = excluded.mentions, subject = excluded.subject, first = excluded.first "
            "WHERE excluded.choice < choice",
            (
                *fact, seed_of("statement", seed, name), choice, int(page.page_id), paragraph,
                json.dumps(kept), json.dumps(merged(subject)), int(0 in {held[m] for m in kept}),
            ),
        )  # fmt: skip


def read_sentences(
    work: Work, path: Path | str, config: SourceConfig, folder: Path, upstream: list[int]
) -> Progress:
    """Third pass: the table ``grounded``, and all chunks as shards in ``folder``.

    ``upstream`` are the lines that the first two passes read: when they have read more since,
    the pass begins anew.
    """
    if work.get("sentences:upstream") != upstream:
        work.forget("sentences", "grounded")
        work.put("sentences:upstream", upstream)
        for stale in sorted(folder.glob("*.parquet")):
            stale.unlink()
    settings = config.model_dump(mode="json", include={"seed", "subjects", "ignored", "chunks"})
    begun = work.get("pass:sentences") or {"line": 0}
    reader = Sentences(work, config, folder, begun["line"])
    return run_pass(work, "sentences", path, settings, reader, config.shard_lines)
