"""A word tokenizer and random models of a few thousand parameters."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

TAGS = ["<think>", "</think>", "<search>", "</search>", "<answer>", "</answer>"]
WORDS = [f"w{i}" for i in range(53)]


def word_tokenizer():
    """64 tokens: <pad> 0, <unk> 1, <eos> 2, six tags, words, ``/`` and ``>``."""
    vocabulary = ["<pad>", "<unk>", "<eos>", *TAGS, *WORDS, "/", ">"]
    tokenizer = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate(vocabulary)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<eos>",
        additional_special_tokens=TAGS,
    )


def random_model(kind="llama", vocabulary=64, seed=0, **sizes):
    """A float32 causal LM with random weights large enough that its choices vary."""
    sizes = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48,
        "max_position_embeddings": 256, **sizes,
    }  # fmt: skip
    config, model = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
        "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    }[kind]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = model(
            config(
                vocab_size=vocabulary, pad_token_id=0, eos_token_id=2, bos_token_id=None, **sizes
            )
        ).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.normal_(0, 0.35)
                else:  # gains of norms, biases
                    parameter.normal_(1, 0.3)
    return model


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer():
    return word_tokenizer()


@pytest.fixture(scope="session")
def make_model():
    return random_model


@pytest.fixture(scope="session")
def byte_tokenizer():
    """Byte-level BPE in which tags are several tokens and merges run over their ends."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    from tokenizers.trainers import BpeTrainer

    tokenizer.train_from_iterator(
        ["<search> capital of Mali</search> <answer> Paris</answer> x</"] * 30,
        BpeTrainer(
            vocab_size=272,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<pad>", "<unk>", "<eos>"],
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>"
    )
