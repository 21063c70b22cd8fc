"""One engine, many policies: each answers as if it were alone."""

import numpy as np
import pytest
import torch

from workbench.agent.config import AgentConfig
from workbench.agent.storage import load_trajectories
from workbench.agent.trajectory import Segment
from workbench.engines.base import Sampling
from workbench.errors import WorkbenchError
from workbench.evaluation import policies
from workbench.evaluation.evidence import EvidenceReader
from workbench.evaluation.policies import (
    BASE,
    Decoding,
    PolicyBank,
    PolicyName,
    ask,
    save_predictions,
    trained_policies,
)

ONE, TWO = PolicyName("oo", 0), PolicyName("oo", 1)
PROMPT = [1, 2, 3, 4]


class Tokenizer:
    eos_token_id = None


def tiny_model():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=23, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=True,
        max_position_embeddings=64, initializer_range=0.3, eos_token_id=None, bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.fixture
def trained(tmp_path):
    """Two adapters that differ from the base and from each other; folder and logits by name."""
    import peft

    made = {}
    for name in (ONE, TWO):
        config = peft.LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
        model = peft.get_peft_model(tiny_model(), config).eval()
        torch.manual_seed(10 + name.seed)
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if "lora_B" in key:
                    parameter.normal_(std=0.5)
        folder = tmp_path / "oo" / f"seed-{name.seed}" / "final"
        model.save_pretrained(folder)
        made[name] = (folder, logits(model))
    return made


def logits(model):
    with torch.no_grad():
        return model(input_ids=torch.tensor([PROMPT])).logits[0, -1]


def engine_logits(engine):
    return engine.logits(engine.hidden(torch.tensor([PROMPT]))[0, -1:])[0]


def test_every_policy_computes_its_own_logits_in_any_order(trained):
    bank = PolicyBank(
        tiny_model(), Tokenizer(), {n: f for n, (f, _) in trained.items()}, dtype="float32"
    )
    expected = {BASE: logits(tiny_model())} | {n: value for n, (_, value) in trained.items()}
    assert bank.names == [BASE, ONE, TWO]
    for name in (BASE, TWO, ONE, BASE, ONE):
        with bank.using(name) as engine:
            torch.testing.assert_close(engine_logits(engine), expected[name], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(expected[ONE], expected[TWO], atol=1e-2)
    with pytest.raises(WorkbenchError, match="no policy oo-seed9"):
        with bank.using(PolicyName("oo", 9)):
            pass


def test_a_fully_trained_model_beside_an_adapter(trained, tmp_path):
    whole = tiny_model()
    with torch.no_grad():
        whole.lm_head.weight.mul_(1.5)
    whole.save_pretrained(tmp_path / "full")
    full = PolicyName("full", 0)
    bank = PolicyBank(
        tiny_model(), Tokenizer(), {ONE: trained[ONE][0], full: tmp_path / "full"}, dtype="float32"
    )
    for name, value in (
        (full, logits(whole)),
        (ONE, trained[ONE][1]),
        (BASE, logits(tiny_model())),
    ):
        with bank.using(name) as engine:
            torch.testing.assert_close(engine_logits(engine), value, atol=1e-5, rtol=1e-4)


def test_missing_weights_are_named(trained, tmp_path):
    runs = {"oo": tmp_path / "oo"}
    assert trained_policies(runs, [0, 1]) == {n: f for n, (f, _) in trained.items()}
    with pytest.raises(WorkbenchError, match="seed-2/final"):
        trained_policies(runs, [0, 2])


def test_equal_predictions_are_equal_files(make_trajectory, tmp_path):
    first = save_predictions(tmp_path / "a.parquet", [make_trajectory(seconds=1.0)])
    second = save_predictions(tmp_path / "b.parquet", [make_trajectory(seconds=2.0)])
    assert first.read_bytes() == second.read_bytes()


def test_ask_keeps_predictions_and_scores_them(make_item, make_trajectory, tmp_path, monkeypatch):
    """Two questions, one right without a search and one wrong after a search."""

    def rolled_out(engine, searcher, items, agent, sampling, seed, samples_per_item):
        return [
            make_trajectory("q1", "Bamako", 0, sample) for sample in range(samples_per_item)
        ] + [make_trajectory("q2", "Oslo", 1, sample) for sample in range(samples_per_item)]

    monkeypatch.setattr(policies, "rollout", rolled_out)
    items = [make_item("q1", exposures=64, roots="named"), make_item("q2", roots="named")]
    decodings = {
        "greedy": Decoding(Sampling(temperature=0.0)), "sampled": Decoding(Sampling(), 2),
    }  # fmt: skip
    frame = ask(None, None, items, AgentConfig(), decodings, tmp_path, ONE)
    assert frame["decoding"].tolist() == ["greedy"] * 2 + ["sampled"] * 4
    assert frame["em"].tolist() == [1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    with pytest.raises(WorkbenchError, match="graph"):
        ask(None, None, items, AgentConfig(), decodings, tmp_path, ONE, EvidenceReader({}))
    assert frame["stratum"].tolist()[:2] == ["1-hop, memorised", "1-hop, unseen"]
    assert set(frame["condition"]) == {"oo"} and set(frame["training_seed"]) == {0}
    kept = load_trajectories(tmp_path / "oo-seed0-sampled.parquet")
    assert [t.item_id for t in kept] == ["q1", "q1", "q2", "q2"]
    assert np.isin(Segment.ANSWER, kept[0].segments)


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_weights_that_cannot_be_read_are_named(trained, name, how):
    folder, _ = trained[TWO]
    path = folder / name
    content = path.read_bytes()
    path.unlink() if how == "gone" else path.write_bytes(content[: len(content) // 2])
    bank = {policy: where for policy, (where, _) in trained.items()}
    with pytest.raises(WorkbenchError, match="oo/seed-1/final: no trained weights") as caught:
        with PolicyBank(tiny_model(), Tokenizer(), bank).using(TWO):
            pass
    assert caught.value.fix == "delete the training run and train again"
