"""Tokenizers, chat templates, a scripted engine and a searcher of fixed passages."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from workbench.corpus.records import Chunk
from workbench.engines.base import Generation
from workbench.questions.graph import Item
from workbench.retrieval.searcher import Hit

TAGS = [
    "<think>", "</think>", "<search>", "</search>", "<information>", "</information>",
    "<answer>", "</answer>",
]  # fmt: skip
WORDS = (
    "Question: what is the capital of Mali Rome Oslo Bamako Paris first a b No results. : / > < "
    "This was no valid action. Search, or give answer. city in river Niger search answer"
).split()

# ChatML with tools, as the Qwen2.5 and Qwen3 families render it.
CHATML = """
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{{- messages[0].content + '\\n\\n' if messages[0].role == 'system' else '' }}
{{- '# Tools\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '\\n</tools>\\nCall one as <tool_call>{json}</tool_call>.<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{%- if loop.previtem.role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem.role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + ASSISTANT + '<|im_end|>\\n' }}
{%- elif not (loop.first and message.role == 'system') %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
""".strip()
QWEN25 = CHATML.replace("ASSISTANT", "message.content")
# Re-rendering drops the thinking of earlier turns.
QWEN3 = CHATML.replace("ASSISTANT", "message.content.split('</think>')[-1].lstrip('\\n')")
# Re-rendering puts an empty thinking block into every assistant turn.
REWRITING = CHATML.replace("ASSISTANT", "'<think>\\n\\n</think>\\n\\n' + message.content")


def build_word_tokenizer():
    """Every word and tag one token; tags are special."""
    vocabulary = list(dict.fromkeys(["<pad>", "<unk>", "<eos>", *TAGS, *WORDS]))
    tokenizer = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate(vocabulary)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>",
        additional_special_tokens=TAGS,
    )  # fmt: skip


def build_bpe_tokenizer():
    """Byte-level BPE whose merges run over the ends of tags; no tag is one token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    lines = ["s</"] * 5 + ["> P"] * 4 + ["x<s", "h></", " capital of", "answer", "search"]
    tokenizer.train_from_iterator(
        lines * 9,
        BpeTrainer(
            vocab_size=290, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<eos>"], max_token_length=4, show_progress=False,
        ),
    )  # fmt: skip
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")


def build_chat_tokenizer(template=QWEN25):
    """A trained byte-level BPE with ChatML's special tokens and unspecial added tags."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    text = 'the capital of Mali is Bamako. {"name": "search", "arguments": {"query_list": ["a"]}}'
    tokenizer.train_from_iterator(
        [text] * 20,
        BpeTrainer(
            vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"], show_progress=False,
        ),
    )  # fmt: skip
    tokenizer.add_tokens(
        ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>"]
    )
    chat = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )  # fmt: skip
    chat.chat_template = template
    return chat


@dataclass
class ScriptedSession:
    """Says given texts: ``texts[row][turn]``, cut to the token limit; records all calls."""

    tokenizer: object
    texts: list
    prompts: list
    k: int
    appended: list = field(default_factory=list)
    dropped: list = field(default_factory=list)
    calls: list = field(default_factory=list)

    def append(self, rows, tokens):
        self.appended += list(zip(rows, map(list, tokens)))

    def drop(self, rows):
        self.dropped += list(rows)

    def generate(self, rows, max_new_tokens, stop):
        assert not set(rows) & set(self.dropped)
        self.calls.append((list(rows), list(max_new_tokens), tuple(stop)))
        return [self._say(row, limit) for row, limit in zip(rows, max_new_tokens)]

    def _say(self, row, limit):
        turn = sum(row in rows for rows, _, _ in self.calls) - 1
        ids = self.texts[row][turn]
        if isinstance(ids, str):
            ids = self.tokenizer(ids, add_special_tokens=False).input_ids
        finish = "eos" if ids[-1] == self.tokenizer.eos_token_id else "stop"
        if len(ids) > limit or (finish == "stop" and not self.calls[-1][2]):
            ids, finish = ids[:limit], "length"
        count = len(ids)
        logprobs = -np.arange(1, count + 1, dtype=np.float32)
        return Generation(
            np.array(ids, np.int32), logprobs,
            np.full((count, self.k), 7, np.int32), np.full((count, self.k), -0.5, np.float32),
            finish,
        )  # fmt: skip


class ScriptedEngine:
    """An engine whose rows say what a test wrote down."""

    max_rows, max_length = 64, 4596
    tokens_processed = 0

    def __init__(self, tokenizer, *texts):
        self.tokenizer, self.texts, self.sessions, self.seeds = tokenizer, texts, [], []

    def open(self, prompts, sampling, seed):
        done = sum(len(s.prompts) for s in self.sessions)
        texts = self.texts[done : done + len(prompts)]
        self.sessions.append(
            ScriptedSession(self.tokenizer, texts, list(prompts), sampling.top_k_logprobs)
        )
        self.seeds.append(seed)
        return self.sessions[-1]


class FixedSearcher:
    """Finds the passages it was given, whatever is asked; keeps the queries of each call."""

    def __init__(self, *texts):
        self.hits = [
            Hit(Chunk(f"c{i}", f"p{i}", f"T{i}", text, ()), 1.0 / (i + 1))
            for i, text in enumerate(texts)
        ]
        self.asked, self.ks = [], []

    def search(self, queries, k=None):
        self.asked.append(list(queries))
        self.ks.append(k)
        return [self.hits[:k] for _ in queries]


def question(text="what is the capital of Mali", name="q0"):
    return Item(name, text, ("Bamako",), "1-hop, single", (), "test")


@pytest.fixture(scope="session")
def word_tokenizer():
    return build_word_tokenizer()


@pytest.fixture(scope="session")
def bpe_tokenizer():
    return build_bpe_tokenizer()


@pytest.fixture(scope="session")
def chat_tokenizer():
    return build_chat_tokenizer()


@pytest.fixture(scope="session")
def tools():
    """The builders of this file, since tests are not a package."""
    return SimpleNamespace(
        ScriptedEngine=ScriptedEngine, FixedSearcher=FixedSearcher, question=question,
        chat_tokenizer=build_chat_tokenizer, QWEN25=QWEN25, QWEN3=QWEN3, REWRITING=REWRITING,
    )  # fmt: skip
