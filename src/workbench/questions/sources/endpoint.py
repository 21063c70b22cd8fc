"""Descriptions from an OpenAI-compatible endpoint: fixed prompt, temperature 0, cached, counted."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...errors import WorkbenchError
from .descriptions import Root, mentions
from .settings import DescriptionConfig

SYSTEM = (
    "You refer to things without naming them. You are given facts about one thing and the names "
    "that it has. Answer with a single noun phrase of at most 25 words that begins with 'the', "
    "that fits this thing and no other, that uses only the facts given, and that contains none "
    "of its names. Answer with the phrase alone."
)
MOST_WORDS = 40


def prompt_of(root: Root) -> str:
    """The user message: what the root is, its description and traits, and its names."""
    facts = [f"It is an instance of: {root.noun}."]
    facts += [f"In short: {root.text}."] if root.text else []
    facts += [f"It is the one {trait.clause}." for trait in root.traits]
    names = "; ".join(root.names)
    return "\n".join([*facts, f"Names that must not occur: {names}."])


def checked(answer: str | None, root: Root) -> tuple[str, str]:
    """(the phrase, "") or ("", why it is no description)."""
    phrase = (answer or "").strip().strip("\"'“”").rstrip(".").strip()
    if not phrase:
        return "", "empty answer"
    if "\n" in phrase or len(phrase.split()) > MOST_WORDS:
        return "", "not a single phrase"
    if mentions(phrase, root.names):
        return "", "names the root"
    if phrase[:4].lower() != "the ":
        return "", "does not begin with 'the'"
    return f"the {phrase[4:]}", ""


class Endpoint:
    """Asks for descriptions; what was answered once is not asked again.

    The cache is a file of JSON lines, each the hash of model and messages with the answer as
    it came, appended as answers arrive; a line that a killed run left unfinished is passed over.
    ``failures`` counts by reason the roots that got no description, ``asked`` the requests.

    Parameters
    ----------
    config : ``model`` must be set.
    cache : the file.

    Raises
    ------
    WorkbenchError
        the `openai` package is not installed.
    """

    def __init__(self, config: DescriptionConfig, cache: Path):
        try:
            import openai
        except ImportError as error:
            raise WorkbenchError(
                "descriptions.model is set and the package openai is not installed",
                fix="pip install '.[endpoint]', or leave descriptions.model empty",
            ) from error
        self._errors = openai.OpenAIError
        self._config, self._cache = config, cache
        self._client = openai.OpenAI(
            api_key=os.environ.get(config.key_variable) or "none",
            base_url=config.base_url or None,
            timeout=config.timeout,
            max_retries=config.retries,
        )
        self._answers = self._read()
        self.failures: Counter[str] = Counter()
        self.asked = 0

    def describe(self, roots: Iterable[Root]) -> dict[Root, str]:
        """The descriptions that could be had, in parallel; failures are counted."""
        roots = list(dict.fromkeys(roots))
        waiting = [r for r in roots if self._key(r) not in self._answers]
        self._cache.parent.mkdir(parents=True, exist_ok=True)
        failed: dict[Root, str] = {}
        with (
            self._cache.open("a", encoding="utf-8") as cache,
            ThreadPoolExecutor(self._config.workers) as pool,
        ):
            if self._unfinished:
                cache.write("\n")
                self._unfinished = False
            self.asked += len(waiting)
            for root, (answer, failure) in zip(waiting, pool.map(self._ask, waiting)):
                if failure:
                    failed[root] = failure
                    continue
                key = self._key(root)
                self._answers[key] = answer
                line = {"key": key, "model": self._config.model, "entity": root.entity}
                cache.write(json.dumps({**line, "answer": answer}, ensure_ascii=False) + "\n")
                cache.flush()
        described: dict[Root, str] = {}
        for root in roots:
            if root in failed:
                self.failures[failed[root]] += 1
                continue
            phrase, reason = checked(self._answers[self._key(root)], root)
            if reason:
                self.failures[reason] += 1
            else:
                described[root] = phrase
        return described

    def _ask(self, root: Root) -> tuple[str, str]:
        try:
            answer = self._client.chat.completions.create(
                model=self._config.model, messages=self._messages(root), temperature=0
            )
        except (self._errors, ValueError) as error:  # ValueError: the body is not JSON
            return "", f"no answer: {type(error).__name__}"
        choices = getattr(answer, "choices", None)
        if not choices:
            return "", "no answer: another format"
        return getattr(getattr(choices[0], "message", None), "content", None) or "", ""

    def _messages(self, root: Root) -> Sequence[dict]:
        return [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": prompt_of(root)},
        ]

    def _key(self, root: Root) -> str:
        asked = json.dumps([self._config.model, self._messages(root)], ensure_ascii=False)
        return hashlib.sha256(asked.encode()).hexdigest()

    def _read(self) -> dict[str, str]:
        answers: dict[str, str] = {}
        self._unfinished = False
        if self._cache.is_file():
            with self._cache.open("rb") as lines:
                for line in lines:
                    self._unfinished = not line.endswith(b"\n")
                    try:
                        raw = json.loads(line)
                        answers[raw["key"]] = raw["answer"]
                    except (ValueError, KeyError, TypeError):
                        continue
        return answers
