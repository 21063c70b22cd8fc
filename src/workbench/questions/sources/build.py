"""KILT and a Wikidata dump -> items, chunks and a report (S3 section 2.1 and App. B).

    build(kilt, dump, out, config)

writes ``items.jsonl`` (as `questions.store`), ``chunks.parquet`` (as `corpus.store`),
``report.json`` (what was read, kept, left out and why) and ``refused.jsonl`` (every record
that was left out, by id).  A killed run is continued by calling it again.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import warnings
from collections import Counter
from dataclasses import asdict
from math import ceil
from pathlib import Path

from ...corpus.store import ChunkWriter, read_batches
from ...errors import WorkbenchError
from ...seeding import seed_of
from ..enumerate import draw_graphs
from ..graph import Item
from ..store import save_items
from .cooccurrence import read_sentences
from .knowledge import Part, draw_part, starts
from .mixture import draw_mixture
from .passes import read_dump, read_pages
from .pool import Describer, LeaveOut, eligible, met_twice
from .settings import SourceConfig
from .work import Progress, Work


def build(kilt: Path | str, dump: Path | str, out: Path | str, config: SourceConfig) -> dict:
    """Build or go on building in the folder ``out``; returns the report.

    Raises
    ------
    WorkbenchError
        a source is missing, ``out`` was begun with other settings, nothing could be grounded.
    """
    out = Path(out)
    with Work(out / "work.sqlite") as work:
        passes = {"pages": read_pages(work, kilt, config.shard_lines)}
        passes["dump"] = read_dump(work, dump, config.language, config.dump_shard_lines)
        upstream = [passes[name].line for name in ("pages", "dump")]
        shards = out / "chunks"
        passes["sentences"] = read_sentences(work, kilt, config, shards, upstream)
        for name, path in (("pages", kilt), ("dump", dump)):
            if passes[name].broken:
                warnings.warn(f"{path}: {passes[name].broken}; what was read is kept", stacklevel=2)
        part = draw_part(work, config)
        if not part.knowledge.statements:
            raise WorkbenchError(
                "no sentence says a fact of the dump",
                where=out,
                fix="check that both sources are of the same language; see refused.jsonl",
            )
        with _Refusals(out / "refused.jsonl", work) as refused:
            items, report = _compose(work, part, config, out, refused.tell)
        save_items(out / "items.jsonl", items)
        written = _write_chunks(work, shards, out / "chunks.parquet", items, config)
        report = {**_read(work, passes, part), **report, **written}
    _write_json(out / "report.json", report)
    return report


class _Refusals:
    """``refused.jsonl``: records of the passes, then graphs, each with id and reason."""

    def __init__(self, path: Path, work: Work):
        self._path, self._work = path, work
        self._part = path.with_name(path.name + ".part")

    def __enter__(self) -> _Refusals:
        self._file = self._part.open("w", encoding="utf-8")
        names = ("stage", "line", "record", "reason", "detail")
        for refusal in self._work.refusals():
            self._write(dict(zip(names, refusal)))
        return self

    def tell(self, reason: str, graph_id: str) -> None:
        self._write({"stage": "graphs", "record": graph_id, "reason": reason})

    def _write(self, record: dict) -> None:
        self._file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        if kind is None:
            os.replace(self._part, self._path)


def _compose(
    work: Work, part: Part, config: SourceConfig, out: Path, tell: LeaveOut
) -> tuple[list[Item], dict]:
    excluded: Counter[str] = Counter()

    def leave_out(reason: str, graph_id: str) -> None:
        excluded[reason] += 1
        tell(reason, graph_id)

    drawn = draw_graphs(
        part.knowledge,
        starts(part.knowledge, config.sample.holders),
        lambda statement: "pool",
        lambda category, split: ceil(config.sample.pool * config.wanted(category)),
        met_twice,
        config.sample.fan,
        spare=2,
        holders=config.sample.holders,
        tell=leave_out,
    )
    pool = [p for _, partials in sorted(drawn.graphs.items()) for p in partials]
    categories = {p.graph_id: c for (c, _), partials in drawn.graphs.items() for p in partials}
    describer = Describer(work, config, out)
    candidates = eligible(describer.all(pool), categories, part.first, leave_out)
    items, short = draw_mixture(candidates, config.counts, config.seed)
    return items, {
        "pool": dict(Counter(categories.values())),
        "eligible": dict(Counter(item.category for item, _ in candidates)),
        "excluded": dict(sorted(excluded.items())),
        "descriptions": describer.report(),
        "short": [asdict(s) for s in short],
        "questions": {
            split: dict(sorted(Counter(i.category for i in items if i.split == split).items()))
            for split in config.counts
        },
    }


def _write_chunks(
    work: Work, shards: Path, path: Path, items: list[Item], config: SourceConfig
) -> dict:
    """The shards as one corpus: all pages, or those with evidence and some drawn by hash."""
    keep: set[str] | None = None
    if config.corpus_pages is not None:
        keep = {e.page_id for item in items for node in item.nodes for e in node.evidence}
        pages = (row[0] for row in work.db.execute("SELECT page FROM pages"))
        drawn = heapq.nsmallest(
            config.corpus_pages, pages, key=lambda page: seed_of("corpus", config.seed, page)
        )
        keep |= set(map(str, drawn))
    named = hashlib.sha256("\n".join(sorted(keep or ())).encode()).hexdigest()
    key = [work.get("pass:sentences"), keep is None, named]
    before = work.get("chunks")
    if path.is_file() and before and before["key"] == key:
        return {"chunks": before["rows"], "chunks_sha256": before["sha256"]}
    with ChunkWriter(path) as writer:
        for shard in sorted(shards.glob("*.parquet")):
            for batch in read_batches(shard):
                chosen = batch if keep is None else [c for c in batch if c.page_id in keep]
                if chosen:
                    writer.write(chosen)
    work.put("chunks", {"key": key, "rows": writer.rows, "sha256": writer.sha256})
    work.db.commit()
    return {"chunks": writer.rows, "chunks_sha256": writer.sha256}


def _read(work: Work, passes: dict[str, Progress], part: Part) -> dict:
    def count(query: str) -> int:
        return work.db.execute(f"SELECT count(*) FROM {query}").fetchone()[0]

    refused = work.db.execute(
        "SELECT source, reason, count(*) FROM refused GROUP BY source, reason ORDER BY 1, 2"
    )
    return {
        "read": {
            name: {"lines": progress.line, "broken": progress.broken}
            for name, progress in passes.items()
        },
        "refused": [{"stage": s, "reason": r, "records": n} for s, r, n in refused],
        "pages": count("pages"),
        "pages_with_entity": count("pages WHERE qid NOT NULL"),
        "entities_missing_in_dump": count(
            "pages WHERE qid NOT NULL AND qid NOT IN (SELECT qid FROM terms)"
        ),
        "facts": count("facts"),
        "grounded": count("grounded"),
        "statements_composed": len(part.knowledge.statements),
    }


def _write_json(path: Path, value: dict) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(part, path)
