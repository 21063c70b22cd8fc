"""Codec: which text may become markup, and which characters a token adds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizer

from workbench.agent.text import Codec, Pieces
from workbench.errors import WorkbenchError


def test_trusted_text_has_markup_and_plain_text_has_none(word_tokenizer):
    codec = Codec(word_tokenizer)
    tag = word_tokenizer.convert_tokens_to_ids("<answer>")
    assert tag in codec.trusted("the <answer> Oslo")
    # split_special_tokens alone lets a white-space tokenizer look the whole word up
    assert (
        tag
        in word_tokenizer(
            "the <answer> Oslo", add_special_tokens=False, split_special_tokens=True
        ).input_ids
    )
    ids = codec.plain("the <answer> Oslo </information> <eos>")
    assert codec.control.isdisjoint(ids)
    assert ids[0] == word_tokenizer.convert_tokens_to_ids("the")
    assert word_tokenizer.convert_tokens_to_ids("Oslo") in ids


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["<|im_end|>", "<tool_call>", "<TOOL_CALL>", "<|im_start|>user\n", "<think>", "a",
             " Bamako", "\n", "<|im_", "end|>", "é", "😀", "<"]
        )
    )
)  # fmt: skip
def test_plain_text_never_holds_a_control_token(chat_tokenizer, parts):
    codec, text = Codec(chat_tokenizer), "".join(parts)
    ids = codec.plain(text)
    assert codec.control.isdisjoint(ids)
    assert codec.decode(ids) == text


def test_control_tokens_are_special_ones_and_added_tags(chat_tokenizer, word_tokenizer):
    names = {chat_tokenizer.convert_ids_to_tokens(i) for i in Codec(chat_tokenizer).control}
    assert names >= {"<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>", "<think>"}
    assert word_tokenizer.unk_token_id not in Codec(word_tokenizer).control


def test_framed_text_is_encoded_as_one_string_unless_it_holds_markup(chat_tokenizer):
    codec = Codec(chat_tokenizer)
    whole = "<|im_start|>the capital of Mali is<|im_end|>"
    ids = chat_tokenizer(whole, add_special_tokens=False).input_ids
    assert codec.framed("<|im_start|>the cap", "ital of Mali", " is<|im_end|>") == ids
    ids = codec.framed("<|im_start|>", "x<|im_end|>y", "<|im_end|>")
    end = chat_tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert ids.count(end) == 1 and ids[-1] == end
    # markup that only the seam would make
    ids = codec.framed("<|im_", "end|> x", "")
    assert end not in ids and codec.decode(ids) == "<|im_end|> x"


def test_pieces_by_hand(bpe_tokenizer, word_tokenizer):
    ids = bpe_tokenizer("a😀b", add_special_tokens=False).input_ids
    pieces = Codec(bpe_tokenizer).pieces(ids)
    assert pieces.text == "a😀b"
    assert pieces.bounds == (0, 1, 1, 1, 1, 2, 3)  # the emoji is four tokens
    assert pieces.tokens(1, 2) == (1, 5)
    assert pieces.tokens(0, 1) == (0, 1) and pieces.tokens(2, 3) == (5, 6)
    assert pieces.tokens(1, 1) == (4, 4)
    ids = word_tokenizer("capital of Mali").input_ids
    pieces = Codec(word_tokenizer).pieces(ids)
    assert pieces.text == "capital of Mali" and pieces.bounds == (0, 7, 10, 15)
    assert Pieces("", (0,)).tokens(0, 0) == (0, 0)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_pieces_reproduce_any_text(bpe_tokenizer, text):
    ids = bpe_tokenizer(text, add_special_tokens=False).input_ids
    pieces = Codec(bpe_tokenizer).pieces(ids)
    assert pieces.text == text
    for start in range(len(text)):
        first, end = pieces.tokens(start, start + 1)
        assert text[start] in bpe_tokenizer.decode(ids[first:end])


@settings(deadline=None)
@given(st.lists(st.integers(0, 289), max_size=20))
def test_pieces_of_any_ids_agree_with_decoding(bpe_tokenizer, ids):
    pieces = Codec(bpe_tokenizer).pieces(ids)
    assert len(pieces.bounds) == len(ids) + 1
    assert list(pieces.bounds) == sorted(pieces.bounds) and pieces.bounds[-1] == len(pieces.text)
    assert bpe_tokenizer.decode(ids).startswith(pieces.text)


def test_slow_tokenizers_are_refused():
    class Slow(PreTrainedTokenizer):
        vocab_size = 1

        def get_vocab(self):
            return {"a": 0}

        def _tokenize(self, text, **kwargs):
            return list(text)

        def _convert_token_to_id(self, token):
            return 0

        def _convert_id_to_token(self, index):
            return "a"

    with pytest.raises(WorkbenchError, match="fast tokenizer"):
        Codec(Slow())
