"""Both boundaries by hand, and what holds for every page (S3 App. B)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.corpus.chunking import ChunkConfig, chunk_page, chunk_pages
from workbench.corpus.records import Chunk, Extent, Page

PAGE = Page("p", "T", ("T", "a b c", " d  e ", "", "f g h i j k l", "m"))


def test_word_boundary_by_hand():
    chunks = chunk_page(PAGE, ChunkConfig(words=4))
    assert chunks == [
        Chunk("p#0", "p", "T", "a b c\nd", (Extent(1, 0, 5), Extent(2, 1, 2))),
        Chunk("p#1", "p", "T", "e\nf g h", (Extent(2, 4, 5), Extent(4, 0, 5))),
        Chunk("p#2", "p", "T", "i j k l", (Extent(4, 6, 13),)),
        Chunk("p#3", "p", "T", "m", (Extent(5, 0, 1),)),
    ]


def test_paragraph_boundary_by_hand():
    chunks = chunk_page(PAGE, ChunkConfig(words=4, boundary="paragraph"))
    assert [(c.chunk_id, c.text) for c in chunks] == [
        ("p#0", "a b c"),  # "d e" fits whole in a new chunk, so it is not cut
        ("p#1", "d  e\nf g"),  # seven words fit in no chunk of four: cut as in the paper
        ("p#2", "h i j k"),
        ("p#3", "l\nm"),
    ]


def test_a_paragraph_that_just_fits_stays_in_its_chunk():
    page = Page("p", "T", ("T", "a b", "c d", "e"))
    chunks = chunk_page(page, ChunkConfig(words=4, boundary="paragraph"))
    assert [c.text for c in chunks] == ["a b\nc d", "e"]


def test_a_page_without_words_has_no_chunks():
    for text in [("T",), ("T", "", "  ")]:
        assert chunk_page(Page("p", "T", text), ChunkConfig(words=4)) == []


def test_chunks_of_pages_follow_page_order_and_never_mix_pages():
    pages = [Page("b", "B", ("B", "x y z")), Page("a", "A", ("A", "u"))]
    chunks = chunk_pages(pages, ChunkConfig(words=2))
    assert [(c.chunk_id, c.title, c.text) for c in chunks] == [
        ("b#0", "B", "x y"),
        ("b#1", "B", "z"),
        ("a#0", "A", "u"),
    ]


@pytest.mark.parametrize(
    ("page_id", "paragraph", "offset", "inside"),
    [
        ("p", 1, 0, True),
        ("p", 1, 4, True),
        ("p", 2, 1, True),
        ("p", 2, 2, False),  # the end of an extent is outside
        ("p", 2, 0, False),  # white space before the first word
        ("p", 2, 4, False),  # in the next chunk
        ("p", 3, 0, False),
        ("q", 1, 0, False),
    ],
)
def test_a_place_is_in_the_chunk_that_holds_its_first_character(page_id, paragraph, offset, inside):
    assert chunk_page(PAGE, ChunkConfig(words=4))[0].contains(page_id, paragraph, offset) is inside


pages = st.lists(
    st.text(alphabet="ab: \t\u00a0\n", max_size=40), max_size=6
).map(lambda text: Page("p", "T", ("T", *text)))
configs = st.builds(
    ChunkConfig, words=st.integers(1, 9), boundary=st.sampled_from(["word", "paragraph"])
)


@given(pages, configs)
def test_chunks_hold_every_word_once_in_order(page, config):
    chunks = chunk_page(page, config)
    assert [c.chunk_id for c in chunks] == [f"p#{i}" for i in range(len(chunks))]
    for c in chunks:
        assert 1 <= len(c.text.split()) <= config.words
        assert c.text == "\n".join(page.text[e.paragraph][e.start : e.end] for e in c.extents)
    extents = [e for c in chunks for e in c.extents]
    for before, after in pairwise(extents):
        assert (before.paragraph, before.end) < (after.paragraph, after.start + 1)
    for index, paragraph in enumerate(page.text):
        own = [paragraph[e.start : e.end] for e in extents if e.paragraph == index]
        words = [w for piece in own for w in piece.split()]
        assert words == ([] if index == 0 else paragraph.split())
        assert all(piece == piece.strip() for piece in own)


@given(pages, st.integers(1, 9))
def test_all_chunks_but_a_pages_last_have_exactly_n_words(page, words):
    chunks = chunk_page(page, ChunkConfig(words=words))
    assert all(len(c.text.split()) == words for c in chunks[:-1])


@given(pages, st.integers(1, 9))
def test_paragraph_boundary_cuts_only_what_fits_no_chunk(page, words):
    chunks = chunk_page(page, ChunkConfig(words=words, boundary="paragraph"))
    pieces = [e.paragraph for c in chunks for e in c.extents]
    for index, paragraph in enumerate(page.text[1:], start=1):
        if 1 <= len(paragraph.split()) <= words:
            assert pieces.count(index) == 1
