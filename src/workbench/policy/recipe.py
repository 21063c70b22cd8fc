"""From corpus, questions and settings to a trained base policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ..agent.config import AgentConfig
from ..agent.protocols import build_protocol
from ..corpus.embedded import field_of
from ..corpus.records import Chunk, Page
from ..questions.graph import Item
from ..questions.relation_table import RELATIONS
from ..questions.relations import Fact, read_facts, read_lists
from .config import PolicyConfig
from .demonstrations import PHRASES, Demonstrator
from .mixture import DemonstrationConfig
from .model import build_model
from .sft import SFTConfig, SFTProgress, train
from .tokenizer import train_tokenizer


def all_facts(pages: Sequence[Page]) -> list[Fact]:
    """Facts of one object and those of lists."""
    return [*read_facts(list(pages)), *read_lists(list(pages))]


def closed_book_agent(agent: AgentConfig, prompt: str) -> AgentConfig:
    """The agent without retrieval: its own prompt, one round, which therefore cannot search."""
    return agent.model_copy(update={"prompt": prompt, "max_rounds": 1, "answer_round": False})


def build_tokenizer(
    pages: Sequence[Page], chunks: Sequence[Chunk], items: Sequence[Item], min_count: int
):
    """The policy's tokenizer: names, answers and field labels are single entries."""
    lines = [t for p in pages for t in p.text[1:]]
    markers = {t for t in lines if t.startswith("Section::::")}
    fields = {field_of(t) for t in lines if t not in markers}
    answers = {f.answer for f in all_facts(pages)}
    texts = [c.text for c in chunks] + [i.question for i in items]
    texts += [r.query for r in RELATIONS] * min_count + [PHRASES] * min_count
    return train_tokenizer(texts, markers | fields | answers | {p.title for p in pages}, min_count)


def build_demonstrator(
    tokenizer,
    pages: Sequence[Page],
    items: Sequence[Item],
    searcher: object,
    agent: AgentConfig,
    config: PolicyConfig,
) -> Demonstrator:
    """The source of demonstrations for this corpus, agent and recipe."""
    closed = closed_book_agent(agent, config.closed_book_prompt)
    return Demonstrator(
        tokenizer,
        build_protocol(agent, tokenizer),
        build_protocol(closed, tokenizer),
        searcher,
        pages,
        all_facts(pages),
        items,
        config.demonstrations,
    )


def build_policy(
    pages: Sequence[Page],
    chunks: Sequence[Chunk],
    items: Sequence[Item],
    searcher: object,
    agent: AgentConfig,
    config: PolicyConfig,
    on_step: Callable[[SFTProgress, object], None] = lambda progress, model: None,
    checkpoint: Path | None = None,
):
    """Train the base policy from scratch; ``(model, tokenizer)``.

    ``on_step`` sees every step and the model as it is then; a training killed before goes on
    from its ``checkpoint`` file.
    """
    tokenizer = build_tokenizer(pages, chunks, items, config.min_count)
    model = build_model(
        config.model, len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id,
        config.training.seed,
    )  # fmt: skip
    model.set_attn_implementation("eager")  # its backward is faster than SDPA's on CPUs here
    before = 0
    for number, (demonstrations, training) in enumerate(stages(config)):
        part = config.model_copy(update={"demonstrations": demonstrations})
        demonstrator = build_demonstrator(tokenizer, pages, items, searcher, agent, part)

        def report(progress: SFTProgress, offset: int = before) -> None:
            on_step(replace(progress, step=progress.step + offset), model)

        kept = checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{number + 1}")
        train(model, demonstrator, training, report, kept)
        before += training.steps
    return model, tokenizer


def stages(config: PolicyConfig) -> list[tuple[DemonstrationConfig, SFTConfig]]:
    """Demonstrations and schedule of each stage that has steps."""
    return [
        (stage.demonstrations, stage.training)
        for stage in (config, config.second, config.third)
        if stage.training.steps
    ]
