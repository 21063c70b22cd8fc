"""``workbench questions ...``: question graphs from KILT and Wikidata, and checks of item files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Question graphs from files outside this repository.", no_args_is_help=True)

PARAMS = "params/questions/kilt-wikidata.yaml"


@app.command()
def build(
    kilt: Annotated[Path, typer.Argument(help="kilt_knowledgesource.json, also .gz or .bz2.")],
    dump: Annotated[Path, typer.Argument(help="Wikidata truthy dump: .nt, .nt.gz or .nt.bz2.")],
    out: Annotated[Path, typer.Option(help="Folder of the result and of the work file.")],
    params: Annotated[str, typer.Option(help=f"YAML file; default {PARAMS}.")] = "",
    overrides: Annotated[
        list[str], typer.Option("--set", "-s", help="An override, e.g. seed=1; repeatable.")
    ] = [],  # noqa: B006
) -> None:
    """Build questions and chunks; given again, it goes on where it was stopped.

    Writes items.jsonl, chunks.parquet, report.json and refused.jsonl.
    """
    from ...params.validate import validate
    from ...params.yamlfile import parse_override, read_yaml
    from ...runs import project_root
    from .build import build as run
    from .settings import SourceConfig

    document = read_yaml(Path(params) if params else project_root() / PARAMS)
    for text in overrides:
        document = document.merged(parse_override(text))
    report = run(kilt, dump, out, validate(SourceConfig, document))
    for split, counts in report["questions"].items():
        typer.echo(f"{split}: {sum(counts.values())} questions in {len(counts)} categories")
    for refused in report["refused"]:
        typer.echo(f"refused ({refused['stage']}): {refused['reason']}: {refused['records']}")
    for reason, count in report["excluded"].items():
        typer.echo(f"excluded graphs: {reason}: {count}")
    for short in report["short"]:
        typer.echo("short: {split}, {category}, {evidence}: {found} of {wanted}".format(**short))
    for name, read in report["read"].items():
        if read["broken"]:
            typer.echo(f"incomplete: {name}: {read['broken']}")
    typer.echo(f"{out}: {report['chunks']} chunks")


@app.command()
def check(
    items: Annotated[Path, typer.Argument(help="Items as JSON lines.")],
) -> None:
    """Say which graphs of an item file cannot be used, and why."""
    from ..store import load_usable

    kept, refused = load_usable(items)
    for reason, ids in sorted(refused.items()):
        typer.echo(f"{reason}: {len(ids)}")
        for name in ids:
            typer.echo(f"  {name}")
    typer.echo(f"{len(kept)} of {len(kept) + sum(map(len, refused.values()))} items can be used")
    raise typer.Exit(bool(refused))
