"""Layers by name: parts of their outputs, the default choice, and the files that layers are written to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from torch import nn

from nearid.base.errors import InputError

# The model itself, whose output can be taken like that of a layer.
WHOLE = "output"
# What transformers models return on request, one for the embeddings and one for each block.
HIDDEN = "hidden_states"
# Modules that only hold others; what they hold are the layers.
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
# Names that a folder needs for itself.
RESERVED = ("ids", "extraction", "progress")
LONGEST = 120


def split_part(pattern: str) -> tuple[str, str | None]:
    """A pattern and the part of the output that is meant, as in lstm:1.0 or output:pooler_output."""
    layer, colon, part = pattern.partition(":")
    if colon and not (layer and part):
        raise InputError(f"{pattern!r} names no part of an output: write layer:part, such as output:pooler_output.")
    return layer, part or None


def blocks(model: nn.Module) -> Iterator[str]:
    """Names of the modules that a model is built of: its children, with containers replaced by what they hold."""
    if isinstance(model, CONTAINERS) and not any(model.children()):
        return
    for name, child in model.named_children():
        if isinstance(child, CONTAINERS):
            yield from (f"{name}.{inner}" for inner in blocks(child))
        else:
            yield name


def file_stems(layers: Iterable[str]) -> dict[str, str]:
    """A file name without suffix for each layer: the layer's own, as far as all file systems allow."""
    stems: dict[str, str] = {}
    taken = set(RESERVED)
    for layer in layers:
        plain = re.sub(r"[^A-Za-z0-9._#-]+", "_", layer).lstrip(".")[:LONGEST] or "layer"
        stem, count = plain, 1
        # Some file systems do not tell upper from lower case.
        while stem.lower() in taken:
            count += 1
            stem = f"{plain}_{count}"
        taken.add(stem.lower())
        stems[layer] = stem
    return stems
