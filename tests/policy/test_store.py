"""A policy folder: what comes back and what is refused."""

import json
import shutil

import pytest
import torch

from workbench.errors import WorkbenchError
from workbench.policy.model import build_model
from workbench.policy.store import MANIFEST, WEIGHTS, check_weights, load_policy, save_policy


@pytest.fixture(scope="module")
def saved(world, tmp_path_factory):
    tokenizer = world.tokenizer
    model = build_model(
        world.small, len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, 0
    )
    folder = tmp_path_factory.mktemp("policies") / "policy"
    digest = save_policy(folder, model, tokenizer, {"seed": 0, "corpus": "ab12"})
    return folder, model, digest


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved[0], tmp_path / "policy")


def test_round_trip(world, saved):
    folder, model, digest = saved
    loaded, tokenizer = load_policy(folder)
    assert not loaded.training and loaded.dtype == torch.float32
    ours, theirs = model.state_dict(), loaded.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[k], theirs[k]) for k in ours)
    assert tokenizer.get_vocab() == world.tokenizer.get_vocab()
    for item in world.items[::20]:
        text = f"{item.question} <think> So. </think> <answer> {item.answers[0]} </answer>"
        assert tokenizer(text).input_ids == world.tokenizer(text).input_ids
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest == {"weights_sha256": digest, "recipe": {"seed": 0, "corpus": "ab12"}}
    assert check_weights(folder) == digest
    assert [p.name for p in folder.parent.iterdir()] == ["policy"]


def test_half_precision_on_request_and_no_other(saved):
    assert load_policy(saved[0], "bfloat16")[0].dtype == torch.bfloat16
    with pytest.raises(WorkbenchError, match="unknown dtype 'int8' -- one of .*float32"):
        load_policy(saved[0], "int8")


def test_saving_again_gives_the_same_bytes_and_keeps_what_is_not_the_policys(folder, saved, world):
    (folder / "card.csv").write_text("measure\n")
    digest = save_policy(folder, saved[1], world.tokenizer, {"seed": 1})
    assert digest == saved[2]
    assert (folder / "card.csv").read_text() == "measure\n"
    assert json.loads((folder / MANIFEST).read_text())["recipe"] == {"seed": 1}
    assert load_policy(folder)[0] is not None


def test_other_weights_than_the_manifest_names_are_refused(folder):
    path = folder / WEIGHTS
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(WorkbenchError, match=f"{WEIGHTS}: the weights hash to .*the manifest says"):
        load_policy(folder)


def test_missing_weights_are_named(folder):
    (folder / WEIGHTS).unlink()
    with pytest.raises(WorkbenchError, match="the weights are missing -- run make policy"):
        load_policy(folder)


@pytest.mark.parametrize("text", [b"{", b"{}", b"[]", b'"x"', b"\xff"])
def test_a_broken_manifest_is_named(folder, text):
    (folder / MANIFEST).write_bytes(text)
    with pytest.raises(WorkbenchError, match=f"{MANIFEST}: not a policy manifest"):
        load_policy(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_folder_that_is_not_complete_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(WorkbenchError, match="(?s)cannot load.*make the folder complete"):
        load_policy(folder)


def test_without_a_manifest_the_folder_is_any_transformers_folder(folder):
    (folder / MANIFEST).unlink()
    assert load_policy(folder)[0] is not None
    path = folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(WorkbenchError, match="cannot load this policy"):
        load_policy(folder)
    (folder / "config.json").unlink()
    with pytest.raises(WorkbenchError, match="no policy here -- run make policy, or name a folder"):
        load_policy(folder)


@pytest.mark.parametrize("name", ["data/none", "none"])
def test_a_folder_that_is_not_there_is_no_hub_id(name):
    with pytest.raises(WorkbenchError, match=f"{name}: no policy here -- run make policy"):
        load_policy(name)


def test_a_hub_id_that_cannot_be_had_says_so(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WorkbenchError, match="(?s)nobody-here/no-model: .*check the hub id"):
        load_policy("nobody-here/no-model")
