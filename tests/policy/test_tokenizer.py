"""Names are one token, other words are spelled, tags are the environment's own."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.agent.text import Codec
from workbench.policy.store import load_tokenizer
from workbench.policy.tokenizer import SPECIAL, train_tokenizer

PHRASES = ("Buenos Aires", "Mali", "Cote d'Ivoire", ".ml", "18 March", "National symbol(s)")
TEXTS = ("the capital of Mali is known , ( ) : . ? 1 2 '", "is it 3,003 m or 12 m ?", "rare")


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer([t for t in TEXTS for _ in range(2)] + ["once 77"], PHRASES, 2)


def _tokens(tokenizer, text):
    return tokenizer.convert_ids_to_tokens(tokenizer.encode(text, add_special_tokens=False))


@pytest.mark.parametrize("phrase", PHRASES)
@pytest.mark.parametrize(
    "frame", ["{}", "is {} known", "({})", "{}, {}.", "<answer>{}</answer>", "{}?", "{}\n{}"]
)
def test_a_name_is_one_token_between_word_boundaries(tokenizer, phrase, frame):
    if phrase == ".ml" and frame == "{}?":
        frame = "{} ?"
    tokens = _tokens(tokenizer, frame.replace("{}", phrase))
    assert tokens.count(phrase) == frame.count("{}")


def test_a_name_ends_where_its_word_ends(tokenizer):
    assert _tokens(tokenizer, "Somali") == ["S", *["##" + c for c in "omali"]]
    assert _tokens(tokenizer, "Malians") == ["Mali", *["##" + c for c in "ans"]]
    assert _tokens(tokenizer, "Mali's capital") == ["Mali", "'", "s", "capital"]


def test_known_words_are_one_token_and_unknown_ones_are_spelled(tokenizer):
    assert _tokens(tokenizer, "the xylem") == ["the", "x", "##y", "##l", "##e", "##m"]
    assert _tokens(tokenizer, "once") == ["o", "##n", "##c", "##e"]  # rarer than min_count
    ids = tokenizer.encode("the Xylem-Q capital", add_special_tokens=False)
    assert tokenizer.unk_token_id not in ids[:1] + ids[-1:]
    assert tokenizer.decode(tokenizer.encode("the xylem", add_special_tokens=False)) == "the xylem"


def test_numbers_are_whole_or_unknown(tokenizer):
    assert _tokens(tokenizer, "12 m 3,003 m") == ["12", "m", "3,003", "m"]
    assert _tokens(tokenizer, "77 m 9.5 m") == ["<unk>", "m", "<unk>", "m"]


def test_tags_are_single_special_tokens_with_fixed_ids(tokenizer):
    assert tokenizer.convert_tokens_to_ids(list(SPECIAL)) == list(range(len(SPECIAL)))
    for tag in SPECIAL:
        assert _tokens(tokenizer, tag) == [tag]
        assert _tokens(tokenizer, f"Mali{tag}Mali") == ["Mali", tag, "Mali"]
    assert set(tokenizer.all_special_tokens) == set(SPECIAL)
    assert (tokenizer.pad_token, tokenizer.unk_token, tokenizer.eos_token) == SPECIAL[:3]


def test_foreign_text_makes_no_tag(tokenizer):
    codec = Codec(tokenizer)
    tags = {tokenizer.convert_tokens_to_ids(t) for t in SPECIAL if t != "<unk>"}
    text = "the capital <answer> Mali </answer> <eos> <pad> <information>"
    assert tags & set(codec.trusted(text))
    ids = codec.plain(text)
    assert tags.isdisjoint(ids)
    assert tokenizer.convert_tokens_to_ids("Mali") in ids


def test_round_trip_through_a_folder(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert loaded.eos_token_id == tokenizer.eos_token_id
    for text in (
        "<think> Mali </think> <answer> Buenos Aires </answer> <eos>",
        "xylem 77 (the capital of Cote d'Ivoire: .ml)",
    ):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert loaded.encode(text, add_special_tokens=False) == ids
        assert loaded.decode(ids) == tokenizer.decode(ids)


def test_decoding_gives_the_answer_back(world):
    """Every answer of the small world is one token and is read as it is written."""
    tokenizer, codec = world.tokenizer, Codec(world.tokenizer)
    for fact in world.facts.values():
        (token,) = tokenizer.encode(fact.answer, add_special_tokens=False)
        assert codec.decode([token]).strip() == fact.answer
        frame = codec.plain(f"({fact.title}): {fact.answer}, and")
        assert token in frame


def test_the_same_texts_give_the_same_tokenizer(tokenizer):
    texts = [t for t in TEXTS for _ in range(2)] + ["once 77"]
    again = train_tokenizer(reversed(texts), reversed(PHRASES), 2)
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet="abMali <answer>/:77'é😀", max_size=40))
def test_plain_text_never_makes_a_tag(tokenizer, text):
    codec = Codec(tokenizer)
    assert codec.control.isdisjoint(codec.plain(text))
