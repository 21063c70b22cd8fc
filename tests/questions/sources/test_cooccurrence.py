"""Which sentences say a fact, where its names stand, which passage is kept."""

import json

import pytest

from workbench.corpus.chunking import ChunkConfig
from workbench.corpus.store import load_corpus
from workbench.questions.sources.cooccurrence import entity_names, read_sentences
from workbench.questions.sources.passes import read_dump, read_pages
from workbench.questions.sources.settings import SourceConfig
from workbench.questions.sources.work import Work

ENTITIES = {1: "Ada Lorn", 2: "Bathmer", 3: "Cellona", 4: "Dan Lorn"}
FACTS = [(1, 19, 2), (2, 17, 3), (1, 26, 4), (4, 26, 1)]
DIRECT = "http://www.wikidata.org/prop/direct/P"


def _dump_lines(facts=FACTS):
    for qid, name in ENTITIES.items():
        yield f'<http://www.wikidata.org/entity/Q{qid}> <http://schema.org/name> "{name}"@en .'
        for s, p, o in facts:
            if s == qid:
                entity = "<http://www.wikidata.org/entity/Q{}>"
                yield f"{entity.format(s)} <{DIRECT}{p}> {entity.format(o)} ."


def _page(qid, *paragraphs, **more):
    """A page whose ``[links]`` lead to the entities of these names."""
    text, anchors = [ENTITIES[qid]], []
    for index, paragraph in enumerate(paragraphs, start=1):
        while "[" in paragraph:
            start, end = paragraph.index("["), paragraph.index("]") - 1
            paragraph = paragraph.replace("[", "", 1).replace("]", "", 1)
            shown = paragraph[start:end]
            target = next(q for q, n in ENTITIES.items() if n == shown.strip())
            anchors.append({
                "paragraph_id": index, "start": start, "end": end, "text": shown,
                "wikipedia_id": str(100 + target),
            })  # fmt: skip
        text.append(paragraph)
    info = {"wikidata_id": f"Q{qid}", "wikidata_label": ENTITIES[qid], **more}
    return json.dumps({
        "wikipedia_id": str(100 + qid), "wikipedia_title": ENTITIES[qid], "text": text,
        "anchors": anchors, "wikidata_info": info,
    })  # fmt: skip


BARE = [_page(q, "Nothing.") for q in ENTITIES]


def _grounded(tmp_path, write, pages, **settings):
    """(s, p, o) -> (page, paragraph, mentions, subject, first), and the refusals."""
    folder = tmp_path / f"w{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    others = [b for b in BARE if json.loads(b)["wikipedia_id"] not in
              {json.loads(p)["wikipedia_id"] for p in pages}]  # fmt: skip
    kilt = write(folder / "k.json", [*pages, *others])
    dump = write(folder / "t.nt", list(_dump_lines()))
    config = SourceConfig(**settings)
    with Work(folder / "w.sqlite") as work:
        read_pages(work, kilt, 100)
        read_dump(work, dump, "en", 100)
        read_sentences(work, kilt, config, folder / "chunks", [1, 1])
        rows = work.db.execute("SELECT * FROM grounded").fetchall()
        found = {r[:3]: (r[5], r[6], json.loads(r[7]), json.loads(r[8]), bool(r[9])) for r in rows}
        return found, list(work.refusals())


def test_a_pair_in_one_sentence_is_kept_with_all_mentions_of_the_paragraph(tmp_path, write):
    page = _page(1, "Intro.", "Ada Lorn was born in [Bathmer]. She left Bathmer early.")
    found, refused = _grounded(tmp_path, write, [page])
    assert found == {(1, 19, 2): (101, 2, [[21, 28], [39, 46]], [[0, 8]], True)}
    assert refused == []


def test_entities_of_two_sentences_do_not_co_occur(tmp_path, write):
    assert _grounded(tmp_path, write, [_page(1, "Intro.", "Ada Lorn. See [Bathmer] too.")])[0] == {}


def test_the_first_sentence_is_about_the_page_and_only_the_first(tmp_path, write):
    said = "She was born in [Bathmer]. She liked [Dan Lorn]."
    found, _ = _grounded(tmp_path, write, [_page(1, "Section::::Life.", said)])
    assert list(found) == [(1, 19, 2)] and found[1, 19, 2][3] == []
    assert _grounded(tmp_path, write, [_page(1, "Intro.", said)])[0] == {}
    found, _ = _grounded(tmp_path, write, [_page(1, "Intro.", said)], subjects="page")
    assert set(found) == {(1, 19, 2), (1, 26, 4)}


def test_an_answer_must_be_mentioned_also_in_the_first_sentence(tmp_path, write):
    """Dan's page does not name Dan beside Ada: (4, 26, 1) is said, (1, 26, 4) is not."""
    found, _ = _grounded(tmp_path, write, [_page(4, "He married [Ada Lorn].")])
    assert list(found) == [(4, 26, 1)]


def test_two_links_of_another_page_make_a_pair(tmp_path, write):
    page = _page(3, "Its town [Bathmer] is old.", "[Ada Lorn] and [Dan Lorn] met there.")
    found, _ = _grounded(tmp_path, write, [page])
    assert set(found) == {(1, 26, 4), (4, 26, 1)}
    assert found[1, 26, 4] == (103, 2, [[13, 21]], [[0, 8]], True)


