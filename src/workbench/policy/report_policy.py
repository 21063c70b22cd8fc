"""The report policy: the base policy with a LoRA adapter that writes cited reports.

Beside the adapter it has a few tokens that the base policy's vocabulary lacks (bold, a heading,
the tags of the second tool); their embeddings are part of the adapter.  A folder of it holds the
adapter in peft's format and a manifest that names base weights, marks and recipe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import Field

from ..agent.config import AgentConfig
from ..agent.protocols import build_protocol
from ..agent.protocols.report import ReportProtocol
from ..agent.report_config import ReportAgentConfig
from ..config import Settings
from ..corpus.records import Chunk, Page
from ..errors import WorkbenchError
from ..questions.graph import Item
from ..retrieval.pages import PageStore
from ..runs import project_root
from ..seeding import seed_of
from .config import PolicyConfig
from .mixture import DemonstrationConfig
from .recipe import all_facts, closed_book_agent
from .report_demonstrations import BOLD, HEADING, ReportDemonstrationConfig, ReportDemonstrator
from .sft import SFTConfig, SFTProgress, train
from .store import file_hash, load_policy

WEIGHTS, MANIFEST = "adapter_model.safetensors", "manifest.json"


class ReportTraining(SFTConfig):
    """A short schedule; reports state no facts."""

    steps: int = Field(default=400, ge=0)
    lr: float = Field(default=3.0e-3, gt=0)
    warmup_steps: int = Field(default=20, ge=0)
    decay_from: float = Field(default=0.3, ge=0, le=1)


class ReportPolicyConfig(Settings):
    """Where the report policy is (a folder as in ``PolicyConfig``) and how it was made."""

    source: str = "data/report_policy"
    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0)
    demonstrations: ReportDemonstrationConfig = ReportDemonstrationConfig()
    training: ReportTraining = ReportTraining()


def marks(agent: ReportAgentConfig) -> list[str]:
    """The tokens that reports need beside the base vocabulary."""
    return [BOLD, HEADING, f"<{agent.open_tag}>", f"</{agent.open_tag}>", agent.confidence]


def add_marks(model, tokenizer, tokens: Sequence[str]) -> list[int]:
    """Give ``tokens`` entries of their own, in place; the ids of those that had none.

    Their embeddings are drawn around the mean of the others', the same for the same model.
    """
    import torch
    from tokenizers import AddedToken

    before = model.get_input_embeddings().weight.detach()
    old = len(before)
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in tokens])
    new = list(range(old, len(tokenizer)))
    if not new:
        return new
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    draws = torch.Generator().manual_seed(seed_of("report-marks", 0))
    noise = torch.randn(len(new), before.shape[1], generator=draws)
    rows = model.get_input_embeddings().weight.data
    rows[new] = before.mean(0) + noise.to(before) * before.std(0)
    return new


def build_report_policy(
    pages: Sequence[Page],
    chunks: Sequence[Chunk],
    items: Sequence[Item],
    searcher: object,
    agent: AgentConfig,
    report: ReportAgentConfig,
    policy: PolicyConfig,
    config: ReportPolicyConfig,
    on_step: Callable[[SFTProgress], None] = lambda progress: None,
    checkpoint: Path | None = None,
):
    """Train the adapter on demonstrations; ``(peft model, tokenizer, demonstrator)``.

    ``agent`` is the base policy's, ``report`` the report agent's settings.  A killed training
    goes on from its ``checkpoint`` file to the same weights.
    """
    import peft
    import torch

    model, tokenizer = load_policy(policy.source)
    new = add_marks(model, tokenizer, marks(report))
    demonstrator = report_demonstrator(
        tokenizer, pages, chunks, items, searcher, agent, report, policy, config.demonstrations
    )
    adapter = peft.LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        target_modules="all-linear",
        trainable_token_indices={"embed_tokens": new} if new else None,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of("lora-init", config.training.seed))
        wrapped = peft.get_peft_model(model, adapter)
    wrapped.peft_config["default"].base_model_name_or_path = None
    model.set_attn_implementation("eager")
    train(wrapped.get_base_model(), demonstrator, config.training, on_step, checkpoint)
    return wrapped, tokenizer, demonstrator


def report_demonstrator(
    tokenizer, pages, chunks, items, searcher, agent, report, policy, recipe
) -> ReportDemonstrator:
    """The source of report demonstrations for this corpus."""
    entity = report.arm("entity_only") if "entity_only" in report.arms else report
    mixture = DemonstrationConfig(
        renamed=recipe.renamed, told=1.0, hops=recipe.hops, answer_in_reasoning=0.2
    )
    return ReportDemonstrator(
        tokenizer,
        ReportProtocol(tokenizer, report.arm("stock")),
        build_protocol(closed_book_agent(agent, policy.closed_book_prompt), tokenizer),
        searcher,
        pages,
        all_facts(pages),
        items,
        mixture,
        recipe=recipe,
        entity=ReportProtocol(tokenizer, entity),
        store=PageStore(chunks),
    )


def save_report_policy(
    folder: Path | str, wrapped, tokens: Sequence[str], base_sha256: str, recipe: dict
) -> str:
    """Write adapter and manifest; returns the adapter's SHA-256."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    wrapped.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)
    digest = file_hash(folder / WEIGHTS)
    manifest = {
        "weights_sha256": digest,
        "base_sha256": base_sha256,
        "marks": list(tokens),
        "recipe": recipe,
    }
    text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return digest


def load_report_policy(folder: Path | str, base: Path | str):
    """``(model, tokenizer)`` with the adapter merged into the base policy, in eval mode.

    Raises
    ------
    WorkbenchError
        no such folder or manifest, weights of another hash, or another base policy.
    """
    import peft

    local = project_root() / folder
    try:
        manifest = json.loads((local / MANIFEST).read_text(encoding="utf-8"))
        expected = {k: manifest[k] for k in ("weights_sha256", "base_sha256", "marks")}
        found = file_hash(local / WEIGHTS)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkbenchError(
            f"no report policy here: {error!r}",
            where=local,
            fix="restore data/report_policy from version control, or run notebook 10",
        ) from error
    if found != expected["weights_sha256"]:
        raise WorkbenchError(
            f"the adapter hashes to {found[:12]}, the manifest says "
            f"{expected['weights_sha256'][:12]}",
            where=local / WEIGHTS,
            fix="restore data/report_policy from version control, or run notebook 10",
        )
    weights = project_root() / base / "model.safetensors"
    if not weights.is_file() or file_hash(weights) != expected["base_sha256"]:
        raise WorkbenchError(
            "the adapter was trained on another base policy",
            where=weights,
            fix="use the base policy that the manifest names, or train the adapter anew",
        )
    model, tokenizer = load_policy(base)
    add_marks(model, tokenizer, expected["marks"])
    merged = peft.PeftModel.from_pretrained(model, local).merge_and_unload()
    return merged.eval(), tokenizer
