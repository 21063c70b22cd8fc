"""The committed policy: weights, tokenizer and the hash that says they are the right ones."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from ..errors import WorkbenchError
from ..runs import project_root

COMMITTED = Path(__file__).resolve().parents[3] / "data" / "policy"
WEIGHTS, MANIFEST = "model.safetensors", "manifest.json"
DTYPES = ("float32", "bfloat16")
_PLAIN_TOKENIZERS = ("PreTrainedTokenizerFast", "TokenizersBackend")


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def save_policy(folder: Path | str, model, tokenizer, recipe: dict) -> str:
    """Write a policy folder, complete or not at all; returns the weights' SHA-256.

    ``recipe`` (settings, hashes of corpus and questions, seed) goes into ``manifest.json``.
    Files of the folder that a policy does not consist of (its log, its card) are kept.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=folder.name) as temporary:
        part = Path(temporary) / "policy"
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        digest = file_hash(part / WEIGHTS)
        manifest = {"weights_sha256": digest, "recipe": recipe}
        text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
        (part / MANIFEST).write_text(text, encoding="utf-8")
        if folder.exists():
            for kept in folder.iterdir():
                if not (part / kept.name).exists():
                    shutil.move(kept, part / kept.name)
            shutil.rmtree(folder)
        os.replace(part, folder)
    return digest


def load_policy(folder: Path | str = COMMITTED, dtype: str = "float32"):
    """``(model, tokenizer)`` of a policy folder or a hub id, the model in eval mode.

    A relative folder is looked up under the project root. ``dtype`` is "float32" or
    "bfloat16". A folder with a ``manifest.json`` must hold the weights that its manifest names.

    Raises
    ------
    WorkbenchError
        the dtype is unknown, a file is missing or not what it should be, or the weights' hash
        is another one.
    """
    if dtype not in DTYPES:
        raise WorkbenchError(f"unknown dtype {dtype!r}", where="dtype", fix=f"one of {DTYPES}")
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    local = project_root() / folder  # an absolute folder stays what it is
    folder = local if local.is_dir() else folder
    if local.is_dir() and (local / MANIFEST).is_file():
        check_weights(local)
    elif Path(folder).is_absolute() or local.parent.is_dir() or "/" not in str(folder):
        if not (local / "config.json").is_file():
            raise WorkbenchError(
                "no policy here",
                where=folder,
                fix="run make policy, or name a folder in the transformers layout",
            )
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
        tokenizer = load_tokenizer(folder)
    except (OSError, ValueError, SafetensorError) as error:
        raise WorkbenchError(
            f"transformers cannot load this policy: {error}",
            where=folder,
            fix="make the folder complete (config, weights, tokenizer)"
            if local.is_dir()
            else "check the hub id, and that the hub can be reached (machine.offline)",
        ) from error
    return model.eval(), tokenizer


def load_tokenizer(folder: Path | str):
    """The tokenizer of a policy folder (a relative one under the project root) or hub id.

    A tokenizer that is nothing but its ``tokenizer.json`` is loaded as that: AutoTokenizer
    (transformers 5) would rebuild it with the pieces of the model family's own.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    local = project_root() / folder
    folder = local if local.is_dir() else folder
    settings = Path(folder) / "tokenizer_config.json"
    if settings.is_file():
        if json.loads(settings.read_text()).get("tokenizer_class") in _PLAIN_TOKENIZERS:
            return PreTrainedTokenizerFast.from_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def check_weights(folder: Path) -> str:
    """Compare the weights' hash with the manifest; returns it.

    Raises
    ------
    WorkbenchError
        the weights are missing, the manifest is none, or the hash is another one.
    """
    manifest, weights = folder / MANIFEST, folder / WEIGHTS
    if not weights.is_file():
        raise WorkbenchError("the weights are missing", where=weights, fix="run make policy")
    try:
        expected = json.loads(manifest.read_text(encoding="utf-8"))["weights_sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise WorkbenchError(
            f"not a policy manifest: {error!r}",
            where=manifest,
            fix="restore data/policy from version control, or rebuild it with make policy",
        ) from error
    found = file_hash(weights)
    if found != expected:
        raise WorkbenchError(
            f"the weights hash to {found[:12]}, the manifest says {expected[:12]}",
            where=weights,
            fix="restore data/policy from version control, or rebuild it with make policy",
        )
    return found
