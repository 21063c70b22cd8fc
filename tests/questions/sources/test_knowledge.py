"""From the work file to statements: the filters of S3 App. B and the bounds of the sample."""

import pytest

from workbench.questions.compose import fill, start
from workbench.questions.enumerate import shared_pairs
from workbench.questions.sources.knowledge import draw_part, stand_in, starts, wordings
from workbench.questions.sources.settings import SampleConfig, SourceConfig
from workbench.questions.sources.wording import WORDED, to_property, wording_of
from workbench.questions.sources.work import Work


@pytest.fixture
def work(tmp_path):
    with Work(tmp_path / "work.sqlite") as opened:
        yield opened


def _fill(work, facts, ungrounded=(), means=None, first=()):
    """Facts that are grounded on page ``s``, and some that only the knowledge base has."""
    for place, (s, p, o) in enumerate(facts):
        row = (s, p, o, place, "0", s, 1, "[[0, 3]]", "[]", int((s, p, o) in first))
        work.db.execute("INSERT INTO grounded VALUES (?,?,?,?,?,?,?,?,?,?)", row)
    work.db.executemany("INSERT INTO facts VALUES (?,?,?)", [*facts, *ungrounded])
    for p, (subjects, objects) in (means or {}).items():
        work.db.execute(
            "INSERT INTO properties VALUES (?, ?, ?, ?)", (p, f"p{p}", subjects, objects)
        )
    for q in {q for s, _, o in facts for q in (s, o)}:
        work.db.execute("INSERT INTO terms VALUES (?, ?, '[]', '')", (q, f"Name{q}"))


BIRTH, STUDY, COUNTRY = 19, 69, 17
MEANS = {BIRTH: (100, 101), STUDY: (100, 190), COUNTRY: (100, 150), 31: (9, 9)}


def test_the_mean_over_the_dump_decides_which_properties_make_chains(work):
    facts = [(1, BIRTH, 2), (1, COUNTRY, 3), (1, STUDY, 4)]
    _fill(work, facts, means={**MEANS, COUNTRY: (100, 151)})
    knowledge = draw_part(work, SourceConfig()).knowledge
    assert list(knowledge.statements) == [
        "Q1-P19-Q2"
    ]  # 1.51 and 1.9 objects on average are too many
    assert list(draw_part(work, SourceConfig(max_objects=1.51)).knowledge.statements) == [
        "Q1-P17-Q3", "Q1-P19-Q2",
    ]  # fmt: skip


@pytest.mark.parametrize("second", [(1, BIRTH, 9), (1, BIRTH, -5)])
def test_a_second_object_that_no_sentence_says_also_counts(work, second):
    """It is another entity, or unknown (negative): either way the pair has two objects."""
    _fill(work, [(1, BIRTH, 2), (7, BIRTH, 2)], [second], MEANS)
    part = draw_part(work, SourceConfig())
    assert [p.graph_id for p in starts(part.knowledge, 6).singles] == ["Q7-P19-Q2"]


def test_the_sample_does_not_decide_what_is_functional(work):
    """Of citizenships mostly those of conjunctions are drawn here, with two objects each."""
    facts = [(1, 27, 10), (1, 27, 11), (2, 27, 10), (2, 27, 12), (3, 27, 13)]
    _fill(work, facts, means={27: (100, 105)})
    part = draw_part(work, SourceConfig())
    assert len(part.knowledge.statements) == 3 and len(list(shared_pairs(part.knowledge))) == 1
    assert [p.graph_id for p in starts(part.knowledge, 6).singles] == ["Q3-P27-Q13"]


def test_a_conjunction_needs_one_common_object_among_all_that_are_known(work):
    facts = [
        (s, STUDY, o) for s, own in {1: (10, 11), 2: (10, 12), 3: (10, 13)}.items() for o in own
    ]
    _fill(work, facts, [(3, STUDY, 14), (2, STUDY, 14)], MEANS)
    knowledge = draw_part(work, SourceConfig()).knowledge
    pairs = {(a, b, first.object) for first, _, a, b in shared_pairs(knowledge)}
    assert pairs == {("Q1", "Q2", "Q10"), ("Q1", "Q3", "Q10")}  # 2 and 3 also share 14


