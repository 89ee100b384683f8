"""The model to run: a module, weights with a factory, or a transformers model; how it is called and what it is."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nearid.arrays.memory import is_a
from nearid.arrays.open import file_suffix
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.questions.extract.digest import byte_view
from nearid.questions.extract.weights import SAVED, is_factory, load_module

Inputs = Tensor | dict[str, Tensor]


@dataclass(frozen=True)
class Network:
    """A model that is ready to run.

    Attributes
    ----------
    module : Module
    name : str
        What people are shown.
    notes : tuple of str
        Sentences worth telling the user.
    hashed : bool
        Whether the provenance tells the hash of the weights, all of which are read for it.
    """

    module: nn.Module
    name: str
    notes: tuple[str, ...] = ()
    hashed: bool = True

    @property
    def pretrained(self) -> bool:
        """Whether this is a transformers model, which takes named inputs and returns hidden states."""
        return is_a(self.module, "transformers", "PreTrainedModel")

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights, which inputs of floats are brought to."""
        floats = (p.dtype for p in self.module.parameters() if p.dtype.is_floating_point)
        return next(floats, torch.float32)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next((p.device for p in self.module.parameters()), torch.device("cpu"))

    def main_input(self) -> str | None:
        """Name of the argument that a single array is for; None where a plain module does not tell."""
        if self.pretrained:
            return str(self.module.main_input_name)
        try:
            return next(iter(inspect.signature(self.module.forward).parameters), None)
        except (TypeError, ValueError):  # compiled code has no signature
            return None

    def call(self, inputs: Inputs) -> Any:
        """One forward pass."""
        if not self.pretrained:
            return self.module(**inputs) if isinstance(inputs, dict) else self.module(inputs)
        from nearid.questions.extract.pretrained import options

        named = inputs if isinstance(inputs, dict) else {str(self.main_input()): inputs}
        return self.module(**named, **options(self.module, named))

    @contextmanager
    def evaluating(self, device: torch.device) -> Iterator[None]:
        """The module on a device, in evaluation mode and without gradients; all as it was afterwards."""
        modes = [(module, module.training) for module in self.module.modules()]
        home = self.device
        try:
            self.module.eval()
            if device != home:
                self.module.to(device)
            # Not inference mode: its tensors break modules that keep buffers of what they saw.
            with torch.no_grad(), self._whole():
                yield
        finally:
            if device != home:
                self.module.to(home)
            for module, mode in modes:
                module.training = mode

    def _whole(self) -> AbstractContextManager[None]:
        if not self.pretrained:
            return nullcontext()
        from nearid.questions.extract.pretrained import seeing_all

        return seeing_all(self.module)

    def about(self) -> dict[str, Any]:
        """Name, class, size and hash of the model."""
        kind = type(self.module)
        return {
            "name": self.name,
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "parameters": sum(p.numel() for p in self.module.parameters()),
            "sha256": self.fingerprint() if self.hashed else None,
        }

    def fingerprint(self) -> str:
        """SHA-256 of the architecture as it prints itself, of its configuration, and of every weight and buffer."""
        digest = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", repr(self.module)).encode())
        if self.pretrained:
            from nearid.questions.extract.pretrained import configuration

            digest.update(configuration(self.module).encode())
        for name, tensor in sorted(self.module.state_dict().items()):
            if not isinstance(tensor, Tensor):
                continue
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(byte_view(tensor))
        return digest.hexdigest()


def open_network(
    model: Any, *, factory: str | None = None, prefix: str | None = None, revision: str | None = None
) -> Network:
    """A model given as a module, a file of weights, a factory, a transformers folder or a name on the hub."""
    if isinstance(model, Network):
        return model
    if isinstance(model, nn.Module):
        if factory or prefix or revision:
            raise InputError("A factory, a prefix or a revision belongs to a model that is loaded, not to a module.")
        return Network(model, type(model).__name__)
    if not isinstance(model, str | os.PathLike):
        raise InputError(
            f"A model is a torch module, a file of weights, package.module:function, or a transformers folder or name; "
            f"a {type(model).__name__} was given."
        )
    text, place = os.fspath(model), local_path(model)
    if is_factory(text) or file_suffix(place) in SAVED:
        if revision:
            raise InputError("A revision belongs to a transformers model, not to a file of weights.")
        found = load_module(text if is_factory(text) else str(place), factory=factory, prefix=prefix)
        return Network(found, text if is_factory(text) else place.name)
    if factory or prefix:
        raise InputError(f"A factory or a prefix belongs to a file of weights ({', '.join(SAVED)}), not to {text}.")
    if place.is_file():
        raise InputError(f"{place.name} is no file of weights: {', '.join(SAVED)} are expected.")
    from nearid.questions.extract.pretrained import load_pretrained

    module, notes = load_pretrained(text, place, revision)
    # Of a folder the name alone, wherever it lies.
    return Network(module, place.resolve().name if place.is_dir() else text, notes)
