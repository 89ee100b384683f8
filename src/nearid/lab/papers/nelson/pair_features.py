"""Representations that pairs of networks have of the same rows: downloaded networks, and pairs trained on the spot."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.arrays import open_rows
from nearid.arrays.formats.npy import read_npy
from nearid.arrays.rows import digest
from nearid.base.errors import InputError
from nearid.base.files import replacing
from nearid.lab.data.images import Images
from nearid.lab.framework.experiment import Curve
from nearid.lab.framework.training import trained
from nearid.lab.papers.common.images import as_planes, encoded
from nearid.lab.papers.common.wikitext import wikitext
from nearid.moments import Floats

if TYPE_CHECKING:
    from torch import Tensor, nn

    from nearid.lab.models.gpt import GPT

# Hidden states that are kept of each row of tokens, at even distances.
PLACES = 4
# Times that the loss is recorded during training.
LOOKS = 20
# Of the weights, in every training here.
DECAY = 0.05


@dataclass(frozen=True)
class Budget:
    """How long, how fast and on how many rows at a time a network is trained."""

    steps: int
    rate: float
    batch: int
    device: str


@dataclass(frozen=True)
class Trained:
    """What a trained network makes of the held-out rows, and how its training went.

    Attributes
    ----------
    layers : list of ndarray
        Of a GPT: what each layer makes of them, from the embedding to the features.
    constants : list of float
        And the bi-Lipschitz constant of what follows each layer, mean over tokens.
    """

    features: Floats
    curves: dict[str, Curve]
    layers: list[Floats] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)


def held_out_pixels(count: int, seed: int) -> np.ndarray:
    """Test images of CIFAR-10 as bytes, drawn by a seed where there are more than so many."""
    from nearid.lab.data.load import load

    images = load("cifar10", split="test").images
    return images.take(_drawn(len(images), count, seed))


def resnet_features(network: str, pixels: np.ndarray) -> Floats:
    """Penultimate features of a downloaded network, of shape (n, 64); computed once and kept in the cache.

    What is kept is named by the weights, the images and how they are fed, so that no other features are ever taken for
    these; what cannot be read is computed anew.
    """
    from nearid.lab.data.cifar10_resnets import CIFAR10_RESNETS, weights_file
    from nearid.lab.data.registry import cache_folder
    from nearid.lab.models.cifar_resnet import FEATURES, MEAN, STD, load_cifar_resnet

    path = weights_file(network)
    mark = hashlib.sha256(path.read_bytes())
    mark.update(pixels.tobytes())
    mark.update(f"{FEATURES} {MEAN} {STD}".encode())
    kept = cache_folder() / CIFAR10_RESNETS.name / f"features-{network}-{len(pixels)}-{mark.hexdigest()[:16]}.npy"
    with suppress(OSError, ValueError, InputError):
        held = read_npy(kept)
        if held.shape[0] == len(pixels) and held.ndim == 2:
            return held
    from nearid.questions.extract.run import extract

    extraction = extract(load_cifar_resnet(path), pixels, layers=FEATURES, mean=MEAN, std=STD, batch_size=250)
    features = extraction[FEATURES].read(0, len(pixels))
    kept.parent.mkdir(parents=True, exist_ok=True)
    with replacing(kept) as file:
        np.save(file, features)
    return features


@dataclass(frozen=True)
class ImageModels:
    """Masked autoencoders of CIFAR-10; a representation is the mean of the patches' embeddings.

    Attributes
    ----------
    pixels : ndarray of shape (n, 32, 32, 3)
        Held-out images as bytes.
    width, depth : int
        Of the encoder.
    """

    pixels: np.ndarray
    width: int
    depth: int
    budget: Budget

    @cached_property
    def images(self) -> Images:
        """Those that are trained on."""
        from nearid.lab.data.load import load

        return load("cifar10", split="train").images

    def learn(self, seed: int, folder: Path) -> Trained:
        """Train a network from a seed, which draws its start, its batches and what is masked."""
        from nearid.lab.models.autoencoders.masked import MaskedAutoencoder

        images = self.images

        def batches(rng: np.random.Generator) -> tuple[Floats]:
            return (as_planes(images.take(rng.integers(0, len(images), self.budget.batch))),)

        def make() -> MaskedAutoencoder:
            return MaskedAutoencoder(3, images.shape[1], width=self.width, depth=self.depth)

        model, curves = _trained(make, batches, self.budget, seed, folder)
        return Trained(_seen(model.encode, as_planes(self.pixels), model), curves)


@dataclass(frozen=True)
class TextModels:
    """Small GPTs of WikiText-2; a representation is the hidden state at a token that the output embedding reads.

    Attributes
    ----------
    held_out : int
        Tokens of test text, at most.
    seed : int
        Draws these tokens.
    points : int
        Tokens at which constants of layers are measured.
    """

    held_out: int
    seed: int
    vocabulary: int
    context: int
    width: int
    depth: int
    budget: Budget
    points: int = 200

    @cached_property
    def tokens(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Numbers of the words to train on, held-out rows of such numbers, and the size of the vocabulary."""
        text = wikitext("train", self.vocabulary)
        seen, unseen = text.learnt.astype(np.int64), text.unseen.astype(np.int64)
        rows = unseen[: len(unseen) // self.context * self.context].reshape(-1, self.context)
        return seen, rows[_drawn(len(rows), self.held_out // PLACES, self.seed)], len(text.vocabulary)

    def learn(self, seed: int, folder: Path) -> Trained:
        """Train a network from a seed, which draws its start and its batches."""
        import torch

        from nearid.lab.models.gpt import GPT

        stream, rows, size = self.tokens
        # One token more than is read: the last is only told.
        places = np.arange(self.context + 1)

        def batches(rng: np.random.Generator) -> tuple[np.ndarray]:
            return (stream[rng.integers(0, len(stream) - self.context, (self.budget.batch, 1)) + places],)

        def make() -> GPT:
            return GPT(size, self.width, self.depth, heads=4, context=self.context)

        model, curves = _trained(make, batches, self.budget, seed, folder)
        step = self.context // PLACES

        def states(ids: Tensor) -> Tensor:
            kept = [state[:, step - 1 :: step][:, :PLACES].flatten(0, 1) for state in model.hidden_states(ids)]
            return torch.stack(kept, dim=1)

        layers = list(_seen(states, rows, model).transpose(1, 0, 2))
        some = rows[np.random.default_rng(self.seed).permutation(len(rows))[: self.points]]
        # After the final norm: the theory is of the representation that is mapped linearly to the loss.
        return Trained(layers[-1], curves, layers, following_constants(model, some))


def following_constants(model: GPT, rows: np.ndarray) -> list[float]:
    """Bi-Lipschitz constant of the map from each hidden state of a GPT to the last one, mean over rows of tokens.

    At the last token of each row, with the states of all others fixed, under the best global scale. The final norm
    takes away the length and the mean of a state: the two directions at each point that it removes are left out.
    """
    import torch

    from nearid.geometry.constants import Constants

    ids = torch.as_tensor(rows, device=next(model.parameters()).device)
    with torch.no_grad():
        states = model.hidden_states(ids)
    constants = []
    for layer, state in enumerate(states[:-1]):
        own = state[:, -1:].clone().requires_grad_()
        whole = torch.cat([state[:, :-1], own], dim=1)
        for block in model.blocks[layer:]:
            whole = block(whole)
        last = model.norm(whole[:, -1])
        # A coordinate of all rows at a time: no row has a part in another.
        gradients = [torch.autograd.grad(column.sum(), own, retain_graph=True)[0][:, 0] for column in last.T]
        values = torch.linalg.svdvals(torch.stack(gradients, dim=1).double()).cpu().numpy()
        constants.append(float(Constants.of(values[:, -3], values[:, 0]).scaled.mean))
    # The last hidden state itself.
    return [*constants, 1.0]


def files_of(given: str) -> tuple[str, str]:
    """Two files of features, as FIRST,SECOND."""
    first, _, second = (part.strip() for part in given.partition(","))
    if not first or not second or "," in second:
        raise InputError(
            f"Two files of features are expected, by comma: FIRST.npy,SECOND.npy, not {given!r}. nearid extract makes "
            "such files."
        )
    return first, second


def stamped(given: str) -> str:
    """Two files of features and digests of what they hold, so that results of others are not taken for theirs."""
    paths = [os.path.abspath(os.path.expanduser(path)) for path in files_of(given)]
    return ",".join((*paths, *(digest(open_rows(path)) for path in paths)))


def _trained(
    make: Callable[[], Any], batches: Callable[[np.random.Generator], Any], budget: Budget, seed: int, folder: Path
) -> tuple[Any, dict[str, Curve]]:
    from nearid.lab.models.trainer import seeded

    with seeded(seed):
        model: nn.Module = make()
    options: dict[str, Any] = {"optimiser": "adamw", "weight_decay": DECAY, "warmup": budget.steps // 20}
    curves = trained(model, batches, budget, seed, folder, looks=LOOKS, **options)
    return model.eval(), curves


def _seen(encode: Callable[[Tensor], Tensor], rows: np.ndarray, model: nn.Module) -> Floats:
    return encoded(encode, rows, next(model.parameters()).device)


def _drawn(there: int, wanted: int, seed: int) -> np.ndarray:
    """Places of so many rows, in order; all where there are no more."""
    if there <= wanted:
        return np.arange(there)
    return np.sort(np.random.default_rng(seed).choice(there, wanted, replace=False))
