"""The process environment of a notebook: threads, offline hubs, silence in batch runs."""

from __future__ import annotations

import os
import sys
import warnings

from ..params.profile import MachineConfig


def machine_variables(machine: MachineConfig) -> dict[str, str]:
    """Environment variables that make a profile's machine settings hold."""
    threads = str(machine.threads)
    variables = {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "false",
    }
    if machine.offline:
        variables |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return variables


def batch_variables() -> dict[str, str]:
    """Environment variables of a run that nobody watches: no bars, no chatter."""
    return {
        "WORKBENCH_BATCH": "1",
        "TQDM_DISABLE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def interactive() -> bool:
    """Whether somebody watches: live curves and progress bars only then."""
    return "WORKBENCH_BATCH" not in os.environ


def apply(machine: MachineConfig) -> None:
    """Make the machine settings hold in this process, also when torch is loaded already."""
    os.environ.update(machine_variables(machine))
    # tqdm.auto asks for ipywidgets; its text bars do without.
    warnings.filterwarnings("ignore", message="IProgress not found")
    # peft asks transformers for a property under its old name.
    warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(machine.threads)
