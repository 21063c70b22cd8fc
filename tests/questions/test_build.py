"""Questions of the embedded corpus: splits, chains, exclusions; and a small corpus by hand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from workbench.corpus.records import Page
from workbench.evaluation.answers import inclusion, normalise_answer
from workbench.questions.build import (
    CHAIN,
    SINGLE,
    QuestionConfig,
    build_items,
    exposures_of,
    page_names,
    split_of,
)
from workbench.questions.relations import BY_NAME
from workbench.questions.store import check_item

HELD_OUT = ("test", "validation", "calibration")


def test_every_item_holds_together(built):
    for item in built.items:
        check_item(item, "here")
        assert item.category == (SINGLE if item.hops == 1 else CHAIN)
    ids = [i.item_id for i in built.items]
    assert ids == sorted(set(ids))
    assert len({i.question for i in built.items}) == len(built.items)


def test_no_answer_stands_in_its_question(built):
    for item in built.items:
        assert not any(inclusion(item.question, [a]) for a in item.answers), item.question
    assert built.excluded["answer in the question"] == 41


def test_no_fact_is_asked_in_two_splits(built):
    splits: dict[str, set[str]] = {}
    for item in built.items:
        for node in item.nodes:
            splits.setdefault(node.fact_id, set()).add(item.split)
    assert all(len(s) == 1 for s in splits.values())
    assert {s for own in splits.values() for s in own} == {"train", *HELD_OUT}


def test_the_split_of_an_item_is_that_of_its_pages(built):
    config = QuestionConfig()
    for item in built.items:
        pages = {e.page_id for n in item.nodes for e in n.evidence}
        assert {split_of(p, config) for p in pages} == {item.split}


def test_split_shares_hold_over_many_pages():
    config = QuestionConfig()
    counts = Counter(split_of(f"page {i}", config) for i in range(20_000))
    wanted = {**config.split_shares, "train": 0.46}
    for name, share in wanted.items():  # five standard errors
        assert counts[name] / 20_000 == pytest.approx(share, abs=5 * (share / 20_000) ** 0.5)


def test_another_seed_draws_other_splits_and_exposures(built):
    a, b = QuestionConfig(), QuestionConfig(seed=1)
    pages = [f"p{i}" for i in range(300)]
    assert [split_of(p, a) for p in pages] != [split_of(p, b) for p in pages]
    assert [exposures_of(p, a) for p in pages] != [exposures_of(p, b) for p in pages]


def test_exposures_are_graded():
    config = QuestionConfig()
    counts = Counter(exposures_of(f"fact {i}", config) for i in range(20_000))
    assert set(counts) == {0, 1, 2, 4, 8, 16, 32, 64}
    assert counts.pop(0) / 20_000 == pytest.approx(0.55, abs=0.018)
    for count in counts.values():
        assert count / 20_000 == pytest.approx(0.45 / 7, abs=0.009)


def test_exposures_need_levels_and_are_zero_when_all_is_unexposed():
    for config in (QuestionConfig(exposure_levels=()), QuestionConfig(unexposed=1.0)):
        assert {exposures_of(f"fact {i}", config) for i in range(50)} == {0}
    all_shown = QuestionConfig(unexposed=0.0, exposure_levels=(3,))
    assert {exposures_of(f"fact {i}", all_shown) for i in range(50)} == {3}


def test_exposures_of_items(built):
    config = QuestionConfig()
    for item in built.items:
        assert item.exposures == min(exposures_of(n.fact_id, config) for n in item.nodes)


@pytest.mark.parametrize(
    "settings",
    [
        {"split_shares": {"test": 0.5, "validation": 0.2, "calibration": 0.3}},
        {"split_shares": {"test": 0.5, "validation": 0.2}},
        {"split_shares": {"test": -0.1, "validation": 0.2, "calibration": 0.3}},
        {"exposure_levels": (0, 2)},
        {"chains_per_page": -1},
        {"unexposed": 1.5},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValidationError):
        QuestionConfig(**settings)


def test_chains_describe_their_root(built, facts):
    for item in built.items:
        if item.hops == 1:
            continue
        first, last = (facts[n.fact_id] for n in item.nodes)
        relation = BY_NAME[first.relation]
        root, asked = item.nodes
        if relation.described:
            description = relation.described.format(o=first.answer)
            assert first.page_id == last.page_id and first.paragraph != last.paragraph
            assert root.answers == (first.title,)
        else:
            description = relation.refers.format(s=first.title)
            assert root.answers[0] == first.answer and first.page_id != last.page_id
            assert last.title in root.answers
        assert description in item.question
        assert root.question == f"What is the name of {description}?"
        assert asked.prerequisites == ("v1",) and root.prerequisites == ()
        assert asked.question in {q.format(s="#1") for q in BY_NAME[last.relation].questions}
        assert item.question == asked.question.replace("#1", description) or (
            item.question in {q.format(s=description) for q in BY_NAME[last.relation].questions}
        )


def test_a_description_fits_one_page(built, facts):
    owners: dict[tuple[str, str], set[str]] = {}
    for fact in facts.values():
        key = fact.relation, normalise_answer(fact.answer)
        owners.setdefault(key, set()).add(fact.page_id)
    for item in built.items:
        first = facts[item.nodes[0].fact_id]
        if item.hops == 2 and BY_NAME[first.relation].described:
            assert owners[first.relation, normalise_answer(first.answer)] == {first.page_id}


def test_evidence_is_where_the_answer_stands(built, pages):
    text = {p.page_id: p.text for p in pages}
    for item in built.items:
        for node in item.nodes:
            (evidence,) = node.evidence
            ((start, end),) = evidence.mentions
            mention = text[evidence.page_id][evidence.paragraph][start:end]
            assert mention in node.answers or item.hops == 2 and node.node_id == "v1"
        assert item.answers == item.nodes[-1].answers


def test_chains_per_page_are_bounded(built, facts):
    roots = Counter(facts[i.nodes[0].fact_id].page_id for i in built.items if i.hops == 2)
    assert max(roots.values()) <= QuestionConfig().chains_per_page


def test_the_same_settings_give_the_same_questions(pages, names, built):
    assert build_items(pages, QuestionConfig(), names).items == built.items
    fewer = build_items(pages, QuestionConfig(chains_per_page=1), names).items
    kept = {i.item_id: i for i in built.items}
    assert all(kept[i.item_id] == i for i in fewer)  # ids and texts do not depend on the rest
    assert len(fewer) < len(built.items)


def _page(code, title, *lines):
    return Page(code, title, (title, "Section::::Government.", *lines))


SMALL = [
    _page("aa", "Alphaland", "Country name - conventional short form: Alpha",
          "Capital: Axe", "Exports - partners: Beta 20%", "Internet country code: .aa"),
    _page("bb", "Betaland", "Country name - conventional short form: Beta",
          "Capital: Bow", "Exports - partners: Alpha 20%", "National symbol(s): lion"),
    _page("cc", "Gammaland", "Country name - abbreviation: none",
          "Capital: Axe", "Exports - partners: Nowhere 9%", "National symbol(s): gammaland"),
]  # fmt: skip


def test_names_of_pages():
    assert page_names(SMALL) == {
        "alphaland": "aa", "alpha": "aa", "betaland": "bb", "beta": "bb", "gammaland": "cc",
    }  # fmt: skip


def _one_split(pages, **settings):
    config = QuestionConfig(
        split_shares={"test": 0.0, "validation": 0.0, "calibration": 0.0}, **settings
    )
    return build_items(pages, config)


def test_a_small_corpus_by_hand():
    made = _one_split(SMALL, chains_per_page=99)
    assert {i.item_id for i in made.items} == {
        "1:aa.capital", "1:aa.export_partner", "1:aa.internet_code",
        "1:bb.capital", "1:bb.export_partner", "1:bb.symbol",
        "1:cc.capital", "1:cc.export_partner",
        # "the country whose capital is Bow"; Axe fits two pages
        "2:bb.capital>bb.export_partner", "2:bb.capital>bb.symbol",
        # "the country with the internet code .aa"
        "2:aa.internet_code>aa.capital", "2:aa.internet_code>aa.export_partner",
        # "the main export partner of Alphaland" is Beta
        "2:aa.export_partner>bb.capital", "2:aa.export_partner>bb.symbol",
        "2:bb.export_partner>aa.capital", "2:bb.export_partner>aa.internet_code",
    }  # fmt: skip
    assert made.excluded == {
        "description fits several pages": 2,  # Axe, twice
        "object is not a page": 1,  # Nowhere
        "over the limit per page": 0,
        # the symbol of Gammaland is gammaland; and two chains lead back to where they began
        "answer in the question": 3,
    }
    items = {i.item_id: i for i in made.items}
    assert items["1:aa.export_partner"].answers == ("Beta", "Betaland")
    assert items["2:aa.export_partner>bb.symbol"].nodes[0].answers == ("Beta", "Betaland")
    assert items["2:aa.export_partner>bb.symbol"].question in {
        "What is the national symbol of the main export partner of Alphaland?",
        "Which symbol stands for the main export partner of Alphaland?",
    }


def test_the_limit_per_page_is_counted():
    # aa: internet code -> 2 ends, export partner bb -> 3; bb: capital -> 2, export partner -> 3
    for limit, left in ((99, 0), (5, 0), (3, 4), (1, 8), (0, 10)):
        made = _one_split(SMALL, chains_per_page=limit)
        assert made.excluded["over the limit per page"] == left
    assert all(i.hops == 1 for i in made.items)


def test_chains_across_splits_are_left_out():
    seed = next(
        s for s in range(99)
        if len({split_of(p, QuestionConfig(seed=s)) for p in ("aa", "bb")}) == 2
    )  # fmt: skip
    made = build_items(SMALL, QuestionConfig(seed=seed))
    assert made.excluded["pages in different splits"] == 2
    assert not any("export_partner>" in i.item_id for i in made.items)


@given(st.text(max_size=20), st.integers(0, 2**40))
def test_any_page_has_a_split_and_any_fact_an_exposure(name, seed):
    config = QuestionConfig(seed=seed)
    assert split_of(name, config) in ("train", *HELD_OUT)
    assert exposures_of(name, config) in (0, *config.exposure_levels)
