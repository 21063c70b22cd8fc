"""The case study as a web page: policies side by side, nothing cut, documents folded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from ..agent.trajectory import Segment, Trajectory
from ..errors import WorkbenchError
from ..questions.graph import Item
from .case_study import Case
from .files import replace_file
from .style import display
from .tokens import SEGMENT_COLOURS

_NAMES = {
    Segment.REASONING: "think",
    Segment.CALL: "call",
    Segment.QUERY: "query",
    Segment.OBSERVATION: "read",
    Segment.ANSWER: "answer",
}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{ item.question }}</title>
<style>
.case { font: 14px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 110rem; }
.case h1 { font-size: 1.3rem; }
.case .columns { display: grid; gap: 1rem;
  grid-template-columns: repeat({{ cases | length }}, minmax(14rem, 1fr)); }
.case .column { border-top: 3px solid #444; overflow-wrap: anywhere; }
.case h2 { font-size: 1rem; margin: .2rem 0 .4rem; }
.case .piece { padding: .1rem .2rem; color: #111; white-space: pre-wrap; }
.case details { margin: .3rem 0; padding: .1rem .4rem; color: #111; font-size: 13px; }
.case details p { margin: .3rem 0; }
.case .found { border-top: 1px solid #888; margin-top: .6rem; padding-left: 1.2rem; }
</style>
</head>
<body>
<div class="case">
<h1>{{ item.question }}</h1>
<p>Accepted: {{ item.answers | join(", ") }}. {{ note }}</p>
<p>{% for name, colour in legend %}<span class="piece" style="background:{{ colour }}">{{ name }}</span> {% endfor %}</p>
<div class="columns">
{% for case in cases %}
<div class="column"><h2>{{ case.name }}</h2>
{% for piece in case.pieces %}{% if piece.documents is defined %}<details style="background:{{ piece.colour }}"><summary>read {{ piece.documents | length }} passages{{ ", cut" if piece.cut }}</summary>{% for title, text in piece.documents %}<p><b>{{ title }}</b>: {{ text }}</p>{% endfor %}</details>{% else %}<span class="piece" style="background:{{ piece.colour }}" title="{{ piece.name }}">{{ piece.text }}</span>{% endif %}

{% endfor %}
<ul class="found">{% for line in case.found %}<li>{{ line }}</li>{% endfor %}</ul>
</div>
{% endfor %}
</div>
</div>
</body>
</html>
"""  # noqa: E501


def case_page(item: Item, cases: Sequence[Case], tokenizer: object, note: str = "") -> str:
    """A self-contained HTML page; prompts are left out, what a search found unfolds.

    ``note`` says how the question was chosen.

    Raises
    ------
    WorkbenchError : no case, or a rollout of another question.
    """
    from jinja2 import Environment

    if not cases or any(case.trajectory.item_id != item.item_id for case in cases):
        raise WorkbenchError(
            "a case study needs rollouts of one question", where=f"question {item.item_id}"
        )
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(PAGE)
    shown = [
        {
            "name": display(case.policy),
            "pieces": _pieces(case.trajectory, tokenizer),
            "found": case.found(),
        }
        for case in cases
    ]
    legend = [(name, SEGMENT_COLOURS[segment]) for segment, name in _NAMES.items()]
    return page.render(item=item, cases=shown, note=note, legend=legend)


def save_case_page(
    path: Path | str, item: Item, cases: Sequence[Case], tokenizer: object, note: str = ""
) -> Path:
    """Write ``case_page``, complete or not at all."""
    return replace_file(path, case_page(item, cases, tokenizer, note))


def _pieces(trajectory: Trajectory, tokenizer: object) -> list[dict]:
    """Runs of one segment; the observation of a search as its passages, a correction as text."""
    found = {s.observation_span[0]: s for s in trajectory.searches}
    pieces, end = [], 0
    for code, run in groupby(trajectory.segments.tolist()):
        start, end = end, end + len(list(run))
        segment = Segment(code)
        if segment not in _NAMES:
            continue
        piece = {"name": _NAMES[segment], "colour": SEGMENT_COLOURS[segment]}
        if search := found.get(start):
            documents = list(zip(search.titles, search.texts, strict=True))
            pieces.append(piece | {"documents": documents, "cut": search.observation_cut})
        else:
            text = tokenizer.decode(trajectory.tokens[start:end].tolist())
            pieces.append(piece | {"text": text})
    return pieces