def test_a_branch_with_one_object_makes_no_conjunction(work):
    _fill(work, [(1, STUDY, 10), (2, STUDY, 10), (2, STUDY, 11)], means=MEANS)
    knowledge = draw_part(work, SourceConfig()).knowledge
    assert list(shared_pairs(knowledge)) == []


def test_holders_bound_the_pairs_of_a_popular_object(work):
    facts = [(s, STUDY, o) for s in range(1, 31) for o in (100, 100 + s)]
    _fill(work, facts, means=MEANS)
    config = SourceConfig(sample=SampleConfig(holders=4))
    knowledge = draw_part(work, config).knowledge
    assert len(knowledge.holders("P69", "Q100")) == 4
    whole = draw_part(work, SourceConfig(sample=SampleConfig(holders=30))).knowledge
    assert len(list(shared_pairs(whole))) == 30 * 29 // 2
    assert len(list(shared_pairs(whole, 4))) == 4 * 3 // 2


def test_the_sample_is_bounded_and_holds_what_chains_go_on_with(work):
    chain = [(n, BIRTH, n + 1) for n in range(1, 9)]
    _fill(work, chain, means=MEANS)
    ids = [f"Q{n}-P19-Q{n + 1}" for n in range(1, 5)]
    one = SourceConfig(sample=SampleConfig(starts=1, shared=0))
    assert sorted(draw_part(work, one).knowledge.statements) == ids  # four hops from the first
    few = SourceConfig(sample=SampleConfig(starts=1, shared=0, statements=2))
    assert len(draw_part(work, few).knowledge.statements) == 2


def test_what_leads_into_the_subjects_of_a_conjunction_is_drawn(work):
    facts = [(s, STUDY, o) for s in (1, 2) for o in (10, 10 + s)]
    lead = [(50, BIRTH, 40), (40, BIRTH, 1), (41, BIRTH, 2)]
    _fill(work, [(90, BIRTH, 91), *facts, *lead], means=MEANS)
    config = SourceConfig(sample=SampleConfig(starts=1))
    found = set(draw_part(work, config).knowledge.statements)
    assert {f"Q{s}-P19-Q{o}" for s, _, o in lead} < found


def test_a_fact_that_is_not_grounded_is_a_shortcut(work):
    _fill(work, [(1, BIRTH, 2), (2, COUNTRY, 3)], [(1, 361, 3)], MEANS)
    knowledge = draw_part(work, SourceConfig()).knowledge
    assert knowledge.linked("Q1", "Q3") and not knowledge.linked("Q2", "Q1")


def test_first_chunks_are_remembered(work):
    _fill(work, [(1, BIRTH, 2), (5, BIRTH, 6)], means=MEANS, first=[(5, BIRTH, 6)])
    assert draw_part(work, SourceConfig()).first == {"Q5-P19-Q6"}


def test_properties_in_use(work):
    _fill(work, [], means={BIRTH: (1, 1), 31: (1, 1), 4321: (2, 3)})
    assert set(wordings(work, SourceConfig())) == {BIRTH}
    every = wordings(work, SourceConfig(properties="all"))
    assert set(every) == {BIRTH, 4321} and every[4321][2] == 1.5
    assert every[4321][0].phrase == "the p4321 of {s}"


def test_every_question_asks_for_a_name():
    """S3 App. B: all questions begin with the same words."""
    for pid, wording in WORDED.items():
        prop = to_property(pid, wording, None)
        assert prop.asks == (f"What is the name of {wording.phrase}?",)
        assert wording.phrase.count("{s}") == 1 and wording.clause.count("{o}") == 1
        assert not wording.shared or (wording.shared.count("{a}"), wording.shared.count("{b}")) == (
            1,
            1,
        )
        assert wording.phrase.startswith("the ")
    assert wording_of(99_999, None) is None
    odd = wording_of(99_999, "a {b}")
    assert odd.phrase.format(s="x") == "the a b of x"


def test_stand_ins_are_filled_everywhere(work):
    _fill(work, [(1, BIRTH, 2)], means=MEANS)
    knowledge = draw_part(work, SourceConfig()).knowledge
    statement = knowledge.statements["Q1-P19-Q2"]
    partial = start(statement, knowledge.properties["P19"], stand_in("Q1"))
    filled = fill(partial, {stand_in("Q1"): "the tall one"})
    assert filled.question == "What is the name of the place of birth of the tall one?"
    assert filled.nodes[0].question == filled.question
    assert filled.phrase == "the place of birth of the tall one"
