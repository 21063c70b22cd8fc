# The notebook graph.  src/workbench/workflow/stages.py says which notebook makes what from
# which params and inputs; here each entry becomes a rule that papermill executes.
#
#   workbench reproduce --profile tiny         this file, with locks and resuming seen to
#   snakemake --config profile=smoke -n        what would run, and why
#
# A rule reruns when the settings it uses, its code cells, a package source it imports, a data
# file or an upstream manifest changed; small files are compared by content, not by time.

import shlex
import sys

from workbench.params import load_profile
from workbench.runs import MANIFEST, file_hash, project_root
from workbench.workflow.stages import STAGES, stage

workdir: project_root()

PROFILE_NAME = str(config.get("profile", "tiny"))
OVERRIDES = config.get("overrides", [])
PROFILE = load_profile(PROFILE_NAME, OVERRIDES)


# The profile and the overrides stand in the command and not in params: what counts of them for
# a rule is in its settings hash.  Braces of an override are no wildcards.
def quoted(*arguments):
    return " ".join(map(shlex.quote, arguments)).replace("{", "{{").replace("}", "}}")


COMMAND = (
    quoted(sys.executable, "-m", "workbench.workflow.execute", PROFILE_NAME)
    + " {rule} {wildcards.key} "
    + quoted(*OVERRIDES)
)


def manifests(name):
    return [f"runs/{PROFILE.name}/{name}/{key}/{MANIFEST}" for key in stage(name).keys(PROFILE)]


rule all:
    input:
        [manifests(name) for name in PROFILE.stages],


for entry in STAGES:

    rule:
        name:
            entry.name
        input:
            upstream=lambda wildcards, entry=entry: [
                f"{folder.relative_to(project_root())}/{MANIFEST}"
                for folder in entry.upstream_runs(PROFILE, wildcards.key).values()
            ],
            sources=lambda wildcards, entry=entry: [
                path.relative_to(project_root())
                for path in entry.source_files(PROFILE, wildcards.key)
            ],
            # Its outputs are kept in it, so its code cells are compared instead.
            notebook=ancient(entry.path.relative_to(project_root())),
        output:
            manifest=f"runs/{PROFILE.name}/{entry.name}/{{key}}/{MANIFEST}",
            figures=report(
                directory(f"runs/{PROFILE.name}/{entry.name}/{{key}}/figures"),
                patterns=["{figure}.svg"],
                category="Figures",
                labels={"figure": "{figure}"},
            ) if entry.figures else [],
        log:
            notebook=f"runs/{PROFILE.name}/{entry.name}/{{key}}.ipynb",
        params:
            settings=lambda wildcards, entry=entry: entry.settings_hash(PROFILE, wildcards.key),
            code=file_hash(entry.path),
        wildcard_constraints:
            key="|".join(entry.keys(PROFILE)) or "main",
        threads: 1
        message:
            "{rule}/{wildcards.key}"
        shell:
            COMMAND
