"""Token classes and null controls of RGV (S2 §6.1, Fig. 2)."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.mechanism.grounding import capitalised_tokens, class_scores, token_classes
from workbench.mechanism.nulls import (
    across_partners,
    null_gaps,
    null_scores,
    random_tokens,
    within_partners,
)
from workbench.mechanism.verdicts import verdict_gaps
from workbench.voting.tokens import token_set


def test_classes_by_hand():
    text = "**Bamako** was founded in 1650, says [The Report](http://x.y/Zed); see (Mali) iso3166."
    assert token_classes(text) == {
        "digit": {"1650", "iso3166"},
        "capitalised": {"bamako", "report", "mali"},
        "content": {"founded", "says", "see"},
    }


def test_a_token_counts_as_capitalised_if_it_stands_so_anywhere():
    assert capitalised_tokens("mali is Mali, oslo") == {"mali"}


@given(st.text('aBC1 *[]().|\n"éÉſ~`_-', max_size=40))
def test_the_classes_part_the_token_set(text):
    classes = token_classes(text)
    assert frozenset().union(*classes.values()) == token_set(text)
    assert sum(map(len, classes.values())) == len(token_set(text))


def test_scores_of_a_class_take_the_best_document_of_that_class(make_rollout):
    rollout = make_rollout(
        None, ["bamako oslo", "1960 river"], prose="Bamako Oslo Lima since 1960 near river water"
    )
    row = class_scores([rollout]).iloc[0]
    assert row["w_capitalised"] == pytest.approx(2 / 3)
    assert row["w_digit"] == 1
    assert row["w_content"] == pytest.approx(1 / 3)  # near, river, water
    assert row["w_rgv"] == pytest.approx(2 / 7)
    assert row[["n_digit", "n_capitalised", "n_content", "tokens"]].tolist() == [1, 3, 3, 7]


def test_no_tokens_of_a_class_are_no_score_and_no_documents_a_score_of_0(make_rollout, few):
    frame = class_scores(
        [
            make_rollout(None, ["river"], prose="river", correct=True),
            make_rollout(None, [], prose="1960", correct=False),
            make_rollout(None, ["river"], prose="", correct=False),
        ]
    )
    assert np.isnan(frame["w_digit"][0]) and frame["w_digit"][1] == 0
    assert frame["w_rgv"].tolist() == [1, 0, 0]
    row = verdict_gaps(frame, ["w_digit", "w_rgv"], config=few)
    assert row["unscored"].tolist() == [2, 0] and row["value"][1] == 1


QUESTIONS = st.lists(st.sampled_from("abcd"), min_size=2, max_size=14)


@given(QUESTIONS, st.integers(0, 99))
def test_within_partners_are_other_rollouts_of_the_question(questions, seed):
    partners = within_partners(questions, np.random.default_rng(seed))
    sizes = Counter(questions)
    paired = [i for i, q in enumerate(questions) if sizes[q] > 1]
    assert sorted(partners[paired]) == paired  # every log is used once
    for i, j in enumerate(partners):
        assert (j == -1) if sizes[questions[i]] == 1 else (questions[i] == questions[j] and i != j)


@given(QUESTIONS, st.integers(0, 99))
def test_across_partners_are_of_other_questions(questions, seed):
    rng = np.random.default_rng(seed)
    if 2 * max(Counter(questions).values()) > len(questions):
        with pytest.raises(WorkbenchError, match="one question has"):
            across_partners(questions, rng)
        return
    partners = across_partners(questions, rng)
    assert sorted(partners) == list(range(len(questions)))
    assert all(questions[i] != questions[j] for i, j in enumerate(partners))


def test_partners_follow_the_seed():
    questions = ["a"] * 4 + ["b"] * 4
    draws = [within_partners(questions, np.random.default_rng(s)).tolist() for s in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


@settings(max_examples=40)
@given(st.lists(st.sampled_from("pqrstuv"), min_size=1, max_size=30), st.data())
def test_random_tokens_are_distinct_and_as_many_as_asked(pool, data):
    count = data.draw(st.integers(0, len(set(pool))))
    drawn = random_tokens(np.array(pool, dtype=object), count, np.random.default_rng(0))
    assert len(drawn) == count and drawn <= set(pool)


def test_common_tokens_are_drawn_more_often():
    pool, rng = np.array(["pp"] * 9 + ["qq"], dtype=object), np.random.default_rng(0)
    drawn = [next(iter(random_tokens(pool, 1, rng))) for _ in range(400)]
    assert 0.84 < drawn.count("pp") / 400 < 0.96


@pytest.fixture
def rollouts(make_rollout):
    """Right rollouts say what their question's documents hold, wrong ones something else."""
    made = []
    for q in range(6):
        for number in range(4):
            right = number < 2
            said = f"topic{q} name{q}" if right else f"miss{q}a{number} miss{q}b{number}"
            made.append(
                make_rollout(
                    None, [f"topic{q} name{q} shared"], question=f"q{q}", number=number,
                    prose=said, correct=right,
                )
            )  # fmt: skip
    return made


def test_nulls_keep_within_and_lose_across(rollouts, few):
    scores = null_scores(rollouts, repeats=3)
    table = null_gaps(scores, few).set_index("score")
    assert table["value"][:3].tolist() == [1, 1, 0]
    assert table["value"]["w_random"] < 0.3
    assert table["drop"]["w_within"] == 1 and table["drop"]["w_across"] == np.inf
    assert null_scores(rollouts, repeats=3).equals(scores)
    assert not null_scores(rollouts, seed=1, repeats=3)["w_random"].equals(scores["w_random"])


def test_a_question_s_only_rollout_has_no_null_within(rollouts, few):
    scores = null_scores(rollouts[:9], repeats=2)
    assert scores["w_within"].isna().tolist() == [False] * 8 + [True]
    assert null_gaps(scores, few).set_index("score")["unscored"]["w_within"] == 1