def test_titles_sections_and_ignored_properties_say_nothing(tmp_path, write):
    page = _page(1, "Section::::[Bathmer] and Ada Lorn.", "Intro.")
    assert _grounded(tmp_path, write, [page])[0] == {}
    page = _page(1, "Ada Lorn was born in [Bathmer].")
    assert _grounded(tmp_path, write, [page], ignored=("P19",))[0] == {}


def test_evidence_in_a_later_chunk_is_told_from_the_first(tmp_path, write):
    words = "word " * 8
    page = _page(1, words + "end.", "Ada Lorn was born in [Bathmer].")
    chunks = ChunkConfig(words=10)
    assert not _grounded(tmp_path, write, [page], chunks=chunks)[0][1, 19, 2][4]
    chunks = ChunkConfig(words=20)
    assert _grounded(tmp_path, write, [page], chunks=chunks)[0][1, 19, 2][4]


def test_a_mention_that_starts_in_no_chunk_is_refused(tmp_path, write):
    """A link that begins with a blank, where one chunk ends: its start belongs to no chunk."""
    page = json.loads(_page(2, "A city indeed.", "Bathmer lies in[ Cellona]."))
    chunks = ChunkConfig(words=3)
    found, refused = _grounded(tmp_path, write, [json.dumps(page)], chunks=chunks)
    assert found[2, 17, 3][2] == [[16, 23]] and refused == []  # the name itself is in one
    page["text"][2] = "Bathmer lies in Kellona."
    page["anchors"][0]["text"] = " Kellona"
    found, refused = _grounded(tmp_path, write, [json.dumps(page)], chunks=chunks)
    assert found == {}
    assert [(r[0], r[2], r[3]) for r in refused] == [
        ("sentences", "Q2-P17-Q3 in 102:2", "no mention inside a chunk")
    ]


def test_the_own_pages_passage_is_preferred_whatever_the_order(tmp_path, write):
    other = _page(3, "Here [Ada Lorn] of [Bathmer] came.")
    own = _page(2, "In Bathmer they remember [Ada Lorn].")
    for pages in ([other, own], [own, other]):
        assert _grounded(tmp_path, write, pages)[0][1, 19, 2][0] == 102


def test_of_equal_passages_the_hash_decides_whatever_the_order(tmp_path, write):
    pages = [_page(q, "Here [Ada Lorn] of [Bathmer] came.") for q in (3, 4)]
    first, _ = _grounded(tmp_path, write, pages)
    second, _ = _grounded(tmp_path, write, pages[::-1])
    assert first == second
    chosen = {_grounded(tmp_path, write, pages, seed=seed)[0][1, 19, 2][0] for seed in range(6)}
    assert chosen == {103, 104}


def test_a_second_page_of_one_id_says_nothing_and_is_not_cut_into_chunks(tmp_path, write):
    again = _page(1, "Ada Lorn was born in [Bathmer].")
    found, refused = _grounded(tmp_path, write, [_page(1, "Intro."), again])
    assert found == {}
    assert [(r[0], r[1], r[2]) for r in refused] == [("pages", 2, "101")]
    texts = [c.text for p in tmp_path.glob("*/chunks/*") for c in load_corpus(p).chunks]
    assert texts == ["Intro.", *["Nothing."] * 3]


def test_misplaced_anchors_are_refused_once(tmp_path, write):
    record = json.loads(_page(1, "Ada Lorn was born in [Bathmer]."))
    record["anchors"].append({"paragraph_id": 9, "start": 0, "end": 1, "text": "x"})
    found, refused = _grounded(tmp_path, write, [json.dumps(record)])
    assert len(found) == 1
    assert [r[2:4] for r in refused] == [("101:9:0", "an anchor outside its paragraph")]


def test_names_are_label_then_kilt_then_aliases(tmp_path, write):
    kilt = write(tmp_path / "k.json", [_page(1, "x", aliases=["A. Lorn"])])
    lines = [*_dump_lines(), '<http://www.wikidata.org/entity/Q1> '
             '<http://www.w3.org/2004/02/skos/core#altLabel> "Countess"@en .']  # fmt: skip
    lines[0] = lines[0].replace("Ada Lorn", "Ada of Lorn")
    with Work(tmp_path / "w.sqlite") as work:
        read_pages(work, kilt, 100)
        read_dump(work, write(tmp_path / "t.nt", lines), "en", 100)
        names = entity_names(work, [1, 2])
    assert names == {1: ("Ada of Lorn", "Ada Lorn", "A. Lorn", "Countess"), 2: ()}


@pytest.mark.parametrize("shard", [1, 3])
def test_chunks_are_written_in_shards(tmp_path, write, shard):
    kilt = write(tmp_path / "k.json", BARE)
    with Work(tmp_path / "w.sqlite") as work:
        read_pages(work, kilt, 100)
        read_dump(work, write(tmp_path / "t.nt", list(_dump_lines())), "en", 100)
        config = SourceConfig(shard_lines=shard)
        read_sentences(work, kilt, config, tmp_path / "chunks", [1, 1])
    shards = [load_corpus(p).chunks for p in sorted((tmp_path / "chunks").iterdir())]
    assert [len(s) for s in shards] == [shard] * (4 // shard) + [4 % shard] * (4 % shard > 0)
    assert [c.page_id for s in shards for c in s] == ["101", "102", "103", "104"]
