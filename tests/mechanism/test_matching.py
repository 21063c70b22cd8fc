"""Which tokens are copies, by hand (S2 App. G)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.mechanism.matching import (
    NO_DOCUMENTS,
    NO_STREAM,
    NO_TOKENS,
    CopyConfig,
    kept_tokens,
    tokens_of,
)
from workbench.mechanism.surfaces import normal, spoken
from workbench.reports.record import Phase


def _all(tokens, *documents):
    return tokens_of(tokens, np.ones(len(tokens), dtype=bool), documents)


def _copies(tokens, *documents):
    kept = _all(tokens, *documents)
    return {n: bool(c) for n, c in zip(kept.normals, kept.copy, strict=True)}


def _wholes(tokens, *documents):
    kept = _all(tokens, *documents)
    return [bool(w) for w in kept.whole]


@pytest.mark.parametrize("prefix", ["Ġ", "▁", " ", "##"])
def test_the_subword_prefix_is_no_part_of_a_surface(prefix):
    assert [normal(t) for t in spoken([f"{prefix}Bamako", "1,960", "(", "s"])] == [
        "bamako", "1960", "", "s",
    ]  # fmt: skip


def test_line_breaks_and_letters_in_bytes_are_decoded():
    assert spoken(["ĠMÃ¤kinen", "ĊĊ", "Ã"])[:2] == [" Mäkinen", "\n\n"]
    kept = _all(["ĠMÃ¤kinen", ".ĊĊ", "Ã©"], "Juha Mäkinen")
    assert (kept.normals, kept.copy.tolist(), kept.short) == (["mäkinen"], [True], 2)


def test_letters_that_look_like_bytes_stay_in_other_vocabularies():
    assert spoken(["▁Ã©"]) == [" Ã©"]


@pytest.mark.parametrize("markup", ["<think>", "</search>", "<|im_end|>"])
def test_control_tokens_are_discarded_and_counted(markup):
    kept = _all(["Ġthe", markup], "think search im_end the")
    assert (kept.normals, kept.markup, kept.short) == (["the"], 1, 0)


def test_a_copy_is_a_substring_of_the_lowercased_collapsed_documents():
    found = _copies(
        ["ĠBama", "ko", "Ġ1960", "ĠOslo", "Ġmanage"], "The capital is  BAMAKO", "since 1960."
    )
    assert found == {"bama": True, "ko": True, "1960": True, "oslo": False, "manage": False}


def test_names_that_are_one_token_match_across_their_spaces_and_hyphens():
    found = _copies(
        ["Vatican City", "Guinea-Bissau", "Costa Rica"], "In vatican\n city; Guinea-Bissau"
    )
    assert found == {"vaticancity": True, "guineabissau": True, "costarica": False}


def test_a_name_never_reaches_from_one_document_into_the_next():
    assert _copies(["Vatican City"], "the Vatican", "City of") == {"vaticancity": False}


def test_whole_words_are_told_from_substrings():
    assert _copies(["Ġan"], "many") == {"an": True}
    assert _wholes(["Ġan"], "many") == [False]
    assert _wholes(["Ġan"], "an owl") == [True]


@pytest.mark.parametrize(
    "tokens", [["ĠBama", "ko"], ["▁Bama", "ko"], [" Bama", "ko"], ["Bama", "##ko"]]
)
def test_pieces_are_as_whole_as_their_word(tokens):
    assert _wholes(tokens, "Bamako.") == [True, True]
    assert _wholes(tokens, "Bamakos") == [False, False]


def test_a_token_of_two_words_needs_both():
    assert _wholes(["Costa Rica"], "Costa Rica") == [True]
    assert _wholes(["Costa Rica"], "Costa Brava") == [False]


def test_markup_ends_a_word():
    assert _wholes(["Ġto", "<x>", "gether"], "to gether") == [True, True]


def test_only_tokens_of_the_reasoning_count_unless_all_are_asked_for(make_rollout):
    rollout = make_rollout(
        ["Ġone", "Ġtwo", "Ġsix"], ["one two"], phases=[Phase.REASONING, Phase.CALL, Phase.ANSWER]
    )
    assert kept_tokens(rollout).normals == ["one"]
    kept = kept_tokens(rollout, CopyConfig(phases="generated"))
    assert (kept.positions.tolist(), kept.copy.tolist()) == ([0, 1, 2], [True, True, False])


def test_rollouts_without_something_to_copy_say_why(make_rollout):
    assert kept_tokens(make_rollout(None, ["text"])).reason == NO_STREAM
    assert kept_tokens(make_rollout(["Ġword"], [])).reason == NO_DOCUMENTS
    assert kept_tokens(make_rollout(["Ġword"], ["  ", ""])).reason == NO_DOCUMENTS
    assert kept_tokens(make_rollout([], ["text"])).reason == NO_TOKENS
    assert kept_tokens(make_rollout(["Ġ.", "Ġa"], ["text"])).reason == NO_TOKENS


words = st.lists(st.text("abcdé1", min_size=2, max_size=5), min_size=1, max_size=8)


@given(words, words)
def test_whole_copies_are_copies_and_every_kept_token_is_decided(said, read):
    kept = _all([f" {w}" for w in said], " ".join(read))
    assert kept.normals == said
    assert (kept.copy | ~kept.whole).all()
    assert kept.whole.tolist() == [w in read for w in said]
    assert kept.copy.tolist() == [w in " ".join(read) for w in said]
