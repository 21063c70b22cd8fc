"""``workbench ...``: the functions of the package from a shell.

Imports stand inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .questions.sources.command import app as questions_app

app = typer.Typer(
    help="A workbench for reinforcement learning of search agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
params_app = typer.Typer(help="Profiles and conditions.", no_args_is_help=True)
corpus_app = typer.Typer(help="The corpus of a finished run.", no_args_is_help=True)
app.add_typer(params_app, name="params")
app.add_typer(corpus_app, name="corpus")
app.add_typer(questions_app, name="questions")

ProfileOption = Annotated[
    str, typer.Option("--profile", "-p", help="A name under params/profiles, or a YAML file.")
]
SetOption = Annotated[
    list[str], typer.Option("--set", "-s", help="An override, e.g. grpo.steps=10; repeatable.")
]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def reproduce(
    context: typer.Context,
    profile: ProfileOption = "tiny",
    cores: Annotated[int, typer.Option(min=1, help="Notebooks side by side.")] = 2,
    overrides: SetOption = [],  # noqa: B006
    stage: Annotated[list[str], typer.Option(help="Only this stage and its inputs.")] = [],  # noqa: B006
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would run.")] = False,
) -> None:
    """Run the notebook graph; what is up to date is not run again.

    Further arguments go to Snakemake, e.g. --executor slurm --jobs 8.
    """
    from .errors import WorkbenchError
    from .workflow.reproduce import reproduce as run

    if context.args and not context.args[0].startswith("-"):
        raise WorkbenchError(
            f"{context.args[0]!r} is no option",
            fix=f"a profile is named --profile {context.args[0]}",
        )
    extra = (["--dry-run"] if dry_run else []) + context.args
    raise typer.Exit(run(profile, cores=cores, overrides=overrides, stages=stage, extra=extra))


@app.command()
def report(
    profile: ProfileOption = "tiny",
    out: Annotated[str, typer.Option(help="HTML file; default in build/.")] = "",
    overrides: SetOption = [],  # noqa: B006
) -> None:
    """Write the HTML report of a finished profile: figures, notebooks, run times."""
    from .runs import project_root
    from .workflow.reproduce import report as write

    target = project_root() / (out or f"build/report-{profile}.html")
    target.parent.mkdir(parents=True, exist_ok=True)
    raise typer.Exit(write(profile, str(target), overrides))


@app.command()
def publish(
    stage: Annotated[str, typer.Argument(help="The stage whose outputs are committed.")],
    profile: ProfileOption = "study",
) -> None:
    """Copy what is committed of a stage's outputs: figures/, data/policy/."""
    from .workflow.publish import publish as copy

    for folder in copy(profile, stage):
        typer.echo(folder)


@app.command()
def notebooks() -> None:
    """Copy the outputs of the smoke profile's executed notebooks into notebooks/."""
    from .workflow.refresh import refresh_notebooks

    for path in refresh_notebooks():
        typer.echo(path)


@app.command("check-notebooks")
def check_notebooks(
    paths: Annotated[list[str] | None, typer.Argument(help="Notebooks; default all.")] = None,
) -> None:
    """Execute the committed notebooks with nbval and compare their outputs.

    They read the smoke profile's runs and write to build/nbval.
    """
    from .workflow.check import check_notebooks as check

    raise typer.Exit(check(paths or []))


@corpus_app.command("search")
def corpus_search(
    queries: Annotated[list[str], typer.Argument(help="Queries, searched as one batch.")],
    profile: ProfileOption = "tiny",
    k: Annotated[int | None, typer.Option(help="Passages a query; default the profile's.")] = None,
) -> None:
    """Search the index of a profile's corpus."""
    from .corpus.store import load_corpus
    from .params import load_profile
    from .retrieval.searcher import load_searcher
    from .runs import runs_root
    from .workflow.notebook import require

    loaded = load_profile(profile)
    folder = require(runs_root() / loaded.name / "corpus" / "main", loaded.name)
    corpus = load_corpus(folder / "corpus.parquet")
    searcher = load_searcher(folder / "index", corpus, loaded.retrieval)
    for query, hits in zip(queries, searcher.search(queries, k), strict=True):
        typer.echo(f"{query!r}: {len(hits)} passages")
        for hit in hits:
            typer.echo(
                f"  {hit.score:7.3f}  {hit.chunk.chunk_id}  {hit.chunk.title}: {hit.chunk.text!r}"
            )


@params_app.command("show")
def params_show(
    profile: Annotated[str, typer.Argument(help="Profile name or file.")] = "tiny",
    overrides: SetOption = [],  # noqa: B006
) -> None:
    """Print a resolved profile as YAML."""
    from .params import dump_profile, load_profile

    typer.echo(dump_profile(load_profile(profile, overrides)), nl=False)


@params_app.command("check")
def params_check(
    profiles: Annotated[
        list[str] | None, typer.Argument(help="Profile names or files; default all.")
    ] = None,
    overrides: SetOption = [],  # noqa: B006
) -> None:
    """Validate profiles with the stages and conditions that they name, telling every fault.

    Without names: all profiles, and all conditions whether a profile names them or not.
    """
    from .errors import WorkbenchError
    from .methods.registry import condition_names, load_condition
    from .params import load_profile, profile_names
    from .workflow.stages import check_profile

    faults = 0
    for name in profiles or profile_names():
        try:
            profile = load_profile(name, overrides)
            check_profile(profile)
        except WorkbenchError as error:
            faults += 1
            typer.echo(f"error: {error}", err=True)
        else:
            sizes = f"{len(profile.conditions)} conditions, {len(profile.seeds)} seeds"
            typer.echo(f"profile {name}: {sizes}")
    for name in [] if profiles else condition_names():
        try:
            condition = load_condition(name)
        except WorkbenchError as error:
            faults += 1
            typer.echo(f"error: {error}", err=True)
        else:
            typer.echo(f"condition {name}: {condition.label}, method {condition.method}")
    raise typer.Exit(1 if faults else 0)


def main() -> None:
    """``app`` with errors told in one line instead of a traceback."""
    from .errors import WorkbenchError, outside_fault

    try:
        app()
    except WorkbenchError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except OSError as error:
        if (told := outside_fault(error)) is None:
            raise
        print(f"error: {told}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
