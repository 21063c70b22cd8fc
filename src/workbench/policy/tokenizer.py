"""A word-level tokenizer for the embedded corpus, in which a name is one token.

The base policy has two million parameters; copying an answer out of a passage must not cost
it a spelling lesson.  So names, answers and field labels of the corpus are single entries,
other words are entries of their own, and words outside the vocabulary are spelled: the
longest entry that they begin with, then letters.  Numbers outside it are one ``<unk>``.
The result is an ordinary fast tokenizer: it saves to ``tokenizer.json``, and transformers,
peft and vLLM load it.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable

SPECIAL = (
    "<pad>", "<unk>", "<eos>",
    "<think>", "</think>", "<search>", "</search>",
    "<information>", "</information>", "<answer>", "</answer>",
)  # fmt: skip
_CONTINUATION = "##"
_WORD = r"[^\W\d_]+(?:['’\-][^\W\d_]+)*|\d[\d.,]*\d|\d|[^\s\w]|_"


def train_tokenizer(texts: Iterable[str], phrases: Iterable[str], min_count: int = 1):
    """Build the tokenizer.

    Parameters
    ----------
    texts : everything the policy is to read or say.
    phrases : strings that stay whole wherever they stand between word boundaries.
    min_count : words rarer than this are spelled out (numbers: ``<unk>``).

    Returns
    -------
    transformers.PreTrainedTokenizerFast with ``<pad>``, ``<unk>``, ``<eos>`` and the tags of
    the tag protocol as special tokens.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    phrases = sorted({p for p in phrases if p.strip()})
    added = [AddedToken(p, single_word=True, normalized=False) for p in phrases]
    splitter = pre_tokenizers.Split(Regex(_WORD), "removed", invert=True)
    # one pass with an empty vocabulary shows which words stand outside the phrases
    blank = Tokenizer(models.WordPiece({"<unk>": 0}, unk_token="<unk>"))
    blank.pre_tokenizer = splitter
    blank.add_tokens(added)
    counts: Counter[str] = Counter()
    texts = list(texts)
    for text, encoding in zip(texts, blank.encode_batch(texts), strict=True):
        spans = zip(encoding.ids, encoding.offsets, strict=True)
        counts.update(text[start:end] for i, (start, end) in spans if i == 0)
    letters = sorted(
        set(string.ascii_letters)
        | {c for word in counts for c in word if not c.isdigit() and not c.isspace()}
    )
    vocabulary = list(SPECIAL)
    vocabulary += letters + [_CONTINUATION + c for c in letters]
    vocabulary += sorted(w for w, n in counts.items() if n >= min_count)
    vocabulary = list(dict.fromkeys([*vocabulary, *phrases]))
    tokenizer = Tokenizer(
        models.WordPiece(
            {w: i for i, w in enumerate(vocabulary)},
            unk_token="<unk>",
            continuing_subword_prefix=_CONTINUATION,
            max_input_chars_per_word=200,
        )
    )
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.WordPiece(prefix=_CONTINUATION, cleanup=True)
    tokenizer.add_tokens(added)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>", unk_token="<unk>", eos_token="<eos>",
        additional_special_tokens=list(SPECIAL[3:]),
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )  # fmt: skip
