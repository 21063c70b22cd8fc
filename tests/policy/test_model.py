"""The copying heads do what they are for, in the weights as they are initialised."""

import pytest
import torch
from pydantic import ValidationError

from workbench.policy.model import ModelConfig, build_model

VOCABULARY, LENGTH = 400, 48


@pytest.fixture(scope="module")
def model():
    model = build_model(ModelConfig(), VOCABULARY, pad=0, eos=2, seed=0)
    model.set_attn_implementation("eager")
    return model.eval()


@pytest.fixture(scope="module")
def distinct():
    """Distinct ids int64 [LENGTH]."""
    order = torch.randperm(VOCABULARY - 11, generator=torch.Generator().manual_seed(1)) + 11
    return order[:LENGTH]


@torch.no_grad()
def _attentions(model, ids):
    return model(input_ids=ids[None], output_attentions=True).attentions


@pytest.mark.parametrize(("head", "offset"), [(0, 1), (1, 2)])
def test_first_layer_heads_look_one_and_two_places_back(model, distinct, head, offset):
    weights = _attentions(model, distinct)[0][0, head]
    assert weights.diagonal(-offset)[2:].min() > 0.9
    assert torch.allclose(weights.sum(-1), torch.ones(LENGTH), atol=1e-5)


def test_the_third_head_of_the_first_layer_is_random(model, distinct):
    weights = _attentions(model, distinct)[0][0, 2]
    assert max(weights.diagonal(-k)[4:].mean() for k in range(4)) < 0.5


@torch.no_grad()
def test_the_induction_head_finds_and_copies_what_followed(model, distinct):
    """... A B ... A: attention goes to B, and B's logit rises."""
    places = range(3, LENGTH - 2)
    ids = torch.stack([torch.cat([distinct, distinct[at, None]]) for at in places])
    without = torch.stack(
        [torch.cat([distinct[: at + 1], distinct[at + 2 :], distinct[at, None]]) for at in places]
    )
    rows, following = torch.arange(len(places)), torch.tensor(places) + 1
    weights = model(input_ids=ids, output_attentions=True).attentions[1][:, 0, -1]
    assert (weights.argmax(-1) == following).float().mean() > 0.95
    assert weights[rows, following].mean() > 0.8
    copied = distinct[following]
    lift = (
        model(input_ids=ids).logits[rows, -1, copied]
        - model(input_ids=without).logits[rows, -1, copied]
    )
    assert lift.min() > 0 and lift.mean() > 3.0


def test_the_same_seed_gives_the_same_weights_and_leaves_the_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    config = ModelConfig(hidden_size=48, layers=2, intermediate_size=32)
    a, b, c = (build_model(config, 50, 0, 2, seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert not torch.equal(a["model.embed_tokens.weight"], c["model.embed_tokens.weight"])


def test_sizes(model):
    assert model.config.model_type == "qwen2"
    assert model.config.tie_word_embeddings
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert (model.config.pad_token_id, model.config.eos_token_id) == (0, 2)
    assert model.config.bos_token_id is None
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    # per layer: q, k, v with bias, o without; three feed-forward matrices; two norms
    layer = 3 * (192 * 192 + 192) + 192 * 192 + 3 * 192 * 512 + 2 * 192
    assert sum(p.numel() for p in model.parameters()) == VOCABULARY * 192 + 4 * layer + 192
    assert model.get_input_embeddings().weight.std().item() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(
    "sizes",
    [{"heads": 2}, {"layers": 1}, {"hidden_size": 100}, {"hidden_size": 90}, {"heads": 5}],
)
def test_sizes_that_hold_no_copying_heads_are_refused(sizes):
    with pytest.raises(ValidationError):
        ModelConfig(**sizes)
