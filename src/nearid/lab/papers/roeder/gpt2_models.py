"""Pretrained language models as the user names them: by comma, each a folder or a name on the hub.

A cell must not be taken up again once a folder holds something else. So a folder is named in the parameters of its cell
with a digest after it, FOLDER@DIGEST. What is on the hub goes by its name.
"""

from __future__ import annotations

import hashlib
import os
import re
from importlib.util import find_spec
from pathlib import Path

from nearid.arrays.formats.layers import MANIFEST, Extraction, is_extraction, read_manifest
from nearid.base.errors import InputError
from nearid.base.files import local_path

KEYED = re.compile(r"(.+)@([0-9a-f]{16})")
STATE = re.compile(r"hidden_states\.(\d+)")
ON_HUB = re.compile(r"[\w.-]+(/[\w.-]+)?")


def named(models: str) -> list[str]:
    """The models, without digests; refused where there are fewer than two, or one twice."""
    parts = [part.strip() for part in models.split(",") if part.strip()]
    names = [found[1] if (found := KEYED.fullmatch(part)) else part for part in parts]
    if len(names) < 2:
        told = "names one" if names else "names none"
        raise InputError(f"At least two pretrained models are compared, but models={models!r} {told}.")
    places = [os.path.abspath(local_path(name)) for name in names]
    twice = [name for name, place in zip(names, places, strict=True) if places.count(place) > 1]
    if twice:
        raise InputError(f"The model {twice[0]} is named twice in models={models!r}: it agrees with itself.")
    return names


def keyed(models: str) -> dict[str, str]:
    """What a cell is told instead: folders in full, with a digest of what they hold; nothing where there are none."""
    if any(KEYED.fullmatch(part.strip()) for part in models.split(",")):
        raise InputError(f"Folders are named without a digest, not models={models!r}.")
    names = named(models)
    told = [_keyed(name) for name in names]
    return {} if told == names else {"models": ",".join(told)}


def _keyed(name: str) -> str:
    folder = local_path(name)
    return f"{os.path.abspath(folder)}@{_digest(folder)}" if folder.is_dir() else name


def _digest(folder: Path) -> str:
    """Of an extraction what it says of model and data, their hashes among it; else of the files and their times."""
    if is_extraction(folder):
        told = read_manifest(folder)
        if told["model"].get("sha256") and told.get("data", {}).get("sha256"):
            return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()[:16]
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    states = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]


def extracted(models: str) -> bool:
    """Whether hidden states of any model are given: those of the sentences they were made of, whatever the seed."""
    return any(is_extraction(local_path(name)) for name in named(models))


def check_models(models: str, before_last: tuple[int, ...], least: int) -> None:
    """Refuse models that cannot be compared, as far as that can be told without loading them.

    Parameters
    ----------
    models : str
    before_last : tuple of int
        Layers that are compared, counted back from the last.
    least : int
        The least width of a model.
    """
    for name in named(models):
        folder = local_path(name)
        if is_extraction(folder):
            held = Extraction.open(folder)
            for back in before_last:
                layer = layer_before(name, held, back)
                if held[layer].shape[1] < least:
                    raise InputError(too_narrow(f"{name}:{layer}", held[layer].shape[1], least))
        elif not folder.is_dir() and not ON_HUB.fullmatch(name):
            raise InputError(f"The model {name} is neither a folder that is here nor a name on the hub such as gpt2.")
        elif find_spec("transformers") is None:
            raise InputError("Pretrained models need the library transformers: pip install 'nearid[hf]'.")


def layer_before(name: str, held: Extraction, back: int) -> str:
    """The hidden state by its place before the last, where all of them are in the extraction, or those asked for."""
    numbers = [int(found[1]) for layer in held if (found := STATE.fullmatch(layer))]
    wanted = f"hidden_states.{max(numbers) - back}" if numbers else ""
    if wanted not in held:
        raise InputError(
            f"{name} has no hidden state {back} before its last; it has {', '.join(held)}. Extract with "
            "layers='hidden_states.*' and pool='tokens'."
        )
    return wanted


def too_narrow(name: str, width: int, least: int) -> str:
    """What is said of a model with fewer coordinates than are compared."""
    return f"{name} has {width} coordinates, but the {least} leading components are compared: it needs as many."
