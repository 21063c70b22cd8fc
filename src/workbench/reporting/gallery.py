"""All tables and figures of a study in one folder, with an index for readers and machines.

report = Gallery(folder, "The tiny study")
report.table(table)                         # <name>.csv, .md, .tex
report.figure(figure, "voting", "caption")  # <name>.png, .svg
report.sentences("What the intervals show", [...])
report.adopt(other_folder)                  # all that another gallery holds
report.finish()                             # index.html, index.json
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ..errors import WorkbenchError
from .files import replace_file
from .manifest import content_hash
from .style import save_figure
from .tables import Table

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{ title }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
img { max-width: 100%; }
table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid #ddd;
         vertical-align: top; }
.wide { overflow-x: auto; }
figcaption, .caption { color: #555; }
nav a { margin-right: .8rem; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for line in introduction %}<p>{{ line }}</p>
{% endfor %}<nav>{% for e in entries %}<a href="#{{ e.name }}">{{ e.heading }}</a>
{% endfor %}</nav>
{% for e in entries %}
<section id="{{ e.name }}">
<h2>{{ e.heading }}</h2>
{% if e.kind == "figure" %}<figure><img src="{{ e.name }}.svg" alt="{{ e.caption }}">
<figcaption>{{ e.caption }}</figcaption></figure>
{% elif e.kind == "table" %}<p class="caption">{{ e.caption }}</p>
<div class="wide"><table><tr>{% for h in e.cells.head %}<th>{{ h }}</th>{% endfor %}</tr>
{% for row in e.cells.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table></div>
{% elif e.kind == "page" %}<p class="caption">{{ e.caption }}</p>
{% else %}<ul>{% for line in e.lines %}<li>{{ line }}</li>
{% endfor %}</ul>
{% endif %}{% if e.files %}<p>{% for file in e.files %}<a href="{{ file }}">{{ file }}</a>
{% endfor %}</p>{% endif %}
</section>
{% endfor %}
</body>
</html>
"""


class Gallery:
    """Collects tables, figures and sentences in the order given.

    Raises
    ------
    WorkbenchError : two entries of one name.
    """

    def __init__(self, folder: Path, title: str, introduction: Sequence[str] = ()):
        self.folder, self.title, self.introduction = Path(folder), title, list(introduction)
        self._entries: list[dict] = []

    def table(self, table: Table) -> pd.DataFrame:
        """Save it; the table as readers see it."""
        readable = table.readable()
        written = table.save(self.folder)
        self._add("table", table.name, table.caption, written, cells=_cells(readable))
        return readable

    def figure(self, figure: Figure, name: str, caption: str) -> Figure:
        """Save it as PNG and SVG; the figure."""
        self._add("figure", name, caption, save_figure(figure, self.folder / name))
        return figure

    def sentences(self, name: str, lines: Sequence[str]) -> list[str]:
        """Save them as a Markdown list; the sentences."""
        text = "".join(f"- {line}\n" for line in lines)
        written = [replace_file(self.folder / f"{name}.md", text)]
        self._add("sentences", name, "", written, lines=list(lines))
        return list(lines)

    def page(self, path: Path, name: str, caption: str) -> Path:
        """Take a web page that lies in the folder; its path."""
        self._add("page", name, caption, [path])
        return path

    def adopt(self, folder: Path) -> list[str]:
        """Copy all that another finished gallery holds, in its order; the entries' names.

        Raises
        ------
        WorkbenchError : the folder is no finished gallery, or a file is not what it wrote.
        """
        folder = Path(folder)
        index = folder / "index.json"
        if not index.is_file():
            raise WorkbenchError("no finished gallery", where=folder.name, fix="finish() it")
        names = []
        for entry in json.loads(index.read_text(encoding="utf-8")):
            copies = []
            for file, sha256 in entry["files"].items():
                if content_hash(folder / file) != sha256:
                    raise WorkbenchError("a file is not what the gallery wrote", where=file)
                copies.append(replace_file(self.folder / file, (folder / file).read_bytes()))
            more = {key: entry[key] for key in ("cells", "lines") if key in entry}
            self._add(entry["kind"], entry["name"], entry["caption"], copies, **more)
            names.append(entry["name"])
        return names

    def finish(self) -> Path:
        """Write ``index.json`` and ``index.html``.

        The index holds of every entry its kind, name, caption, files with SHA-256, and the
        cells of a table or the lines of sentences as readers see them.
        """
        from jinja2 import Environment

        kept = ("kind", "name", "caption", "cells", "lines")
        index = [
            {key: entry[key] for key in kept if key in entry}
            | {"files": {file: content_hash(self.folder / file) for file in entry["files"]}}
            for entry in self._entries
        ]
        replace_file(self.folder / "index.json", json.dumps(index, indent=1) + "\n")
        page = Environment(autoescape=True).from_string(_PAGE)
        text = page.render(title=self.title, introduction=self.introduction, entries=self._entries)
        return replace_file(self.folder / "index.html", text)

    def _add(self, kind: str, name: str, caption: str, paths: Sequence[Path], **more) -> None:
        if name in {entry["name"] for entry in self._entries}:
            raise WorkbenchError("two entries of the report have this name", where=name)
        files = [path.name for path in paths]
        self._entries.append(
            {
                "kind": kind, "name": name, "caption": caption, "files": files,
                "heading": name.replace("_", " "), **more,
            }
        )  # fmt: skip


def _cells(readable: pd.DataFrame) -> dict[str, list]:
    return {"head": list(readable.columns), "rows": readable.to_numpy().tolist()}
