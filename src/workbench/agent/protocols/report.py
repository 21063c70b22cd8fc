"""Report protocol (S2 App. A): search and get_doc, then a markdown report inside the answer."""

from __future__ import annotations

from ..report_config import ReportAgentConfig
from .base import Observation
from .tags import TagProtocol


class ReportProtocol(TagProtocol):
    """The tag protocol with a third action, "open", whose text is a document id."""

    config: ReportAgentConfig

    def __init__(self, tokenizer: object, config: ReportAgentConfig):
        super().__init__(tokenizer, config)
        self._speak(
            {config.search_tag: "search", config.open_tag: "open", config.answer_tag: "answer"}
        )
        self.force_final = self._said(config.force_final)
        self.confidence = self.codec.trusted(config.confidence)

    def page(self, hit: object | None, limit: int) -> Observation:
        """Ids of at most ``limit`` tokens that show an opened page, or that there is none."""
        before, after = self._observation
        text = self.config.no_page
        if hit is not None:
            text = self.config.page.format(title=hit.chunk.title, text=hit.chunk.text)
        body = self._encode(text)
        room = max(0, limit - self.overhead)
        return Observation([*before, *body[:room], *after], cut=len(body) > room)
