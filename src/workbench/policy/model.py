"""The base policy's architecture: a small Qwen2, so that peft, vLLM and the probes take it."""

from __future__ import annotations

from pydantic import Field, model_validator

from ..config import Settings
from ..seeding import seed_of
from .initialise import write_copying_heads


class ModelConfig(Settings):
    """Sizes of the decoder; embeddings are tied, head size is hidden_size / heads.

    The copying heads need three subspaces of a head's size, so there are three heads or more.

    ``embedding_std`` is far above transformers' 0.02: what all rare tokens learn in common
    (that they are unlikely) must not drown what tells them apart, or names cannot be copied.
    """

    hidden_size: int = Field(default=192, ge=8)
    layers: int = Field(default=4, ge=2)
    heads: int = Field(default=3, ge=3)
    intermediate_size: int = Field(default=512, ge=8)
    max_positions: int = Field(default=2048, ge=64)
    rope_theta: float = Field(default=10_000.0, gt=0)
    embedding_std: float = Field(default=0.1, gt=0)

    @model_validator(mode="after")
    def _head_size(self) -> ModelConfig:
        if self.hidden_size % (4 * self.heads):
            raise ValueError(
                f"hidden_size {self.hidden_size} does not give {self.heads} heads whose size is "
                "a multiple of 4"
            )
        return self


def build_model(config: ModelConfig, vocabulary: int, pad: int, eos: int, seed: int):
    """A freshly initialised Qwen2ForCausalLM in float32; the same weights for the same seed."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    state = torch.get_rng_state()
    torch.manual_seed(seed_of("policy-init", seed))
    try:
        model = Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=vocabulary,
                hidden_size=config.hidden_size,
                num_hidden_layers=config.layers,
                num_attention_heads=config.heads,
                num_key_value_heads=config.heads,
                intermediate_size=config.intermediate_size,
                max_position_embeddings=config.max_positions,
                rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
                tie_word_embeddings=True,
                pad_token_id=pad,
                bos_token_id=None,
                eos_token_id=eos,
            )
        )
        torch.nn.init.normal_(model.get_input_embeddings().weight, std=config.embedding_std)
        write_copying_heads(model)
        return model
    finally:
        torch.set_rng_state(state)
