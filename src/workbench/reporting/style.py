"""How figures look, and how they are saved so that equal data give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import seaborn as sns
from matplotlib.figure import Figure

from .files import replace_file

WIDTH = 7.2  # inches: the text width of a page
ACCENT = "#0173b2"  # where a title or a row already names the condition
UNTRAINED = {"base": "#5f5f5f", "closed_book": "#a0a0a0"}
NAMES = {
    "base": "base policy",
    "closed_book": "base, closed book",
    "oo": "outcome only (F1)",
    "search_r1": "Search-R1",
    "search_g1": "Search-G1",
    "single": "single rollout",
    "majority": "simple majority",
    "rgv": "RGV",
    "deepconf": "DeepConf",
    "oracle": "oracle",
}
_SIGNALS = {"cov": "Cov", "cov_dep": "Cov-Dep", "am": "AM"}
_ARMS = ("scalar", "local", "permute", "no_flat", "flat_only")
NAMES |= {
    f"{signal}_{arm}": f"{name}-{arm.replace('_', '-')}"
    for signal, name in _SIGNALS.items()
    for arm in _ARMS
}
MARKERS = "sD^vPX*hp"  # nine, so that they and ten colours repeat together only at ninety
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
}
_SAVING = {"svg.hashsalt": "workbench", "svg.fonttype": "none", "savefig.dpi": 200}


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this: readable sizes, light grid, nothing left behind afterwards."""
    with sns.axes_style("whitegrid"), mpl.rc_context(_SETTINGS):
        yield


def display(name: str) -> str:
    """The name readers see for a condition or rule."""
    return NAMES.get(name, name.replace("_", " "))


def colours(names: Sequence[str]) -> dict[str, str]:
    """Colour-blind safe colour per name, in the order given; untrained policies are grey."""
    trained = [n for n in names if n not in UNTRAINED]
    palette = sns.color_palette("colorblind", max(len(trained), 1)).as_hex()
    return dict(zip(trained, palette)) | {n: UNTRAINED[n] for n in names if n in UNTRAINED}


def markers(names: Sequence[str]) -> dict[str, str]:
    """Marker per name, so that no figure rests on colour alone; untrained policies are dots."""
    trained = [n for n in names if n not in UNTRAINED]
    return {n: MARKERS[i % len(MARKERS)] for i, n in enumerate(trained)} | {
        n: "o" for n in names if n in UNTRAINED
    }


def save_figure(figure: Figure, path: Path | str) -> list[Path]:
    """Write ``path`` (without ending) as PNG (200 dpi) and SVG; returns both paths.

    No times, no library versions and fixed element ids: equal figures are equal files.
    """
    path, written = Path(path), []
    for ending, metadata in (
        ("png", {"Software": None}),
        ("svg", {"Date": None, "Creator": None}),
    ):
        buffer = BytesIO()
        with mpl.rc_context(_SETTINGS | _SAVING):
            figure.savefig(buffer, format=ending, metadata=metadata)
        written.append(replace_file(path.with_name(f"{path.name}.{ending}"), buffer.getvalue()))
    return written
