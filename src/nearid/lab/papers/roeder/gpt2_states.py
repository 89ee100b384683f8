"""Hidden states of language models on the Penn Treebank sample, and how far two models agree in them.

The protocol of Roeder, Metz and Kingma (Fig. 4): features scaled to deviation 1, the k leading principal components of
either model, and the mean of the singular values of the product of their coordinates: SVCCA in sample. There are far
more tokens than components, so that fitting adds little, as the column with shuffled tokens shows.

Pretrained models are named by comma, each a folder or a name on the hub. A cell must not be taken up again once a
folder holds something else. So a folder is named in the parameters of its cell with a digest after it, FOLDER@DIGEST.
What is on the hub goes by its name.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nearid.arrays.formats.layers import MANIFEST, LayerRows, is_extraction, read_manifest
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.lab.data.base import Sentences
from nearid.lab.data.load import load_sentences
from nearid.measures.canonical import canonical_correlations
from nearid.moments import PairMoments

if TYPE_CHECKING:
    from nearid.arrays.formats.layers import LayerRows
    from nearid.lab.data.texts import Vocabulary
    from nearid.lab.models.gpt import GPT


KEYED = re.compile(r"(.+)@([0-9a-f]{16})")
STATE = re.compile(r"hidden_states\.(\d+)")
ON_HUB = re.compile(r"[\w.-]+(/[\w.-]+)?")

# Sentences that go through a model at a time.
BLOCK = 100
# Hidden states of one layer of a model: a row for each token.
States = NDArray[np.floating]


def agreement(first: States, second: States, ks: Sequence[int]) -> list[float]:
    """Mean canonical correlation of the k leading components of standardised features, for each k."""
    moments = PairMoments.of(first, second)
    sizes = [np.sqrt(np.diag(scatter)) for scatter in (moments.xx, moments.yy)]
    if any((size == 0).any() for size in sizes):
        raise InputError("A feature is the same for all tokens: there is nothing to compare in it.")
    scaled = moments.through(*(np.diag(1 / size) for size in sizes))
    return [float(np.mean(canonical_correlations(scaled, scaled, leading=True, k=k))) for k in ks]


def mean_agreement(states: Sequence[States], ks: Sequence[int]) -> list[float]:
    """Agreement at each k, averaged over all pairs of models; one layer of each."""
    pairs = [agreement(first, second, ks) for first, second in combinations(states, 2)]
    return [float(value) for value in np.mean(pairs, axis=0)]


# Cells of one process read the same sentences.
@lru_cache(maxsize=1)
def treebank() -> Sentences:
    """All sentences of the sample."""
    return load_sentences("treebank")


def padded(sentences: Sequence[NDArray[np.int32]], first: int, context: int) -> tuple[NDArray[np.int64], np.ndarray]:
    """Sentences as rows of one length, each after the token `first`, and which places hold a token of theirs.

    What is beyond the context is cut off.
    """
    longest = min(context, 1 + max(map(len, sentences)))
    ids, own = np.full((len(sentences), longest), first, np.int64), np.zeros((len(sentences), longest), bool)
    for row, sentence in enumerate(sentences):
        kept = sentence[: longest - 1]
        ids[row, 1 : 1 + len(kept)], own[row, 1 : 1 + len(kept)] = kept, True
    return ids, own


def states_of(model: GPT, vocabulary: Vocabulary, sentences: Sequence[Sequence[str]]) -> list[States]:
    """All hidden states of a model of this project, layer by layer from the embedding on."""
    import torch

    ids, own = padded([vocabulary.ids(s) for s in sentences], 1, model.places.num_embeddings)
    blocks: list[list[States]] = []
    with torch.no_grad():
        for start in range(0, len(ids), BLOCK):
            part = slice(start, start + BLOCK)
            kept = torch.as_tensor(own[part])
            blocks.append([h[kept].numpy() for h in model.hidden_states(torch.as_tensor(ids[part]))])
    return [np.concatenate(layer) for layer in zip(*blocks, strict=True)]


def pretrained_states(
    models: Sequence[str], sentences: Sequence[Sequence[str]], before_last: Sequence[int], folder: Path
) -> Iterator[list[States]]:
    """Hidden states of pretrained models, for each of some layers counted back from the last: one of each model.

    Parameters
    ----------
    models : sequence of str
        Folders of transformers models or names on the hub, all with one way of cutting text into tokens; or folders
        that `nearid extract --pool tokens` wrote for the same tokens.
    before_last : sequence of int
        LayerRows, 0 for the last.
    folder : Path
        Where states are kept meanwhile: those of a large model do not fit into memory.
    """
    opened = [_extraction(name, sentences, before_last, folder / f"model{k}") for k, name in enumerate(models)]
    for back in before_last:
        yield [_layer(name, held, back) for name, held in zip(models, opened, strict=True)]


def _extraction(name: str, sentences: Sequence[Sequence[str]], before_last: Sequence[int], folder: Path) -> LayerRows:
    from nearid.arrays.formats.layers import LayerRows, is_extraction
    from nearid.questions.extract.run import extract

    place = local_path(name)
    if is_extraction(place):
        return LayerRows.open(place)
    if is_extraction(folder):
        return LayerRows.open(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    ids, mask, depth = _tokens(name, sentences)
    layers = [f"hidden_states.{depth - back}" for back in before_last if back <= depth]
    return extract(
        name, {"input_ids": ids, "attention_mask": mask}, layers=layers, pool="tokens", out=folder, batch_size=16
    )


def _layer(name: str, held: LayerRows, back: int) -> States:
    rows = held[layer_before(name, held, back)]
    return rows.read(0, rows.shape[0])


def _tokens(name: str, sentences: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray, int]:
    """Tokens of a pretrained model, the mask of its padding, and its depth."""
    try:
        from transformers import AutoConfig, AutoTokenizer
    except ImportError:
        raise InputError("Pretrained models need the library transformers: pip install 'nearid[hf]'.") from None
    try:
        cut = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        depth = int(AutoConfig.from_pretrained(name, trust_remote_code=False).num_hidden_layers)
    except Exception as error:  # what is raised for a missing model or network is not documented
        told = " ".join(str(error).split())[:200].rstrip(" .")
        raise InputError(
            f"The model {name} cannot be had: {told}. Give a folder that holds it and its tokenizer, or its name on "
            "the hub where there is a network."
        ) from None
    rows: list[list[int]] = [cut(" ".join(words))["input_ids"] for words in sentences]
    ids, mask = (
        np.zeros((len(rows), max(map(len, rows))), np.int64),
        np.zeros((len(rows), max(map(len, rows))), np.int64),
    )
    for k, row in enumerate(rows):
        ids[k, : len(row)], mask[k, : len(row)] = row, 1
    return ids, mask, depth


def named(models: str) -> list[str]:
    """The models, without digests; refused where there are fewer than two, or one twice."""
    parts = [part.strip() for part in models.split(",") if part.strip()]
    names = [match[1] if (match := KEYED.fullmatch(part)) else part for part in parts]
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
    before_last : tuple of int
        LayerRows that are compared, counted back from the last.
    least : int
        The least width of a model.
    """
    for name in named(models):
        folder = local_path(name)
        if is_extraction(folder):
            held = LayerRows.open(folder)
            for back in before_last:
                layer = layer_before(name, held, back)
                if held[layer].shape[1] < least:
                    raise InputError(too_narrow(f"{name}:{layer}", held[layer].shape[1], least))
        elif not folder.is_dir() and not ON_HUB.fullmatch(name):
            raise InputError(f"The model {name} is neither a folder that is here nor a name on the hub such as gpt2.")
        elif find_spec("transformers") is None:
            raise InputError("Pretrained models need the library transformers: pip install 'nearid[hf]'.")


def layer_before(name: str, held: LayerRows, back: int) -> str:
    """The hidden state by its place before the last, where all of them are in the extraction, or those asked for."""
    numbers = [int(match[1]) for layer in held if (match := STATE.fullmatch(layer))]
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
