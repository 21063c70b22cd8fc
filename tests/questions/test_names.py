"""Names of pages: which page a name stands for, and what its own text calls it."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.corpus.records import Page
from workbench.evaluation.answers import normalise_answer
from workbench.questions.names import PageNames, page_names

SHORT = "Country name - conventional short form"
LONG = "Country name - conventional long form"
ABBREVIATION = "Country name - abbreviation"


def page(code, title, *lines):
    return Page(code, title, (title, "Section::::Government.", *lines))


def names_of(*lines, title="Xanadu"):
    return page_names([page("xx", title, *lines)]).names_of["xx"]


class TestByHand:
    def test_the_title_comes_first(self):
        lines = f"{ABBREVIATION}: X", f"{LONG}: Realm of Xanadu", f"{SHORT}: Xan"
        assert names_of(*lines) == ("Xanadu", "X", "Realm of Xanadu", "Xan")

    def test_other_fields_give_no_names(self):
        assert names_of("Country name - local long form: Xan Du", "Capital: Dee") == ("Xanadu",)
        assert page_names([Page("xx", "Xanadu", (f"{SHORT}: Xan",))]).names_of["xx"] == ("Xanadu",)

    def test_two_names_in_one_field(self):
        assert names_of(f"{ABBREVIATION}: XU or XAN") == ("Xanadu", "XU", "XAN")
        assert names_of(f"{SHORT}: Oregon") == ("Xanadu", "Oregon")  # no "or" between words

    @pytest.mark.parametrize("nothing", ["none", "None", "NA", "na", "", "AS", "as", "CAR", "Car"])
    def test_what_is_no_name(self, nothing):
        made = page_names([page("xx", "Xanadu", f"{ABBREVIATION}: {nothing}")])
        assert made == PageNames({"xanadu": "xx"}, {"xx": ("Xanadu",)})
        assert made.page(nothing) is None

    def test_notes(self):
        assert names_of(f"{SHORT}: Xan; note - says the Khan") == ("Xanadu", "Xan")
        assert names_of(f"{SHORT}: Xan; Dome of Xan; River Alph") == ("Xanadu",)  # a list of parts

    def test_brackets_may_be_left_out(self):
        found = names_of(f"{SHORT}: Xan (Holy Dome)", title="Xanadu (Realm)")
        assert found == ("Xanadu (Realm)", "Xanadu", "Xan (Holy Dome)", "Xan")
        inner = names_of(f"{SHORT}: Cocos (Keeling) Islands")
        assert inner == ("Xanadu", "Cocos (Keeling) Islands", "Cocos Islands")

    def test_one_name_written_twice_is_one(self):
        assert names_of(f"{SHORT}: the XANADU", f"{LONG}: Xanadu.") == ("Xanadu",)

    def test_a_name_of_two_pages_belongs_to_the_first(self):
        first, second = page("aa", "Alphaland", f"{SHORT}: Alpha"), page("bb", "Alpha")
        made = page_names([first, second])
        assert made.page("Alpha") == "aa" and made.page("alphaland") == "aa"
        assert made.names_of == {"aa": ("Alphaland", "Alpha"), "bb": ("Alpha",)}  # the title stays
        made = page_names([second, first])
        assert made.page("Alpha") == "bb" and made.names_of["aa"] == ("Alphaland",)

    def test_unknown_names_have_no_page(self):
        made = page_names([page("xx", "The Xanadu!")])
        assert made.page("xanadu") == "xx" and made.page("Kubla") is made.page("") is None
        assert page_names([]) == PageNames() and PageNames().page("x") is None


class TestCorpus:
    @pytest.mark.parametrize(
        "page_id, known",
        [
            ("us", ("United States", "United States of America", "US", "USA")),
            ("uk", ("United Kingdom", "United Kingdom of Great Britain and Northern Ireland",
                    "UK")),
            ("vq", ("US Virgin Islands", "United States Virgin Islands", "Virgin Islands",
                    "USVI")),
            ("cf", ("Congo", "Republic of the Congo", "Congo (Brazzaville)")),
            ("ct", ("Central African Republic",)),  # CAR
            ("aq", ("American Samoa", "Territory of American Samoa")),  # AS
            ("zh", ("Atlantic Ocean",)),
        ],
    )  # fmt: skip
    def test_names_that_anyone_can_check(self, names, page_id, known):
        assert names.names_of[page_id] == known
        assert {names.page(name) for name in known} == {page_id}

    def test_what_reads_as_a_word_is_no_name(self, names):
        for word in ("car", "CAR", "as", "AS", "none", "NA", "or", ""):
            assert names.page(word) is None

    def test_every_page_has_its_title_and_no_name_has_two_pages(self, names, all_pages):
        assert {p.page_id: p.title for p in all_pages} == {
            page_id: own[0] for page_id, own in names.names_of.items()
        }
        said = Counter(normalise_answer(n) for own in names.names_of.values() for n in own)
        assert set(said.values()) == {1} and said.keys() == names.page_of.keys()
        for page_id, own in names.names_of.items():
            assert {names.page(name) for name in own} == {page_id}

    def test_names_are_written_in_the_text(self, names, all_pages):
        """Brackets aside, every name stands in the page, and none holds a separator."""
        for page in all_pages:
            text = "\n".join((page.title, *page.text))
            bare = re.sub(r" \([^)]*\)", "", text)
            for name in names.names_of[page.page_id]:
                assert name in text or name in bare
                assert ";" not in name and " or " not in name


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["A", "b", "the a", "C (d)", "none", "as"]),
            st.lists(st.sampled_from(["A", "B or c", "d", "C", "e; note - f", "NA"]), max_size=3),
        ),
        max_size=5,
    )
)
def test_names_and_pages_agree(told):
    """Whatever is written: a name leads to a page, and that page has it as a name."""
    pages = [
        page(f"p{place}", title, *(f"{SHORT}: {name}" for name in own))
        for place, (title, own) in enumerate(told)
    ]
    made = page_names(pages)
    assert list(made.names_of) == [p.page_id for p in pages]
    for key, page_id in made.page_of.items():
        assert key in {normalise_answer(n) for n in made.names_of[page_id]}
    for own_page in pages:
        own = made.names_of[own_page.page_id]
        assert own[0] == own_page.title and len({normalise_answer(n) for n in own}) == len(own)
        assert all(made.page(n) == own_page.page_id for n in own[1:])
