"""Names of models: a factory, a file, a folder or a name on the hub; checked before torch is loaded."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from nearid.arrays.formats.registry import format_of, suffixes
from nearid.arrays.names import few, is_exact, nearest, split_part
from nearid.arrays.paths import open_contents
from nearid.base.errors import InputError, near_names
from nearid.base.files import local_path

ONNX = ".onnx"
# Output of transformers models on request: one for the embeddings and one for each block.
HIDDEN = "hidden_states"
# Size limit of a configuration or list of files; real ones are smaller.
MOST_BYTES = 64 << 20


class Given(NamedTuple):
    """A model by its name."""

    kind: Literal["factory", "weights", "onnx", "folder", "hub"]
    text: str
    place: Path


def given_model(
    model: str | os.PathLike[str],
    *,
    factory: str | None = None,
    prefix: str | None = None,
    revision: str | None = None,
    decoder: bool = False,
) -> Given:
    """Return what a name refers to; raise an error if it does not exist or if options do not apply to it.

    Parameters
    ----------
    decoder : bool
        Whether weights of known decoders need no factory.
    """
    text, place = os.fspath(model), local_path(model)
    if is_factory(text):
        if factory is not None or prefix is not None:
            raise InputError(f"{text} is already a factory. The options factory and prefix are for a file of weights.")
        refuse_factory(text)
        kind: Literal["factory", "weights", "onnx", "folder", "hub"] = "factory"
    elif holds_weights(place):
        if not place.is_file():
            raise InputError(
                f"There is no file {place}; give weights ({weights_suffixes()}) or package.module:function."
            )
        if factory is None and not decoder:
            raise InputError(
                f"{place.name} contains only weights. Name the function that makes the module: factory (--factory) "
                "package.module:function."
            )
        if factory is not None:
            refuse_factory(factory)
        kind = "weights"
    else:
        if factory or prefix:
            raise InputError(
                f"The options factory and prefix are for a file of weights ({weights_suffixes()}), not for {text}."
            )
        if decoder and not place.exists():
            raise InputError(
                f"There is no file {place}; give weights ({weights_suffixes()}) or package.module:function."
            )
        if decoder:
            raise InputError(f"{place.name} is not a file of weights: {weights_suffixes()} are expected.")
        kind = _file_folder_or_hub(text, place)
    if revision and kind not in ("folder", "hub"):
        raise InputError("The option revision is for a transformers model, not for a file of weights.")
    return Given(kind, text, place)


def _file_folder_or_hub(text: str, place: Path) -> Literal["onnx", "folder", "hub"]:
    if place.suffix.lower() == ONNX and not place.is_dir():
        if not place.is_file():
            raise InputError(f"There is no ONNX file {place}.")
        return "onnx"
    if place.is_file():
        raise InputError(f"{place.name} is not a file of weights: {weights_suffixes()} or {ONNX} are expected.")
    if place.is_dir() and not (place / "config.json").is_file():
        raise InputError(f"{place} is not the folder of a transformers model: it has no config.json.")
    if not place.exists() and (text.startswith((".", "/", "~")) or text.count("/") > 1):
        raise InputError(f"There is no file or folder {text}.{_near_folders(place)}")
    # The hub takes 20 seconds and more to say that it does not know a mistyped folder.
    if not place.exists() and (hint := _near_folders(place)):
        raise InputError(f"There is no folder {text}.{hint} A model on the hub has the name OWNER/MODEL.")
    if find_spec("transformers") is None:
        raise InputError(
            f"{text} looks like the name of a transformers model, which needs this library: pip install 'nearid[hf]'. "
            f"To use a file of weights, give its name; to use a function, give package.module:function."
        )
    return "folder" if place.is_dir() else "hub"


def _near_folders(place: Path) -> str:
    """A question that names the folders of models beside a place whose names are nearly the same; empty for none."""
    try:
        beside = [entry.name for entry in place.parent.iterdir() if (entry / "config.json").is_file()]
    except OSError:
        return ""
    near = near_names(place.name, beside, cutoff=0.8)
    if near:
        return f" Did you mean {' or '.join(str(place.parent / name) for name in near)}?"
    # OWNER/MODEL of the hub is not meant if the folder OWNER holds models.
    return f" Models in {place.parent}: {few(beside)}." if beside and place.parent != Path() else ""


def is_factory(model: str) -> bool:
    """Whether a text names a function to import, as package.module:function, rather than a file."""
    return ":" in model and not os.path.exists(model) and not holds_weights(Path(model))


def refuse_factory(factory: str) -> None:
    """Refuse a name that is not a function, and a missing package; nothing is imported."""
    name, _, attribute = factory.partition(":")
    if not name or not attribute:
        raise InputError(f"The factory {factory!r} must have the form package.module:function.")
    # Like `python -m`, but at the end, so that a file in this folder does not shadow an installed package.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    package = name.partition(".")[0]
    if package and package not in sys.modules and find_spec(package) is None:
        raise InputError(
            f"The factory {factory} cannot be imported: ModuleNotFoundError: No module named {package!r}. Run nearid "
            "in the folder that holds it, or install it."
        )


def holds_weights(path: Path) -> bool:
    """Whether files with this suffix may contain the weights of a module."""
    known = format_of(path)
    return known is not None and known.weights


def weights_suffixes() -> str:
    """Suffixes of files of weights, for messages."""
    return ", ".join(suffixes("weights"))


def refuse_layers(given: Given, patterns: Iterable[str] | None) -> None:
    """Refuse numbered layers that a transformers folder does not have, by its configuration and weights."""
    if given.kind != "folder":
        return
    names = _weights_of(given.place)
    states = _loaded(given.place / "config.json").get("num_hidden_layers")
    for pattern in patterns or ():
        layer, _ = split_part(pattern)
        parts = layer.split(".")
        if parts[0] == HIDDEN and len(parts) == 2 and parts[1].isdecimal():
            if isinstance(states, int) and int(parts[1]) > states:
                raise InputError(
                    f"The model has nothing named {layer!r} (given as layers). Its hidden states are {HIDDEN}.0 (the "
                    f"embeddings) to {HIDDEN}.{states}."
                )
        elif is_exact(layer):
            _refuse_number(layer, parts, names)


def refuse_length(given: Given, wanted: int | None, *, own: bool) -> None:
    """Refuse more tokens than a folder's configuration allows, before its model is loaded.

    Parameters
    ----------
    own : bool
        Whether the tokeniser comes from the folder.
    """
    if wanted is None or given.kind not in ("folder", "onnx"):
        return
    folder = given.place if given.kind == "folder" else given.place.parent
    limits = [_loaded(folder / "tokenizer_config.json").get("model_max_length")] if own else []
    if given.kind == "folder":
        limits.append(_loaded(folder / "config.json").get("max_position_embeddings"))
    most = min((limit for limit in limits if isinstance(limit, int | float) and limit >= 1), default=wanted)
    if wanted > most:
        raise InputError(f"max_length is {wanted}, but {given.place.resolve().name} takes {int(most)} tokens at most.")


def _refuse_number(layer: str, parts: list[str], names: list[str]) -> None:
    """Refuse, for example, encoder.layer.9 if encoder.layer has fewer blocks.

    Other numbers may belong to modules without weights, such as activations.
    """
    for at in (at for at, part in enumerate(parts) if at and part.isdecimal()):
        before = f"{'.'.join(parts[:at])}."
        # In a checkpoint, names may begin with the name of the whole model.
        under = [name.partition(before) for name in names]
        blocks: dict[str, set[str]] = {}
        for rest in (rest for start, found, rest in under if found and re.fullmatch(r"([^.]+\.)?", start)):
            number, _, weight = rest.partition(".")
            blocks.setdefault(number, set()).add(weight)
        if parts[at] not in blocks and _are_blocks(blocks):
            near = nearest(f"{before}{parts[at]}", sorted(f"{before}{number}" for number in blocks))
            raise InputError(f"The model has nothing named {layer!r} (given as layers). {near}")


def _are_blocks(weights: dict[str, set[str]]) -> bool:
    """Whether these are several blocks, counted from 0, with modules of the same names in each."""
    first = weights.get("0", set())
    counted = weights.keys() == {str(number) for number in range(len(weights))}
    alike = all(each == first for each in weights.values())
    return len(weights) > 1 and counted and alike and any("." in weight for weight in first)


def _weights_of(folder: Path) -> list[str]:
    """Names of the weights of a folder, as far as they are known without loading the files."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return list(_loaded(index).get("weight_map") or ())
    file = folder / "model.safetensors"
    try:
        return list(open_contents(file).names) if file.is_file() else []
    except InputError:
        return []  # whoever loads it says what is wrong with it


def _loaded(path: Path) -> dict[str, Any]:
    """Content of a JSON file; empty if it is damaged (loading the model will report it)."""
    try:
        read = json.loads(path.read_text(encoding="utf-8")) if path.stat().st_size <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        read = None
    return read if isinstance(read, dict) else {}
