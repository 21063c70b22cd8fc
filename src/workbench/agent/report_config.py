"""Settings of the report agent: its tools' tags, prompt arms, budgets and sampling (S2 App. A)."""

from __future__ import annotations

from pydantic import Field, model_validator

from .config import AgentConfig, Count, placeholders


class ReportAgentConfig(AgentConfig):
    """The tag protocol with a second tool and a report for an answer.

    ``<get_doc>id</get_doc>`` opens a whole page, ``<answer>...</answer>`` holds a markdown
    report: the direct answer in bold, then what was found, each with its document in brackets.
    A passage's document id is its page's title.  ``arms`` are the prompts by name (App. J);
    each holds ``{question}`` and stands for ``prompt``.

    A final report is forced once, by ``force_final`` and with the tools disabled, when the
    context passes ``final_share`` of ``max_total_tokens``, after ``max_tool_calls``, when
    ``max_output_tokens`` were generated, or when a turn ran into ``max_response_tokens``.  S2
    replaces the last assistant text by a marker before it; here nothing that was generated is
    changed.  ``confidence`` asks for the verbalised confidence, greedily, of at most
    ``confidence_tokens``.
    """

    open_tag: str = Field(default="get_doc", min_length=1)
    page: str = "{title} : {text}"
    no_page: str = "No results."
    max_page_tokens: Count = 420
    arms: dict[str, str] = {"stock": "Question: {question} <think>"}
    force_final: str = "Give the answer."
    final_share: float = Field(default=0.85, gt=0, le=1)
    max_tool_calls: Count = 200
    max_output_tokens: Count = 30_000
    confidence: str = "Confidence:"
    confidence_tokens: Count = 4
    temperature: float = Field(default=0.85, gt=0)
    top_k_logprobs: int = Field(default=20, ge=1)

    @model_validator(mode="after")
    def _check_report(self) -> ReportAgentConfig:
        if self.protocol != "tag":
            raise ValueError("the report agent writes tags: protocol must be 'tag'")
        if self.open_tag in (self.search_tag, self.answer_tag):
            raise ValueError("open_tag, search_tag and answer_tag must differ")
        if not self.arms or "stock" not in self.arms:
            raise ValueError("arms must hold 'stock'")
        for name, prompt in self.arms.items():
            if placeholders(prompt) != ["question"]:
                raise ValueError(f"arm {name} must hold {{question}} exactly once")
        if not set(placeholders(self.page)) <= {"title", "text"}:
            raise ValueError("page may hold {title} and {text} only")
        return self

    def arm(self, name: str) -> ReportAgentConfig:
        """This agent under the prompt of one arm."""
        return self.model_copy(update={"prompt": self.arms[name]})
