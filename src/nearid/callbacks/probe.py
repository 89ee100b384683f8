"""Shared by the callbacks: run the model in training on fixed inputs and compare its features with another run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import nn

from nearid.arrays import Rows, open_rows
from nearid.arrays.formats.layers import LayerRows
from nearid.arrays.memory import is_a
from nearid.arrays.names import not_found
from nearid.base.errors import InputError
from nearid.base.options import at_least
from nearid.questions.compare.run import compare
from nearid.questions.extract.network import Network
from nearid.questions.extract.run import extract


class Probe:
    """Fixed inputs together with the features that a reference run gives them.

    Parameters
    ----------
    reference : Extraction, array, tensor, DataFrame, file, FILE:ENTRY or FOLDER:LAYER
        Features of the reference run. Rows are paired by id if both sides have ids, by position otherwise. The index of
        a DataFrame holds its ids. Inputs without ids are numbered from 0. Of an extraction, nearid uses `layer`, or its
        only layer.
    inputs : anything `extract` takes as data
        The inputs of the reference run: texts, pictures, arrays or a file, in the same order or with the same ids.
    layer : str
        Layer of the model in training whose features are compared, named as in `extract`.
    part : str, optional
        Module inside the model that runs on the inputs. Default: the whole model.
    folds : int, default=5
        Number of folds for held-out rows.
    blocks : str, path or array of shape (n,), optional
        Rows that belong together, such as the tokens of a text. Folds hold out whole blocks. A column of the reference,
        a file with one label for each row of the probe, or the labels themselves. Default: with pool="tokens", the
        rows of one input are a block.
    **options
        Options of `extract`, such as pool, batch_size, tokenizer, mean and std.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> from torch import nn
    >>> from nearid.callbacks.probe import Probe
    >>> inputs = np.random.default_rng(0).normal(size=(200, 3))
    >>> finished = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    >>> probe = Probe(nearid.extract(finished, inputs), inputs, layer="2")
    >>> round(probe.measure(finished)["rigid_error"], 3)
    0.0
    """

    def __init__(
        self,
        reference: Any,
        inputs: Any,
        *,
        layer: str,
        part: str | None = None,
        folds: int = 5,
        blocks: Any = None,
        **options: Any,
    ) -> None:
        if isinstance(inputs, Iterator):
            raise InputError(
                "The inputs of a probe are read at every measurement. Give arrays, a file or a loader, not an iterator."
            )
        self._reference = _reference(reference, layer)
        self._inputs, self._layer, self._part, self._folds = inputs, layer, part, folds
        self._blocks, self._options = blocks, options

    def measure(self, model: nn.Module) -> dict[str, float]:
        """Held-out errors over the reference's diameter, and R2, for each group of the ladder.

        The state of the model and of torch's random numbers is restored afterwards, so training is not affected.

        Parameters
        ----------
        model : torch.nn.Module
            The model in training.

        Returns
        -------
        dict of str to float
            "rigid_error", "rigid_r2" and so on. Lower errors are closer; 0 is the same representation.
        """
        # No hash of the weights: it is not needed and would be slow at each measurement.
        network = Network(self._module(model), type(model).__name__, hashed=False)
        with torch.random.fork_rng(devices=_devices(model)):
            layers = extract(network, self._inputs, layers=[self._layer], **self._options)
        if len(layers) != 1:
            raise InputError(
                f"{self._layer} matches {len(layers)} layers: {', '.join(layers)}. Give one of them as `layer`."
            )
        (rows,) = layers.values()
        groups = compare(rows, self._reference, folds=self._folds, permutations=1, blocks=self._blocks).groups
        errors = {f"{name}_error": group.epsilon.value for name, group in groups.items()}
        return {**errors, **{f"{name}_r2": group.r2.value for name, group in groups.items()}}

    def try_measure(self, model: nn.Module) -> dict[str, float]:
        """The same as `measure`; if it fails, as after divergence, a warning and an empty dict: training continues.

        Parameters
        ----------
        model : torch.nn.Module
            The model in training.

        Returns
        -------
        dict of str to float
        """
        try:
            return self.measure(model)
        except InputError as error:
            warnings.warn(f"nearid could not measure at this step: {error}", stacklevel=2)
            return {}

    def _module(self, model: nn.Module) -> nn.Module:
        if self._part is None:
            return model
        try:
            return model.get_submodule(self._part)
        except AttributeError:
            raise InputError(
                f"{type(model).__name__} has no module {self._part!r}, which was given as `part` of the probe."
            ) from None


class Look:
    """Measurements of a run in training: before the first step, every few steps and at the end, once per step."""

    def __init__(self, probe: Probe, every: int, prefix: str) -> None:
        self._probe, self._every, self._prefix = probe, at_least("every", every, 1), prefix
        self._last = -1

    def __call__(self, model: nn.Module, step: int, when: Literal["start", "step", "end"]) -> dict[str, float]:
        """Values under the names that loggers show; empty if this step is not measured or the measurement failed.

        A probe that does not fit the model is an error at the start. Later failures are warnings.
        """
        if when != "start" and (step == self._last or (when == "step" and step % self._every)):
            return {}
        self._last = step
        values = self._probe.measure(model) if when == "start" else self._probe.try_measure(model)
        return {f"{self._prefix}/{name}": value for name, value in values.items()}


def _reference(given: Any, layer: str) -> Rows:
    if isinstance(given, LayerRows):
        if len(given) == 1:
            return next(iter(given.values()))
        if layer not in given:
            raise not_found("The reference", "layer", layer, given)
        return given[layer]
    if is_a(given, "pandas", "DataFrame"):
        # The rows of the probe always have ids, so that even an index that only counts must be paired with them.
        return open_rows(given, ids=given.index, name="reference")
    own = isinstance(given, str | os.PathLike | Rows)
    return open_rows(given, name=None if own else "reference")


def _devices(model: nn.Module) -> list[torch.device]:
    return [d for d in {p.device for p in model.parameters()} if d.type == "cuda"]
