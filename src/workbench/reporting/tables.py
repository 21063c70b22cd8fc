"""One table object, three files: CSV for machines, Markdown and LaTeX (booktabs) for readers.

A cell is text, a number, an ``Interval`` (ours: mean, interval, n) or a ``Published`` value.
Readers see an interval as ``0.352 [0.330, 0.374] (200 x 3)``, questions times seeds; the CSV
gives each of its numbers a column.  Nothing is left blank: a cell without a value says so in
the words of its column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..errors import WorkbenchError
from ..inference.bootstrap import Interval
from .files import replace_file
from .numbers import decimal
from .published import Published

NOT_MEASURED = "not measured"
NOT_PUBLISHED = "not published"
Cell = str | int | float | Interval | Published | None
_LONG = 40  # characters from which on a LaTeX column wraps
_WIDE = 9  # columns beyond which a LaTeX table is scaled
_LATEX = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
    }
)


@dataclass(frozen=True, slots=True)
class Column:
    """``key`` of the cells, the ``title`` readers see, decimals, and what an empty cell says.

    ``counted``: an interval's cell states its n; without it the title or the caption must.
    """

    key: str
    title: str
    digits: int = 3
    absent: str = NOT_MEASURED
    counted: bool = True


@dataclass(frozen=True)
class Table:
    """A named table. ``rows`` map column keys to cells; ``caption`` says what is shown.

    Raises
    ------
    WorkbenchError : a row with a key that is no column, or two columns of one title.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]

    def __post_init__(self) -> None:
        keys = {c.key for c in self.columns}
        if len({c.title for c in self.columns}) < len(self.columns) or len(keys) < len(
            self.columns
        ):
            raise WorkbenchError("two columns share a key or title", where=f"table {self.name}")
        for number, row in enumerate(self.rows):
            if unknown := set(row) - keys:
                raise WorkbenchError(
                    f"row {number} has cells {sorted(unknown)} and no such columns",
                    where=f"table {self.name}",
                )

    def readable(self) -> pd.DataFrame:
        """The table as readers see it; every cell is non-empty text."""
        return pd.DataFrame(
            [[_show(row.get(c.key), c) for c in self.columns] for row in self.rows],
            columns=[c.title for c in self.columns],
            dtype=str,
        )

    def numbers(self) -> pd.DataFrame:
        """The table for machines: intervals and published values take several columns each."""
        spread = [
            {k: v for c in self.columns for k, v in _spread(row.get(c.key), c, self.kind(c))}
            for row in self.rows
        ]
        names = [k for c in self.columns for k, _ in _spread(None, c, self.kind(c))]
        return pd.DataFrame(spread, columns=names)

    def kind(self, column: Column) -> type:
        """Interval or Published if the column holds one anywhere, else str."""
        for row in self.rows:
            if isinstance(cell := row.get(column.key), Interval | Published):
                return type(cell)
        return str

    def markdown(self) -> str:
        """GitHub table under its caption in italics."""
        body = self.readable().map(lambda cell: cell.replace("|", r"\|"))
        text = body.to_markdown(index=False, disable_numparse=True)
        return f"*{self.caption}*\n\n{text}\n"

    def latex(self) -> str:
        """A booktabs table environment with caption and label ``tab:<name>``.

        More than ``_WIDE`` columns are scaled to the width of the text (package graphicx).
        """
        body = self.readable()
        widths = [body[c].str.len().max() if len(body) else 0 for c in body.columns]
        formats = [r"p{0.3\linewidth}" if width > _LONG else "l" for width in widths]
        styler = body.map(_escape).rename(columns=_escape).style.hide(axis="index")
        text = styler.to_latex(
            hrules=True,
            column_format="".join(formats),
            position_float="centering",
            caption=_escape(self.caption),
            label=f"tab:{self.name}",
        )
        if len(body.columns) <= _WIDE:
            return text
        start, end = r"\begin{tabular}", r"\end{tabular}"
        text = text.replace(start, r"\resizebox{\linewidth}{!}{" + start)
        return text.replace(end, end + "}")

    def save(self, folder: Path | str) -> list[Path]:
        """Write ``<name>.csv``, ``.md`` and ``.tex``; each appears complete or not at all."""
        base = Path(folder) / self.name
        csv = self.numbers().to_csv(index=False, lineterminator="\n")
        return [
            replace_file(base.with_name(f"{self.name}.{ending}"), text)
            for ending, text in (("csv", csv), ("md", self.markdown()), ("tex", self.latex()))
        ]


def _is_absent(cell: Cell) -> bool:
    if isinstance(cell, Interval | Published):
        return math.isnan(cell.value)
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def _show(cell: Cell, column: Column) -> str:
    if _is_absent(cell):
        return column.absent
    if isinstance(cell, Interval):
        d = column.digits
        seeds = f" x {cell.seeds}" if cell.seeds > 1 else ""
        value, low, high = (decimal(v, d) for v in (cell.value, cell.low, cell.high))
        ends = "no interval" if math.isnan(cell.low) else f"{low}, {high}"
        return f"{value} [{ends}]" + (f" ({cell.n}{seeds})" if column.counted else "")
    if isinstance(cell, Published):
        sd = "" if math.isnan(cell.sd) else f" (sd {decimal(cell.sd, column.digits)})"
        return f"{decimal(cell.value, column.digits)}{sd}"
    return decimal(cell, column.digits) if isinstance(cell, float) else str(cell)


def _spread(cell: Cell, column: Column, kind: type) -> list[tuple[str, object]]:
    key, empty = column.key, _is_absent(cell)
    if kind is Interval:
        names = ("", "_low", "_high", "_n", "_seeds")
        attributes = ("value", "low", "high", "n", "seeds")
    elif kind is Published:
        names = ("", "_sd", "_printed")
        attributes = ("value", "sd", "printed")
    else:
        return [(key, column.absent if empty else cell)]
    if isinstance(cell, str) and not empty:  # a word instead of numbers, e.g. "reference"
        return [(key + name, cell) for name in names]
    values = [column.absent if empty else getattr(cell, a) for a in attributes]
    blank = [column.absent if isinstance(v, float) and math.isnan(v) else v for v in values]
    return [(key + name, value) for name, value in zip(names, blank, strict=True)]


def _escape(text: str) -> str:
    return text.translate(_LATEX)
