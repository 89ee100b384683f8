"""The model to run: a module, weights with a factory, or a transformers model; its call and its identity."""

import hashlib
import inspect
import json
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nearid.arrays.memory import is_a
from nearid.arrays.names import few
from nearid.base.alerts import Alert
from nearid.base.errors import InputError, type_of
from nearid.questions.extract.batches import MASK, byte_view
from nearid.questions.extract.given import Given, given_model
from nearid.questions.extract.onnx_graph import open_graph
from nearid.questions.extract.onnx_network import OnnxNetwork
from nearid.questions.extract.pooling import Pooler
from nearid.questions.extract.taps import Taps
from nearid.questions.extract.users_code import same_draws
from nearid.questions.extract.weights import load_module

Inputs = Tensor | dict[str, Tensor]
# A head on top of the hidden states, which checkpoints of other tasks do not have.
SPARE = "pooler."
# Entries of a configuration that change when a model is saved and loaded.
ORIGIN = ("architectures", "transformers_version", "dtype", "torch_dtype", "name_or_path")
# Tokens as vectors instead of numbers.
EMBEDDED = "inputs_embeds"


@dataclass(frozen=True)
class Network:
    """A model that is ready to run.

    Attributes
    ----------
    name : str
        What people are shown.
    loaded : bool
        Whether nearid loaded it, so that the user has not chosen a device for it.
    hashed : bool
        Whether the provenance includes the hash of the weights, which requires reading all of them.
    also : tuple of str
        Layers to extract in addition to the chosen ones.
    """

    module: nn.Module
    name: str
    alerts: tuple[Alert, ...] = ()
    loaded: bool = False
    hashed: bool = True
    also: tuple[str, ...] = ()

    @property
    def pretrained(self) -> bool:
        """Whether this is a transformers model, which takes named inputs and returns hidden states."""
        return is_a(self.module, "transformers", "PreTrainedModel")

    @property
    def named(self) -> bool:
        """Whether inputs are always passed by name."""
        return self.pretrained

    @property
    def libraries(self) -> tuple[str, ...]:
        """Libraries that compute the rows; the provenance records their versions."""
        return ("torch", "transformers") if self.pretrained else ("torch",)

    def taps(self, patterns: list[str] | None, pool: str | Pooler) -> Taps:
        """Hooks on the chosen layers."""
        return Taps(self.module, patterns, pool, hidden=self.pretrained, also=self.also)

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights; float inputs are converted to it."""
        floats = (p.dtype for p in self.module.parameters() if p.dtype.is_floating_point)
        return next(floats, torch.float32)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next((p.device for p in self.module.parameters()), torch.device("cpu"))

    def place(self, device: Any = None) -> torch.device:
        """The device to run on: the given one, or that of the module; for a loaded model a GPU if there is one."""
        if device is None and not self.loaded:
            return self.device
        return torch_device("auto" if device is None else device)

    def main_input(self) -> str | None:
        """Name of the argument for a single array; None if a plain module does not show it."""
        if self.pretrained:
            return str(self.module.main_input_name)
        try:
            return next(iter(inspect.signature(self.module.forward).parameters), None)
        except (TypeError, ValueError):  # compiled code has no signature
            return None

    @property
    def takes_mask(self) -> bool:
        """Whether the forward pass takes a mask of the padding.

        transformers models ignore names that they do not list; a module that takes any name passes it on.
        """
        try:
            taken = inspect.signature(self.module.forward).parameters
        except (TypeError, ValueError):  # compiled code has no signature
            return True
        return MASK in taken or (not self.pretrained and any(each.kind is each.VAR_KEYWORD for each in taken.values()))

    def call(self, inputs: Inputs) -> Any:
        """One forward pass."""
        if not self.pretrained:
            return self.module(**inputs) if isinstance(inputs, dict) else self.module(inputs)
        named = inputs if isinstance(inputs, dict) else {str(self.main_input()): inputs}
        return self.module(**named, **options(self.module, named))

    @contextmanager
    def evaluating(self, device: torch.device) -> Iterator[None]:
        """Run with the module on a device, in evaluation mode and without gradients; restore its state afterwards."""
        modes = [(module, module.training) for module in self.module.modules()]
        home = self.device
        try:
            self.module.eval()
            if device != home:
                self.module.to(device)
            # No inference mode: its tensors break modules that store buffers of their inputs.
            with torch.no_grad(), same_draws(), self._whole():
                yield
        finally:
            if device != home:
                self.module.to(home)
            for module, mode in modes:
                module.training = mode

    def _whole(self) -> AbstractContextManager[None]:
        if not self.pretrained:
            return nullcontext()
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
        """SHA-256 of the printed architecture, of the configuration, and of every weight and buffer."""
        digest = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", repr(self.module)).encode())
        if self.pretrained:
            digest.update(configuration(self.module).encode())
        for name, tensor in sorted(self.module.state_dict().items()):
            if not isinstance(tensor, Tensor):
                continue
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(byte_view(tensor))
        return digest.hexdigest()


def open_network(
    model: Any, *, factory: str | None = None, prefix: str | None = None, revision: str | None = None
) -> Network | OnnxNetwork:
    """A model given as a module, a file of weights or of ONNX, a factory, a transformers folder or name on the hub."""
    if isinstance(model, Network | OnnxNetwork):
        return model
    if isinstance(model, nn.Module):
        if factory or prefix or revision:
            raise InputError(
                "The options factory, prefix and revision are for a model that nearid loads, not for a module."
            )
        return Network(model, type(model).__name__)
    if not isinstance(model, str | os.PathLike):
        raise InputError(
            f"A model is a torch module, a file of weights or of ONNX, package.module:function, or a transformers "
            f"folder or name; {type_of(model)} was given."
        )
    given = given_model(model, factory=factory, prefix=prefix, revision=revision)
    if given.kind == "onnx":
        return OnnxNetwork(open_graph(given.place))
    if given.kind in ("factory", "weights"):
        alone = given.kind == "factory"
        module = load_module(given.text if alone else str(given.place), factory=factory, prefix=prefix)
        return Network(module, given.text if alone else given.place.name, loaded=True)
    module, alerts = load_pretrained(given, revision)
    # For a folder, only its name, not its path.
    name = given.place.resolve().name if given.kind == "folder" else given.text
    return Network(module, name, alerts, loaded=True)


def torch_device(name: str) -> torch.device:
    """An available device by name; "auto" is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"The device {name!r} is not available on this machine. Choose cpu or auto. ({error})"
        ) from error
    return device


def load_pretrained(given: Given, revision: str | None) -> tuple[nn.Module, tuple[Alert, ...]]:
    """Load a model from a folder or the hub, without running its own code; return it with alerts."""
    from transformers import AutoModel

    name, local = given.text, given.kind == "folder"
    try:
        with quiet():
            module, info = AutoModel.from_pretrained(
                str(given.place) if local else name,
                revision=revision or "main",
                local_files_only=local,
                trust_remote_code=False,
                weights_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # what is raised for a missing, damaged or malicious model is not documented
        raise InputError(
            f"The model {name} cannot be loaded: {reason(error)}. Give a file of weights, a folder of a transformers "
            "model, or its name on the hub."
        ) from None
    missing = sorted(map(str, info.get("missing_keys") or ()))
    if any(not key.startswith(SPARE) for key in missing):
        raise InputError(
            f"The weights of {name} do not contain {few(missing)}, which would then be random. The checkpoint is "
            f"incomplete or has another architecture."
        )
    if not missing:
        return module, ()
    # Random weights would differ each time.
    module.pooler = None
    sentence = f"{name} has no weights for its pooler, so nearid left it out. The hidden states do not depend on it."
    return module, (Alert("no_pooler", sentence),)


def reason(error: Exception) -> str:
    """Why a model was not loaded; without the library's advice to run code of the model."""
    message = " ".join(str(error).split())
    if "trust_remote_code" in message:
        return "it needs its own code, which nearid never runs"
    if "weights_only" in message:
        return "its weights are a pickle with other objects than tensors, which could run code; save them as "
        ".safetensors"
    return message[:300].rstrip(" .")


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the progress bars and reports of the library; alerts report what matters."""
    from transformers import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def configuration(module: nn.Module) -> str:
    """Configuration that is not in the weights, such as the number of heads; without the origin of the model."""
    config: Any = module.config
    entries = {key: value for key, value in config.to_dict().items() if key not in ORIGIN and not key.startswith("_")}
    return json.dumps(entries, sort_keys=True, default=str)


def positions(module: nn.Module) -> str:
    """The largest number of tokens of a model, if known, as the end of a sentence."""
    most = getattr(module.config, "max_position_embeddings", None)
    return f", of at most {most} tokens" if isinstance(most, int) else ""


def options(module: nn.Module, inputs: dict[str, Tensor]) -> dict[str, Any]:
    """Additional arguments of the forward pass: request hidden states, and every patch in order."""
    config: Any = module.config
    options: dict[str, Any] = {"output_hidden_states": True, "return_dict": True}
    if getattr(config, "use_cache", False):
        options["use_cache"] = False
    if hasattr(config, "mask_ratio") and "pixel_values" in inputs and "noise" not in inputs:
        # Masked autoencoders keep the patches with the least noise, in this order. This noise keeps all, in order.
        pixels = inputs["pixel_values"]
        count = (config.image_size // config.patch_size) ** 2
        options["noise"] = torch.arange(count, device=pixels.device, dtype=torch.float32).expand(len(pixels), -1)
    return options


@contextmanager
def seeing_all(module: nn.Module) -> Iterator[None]:
    """Let a masked autoencoder see whole images inside the `with` block, not a random quarter of the patches."""
    config: Any = module.config
    ratio = getattr(config, "mask_ratio", None)
    if ratio is None:
        yield
        return
    config.mask_ratio = 0.0
    try:
        yield
    finally:
        config.mask_ratio = ratio


def unpadded_left(inputs: dict[str, Tensor], mask: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """Move tokens to the left and padding to the right, so that positions count from 0.

    Parameters
    ----------
    mask : Tensor of bool, shape (n, t)
    """
    first = mask.int().argmax(1)
    if not bool(first.any()) or "position_ids" in inputs:
        return inputs, mask
    t = mask.shape[1]
    order = (torch.arange(t, device=mask.device) + first[:, None]) % t

    def move(name: str, value: Tensor) -> Tensor:
        if value.shape == mask.shape:
            return value.gather(1, order)
        # Tokens given as vectors. Other arrays with more axes, such as images, have no tokens.
        return value[torch.arange(len(value))[:, None], order] if name == EMBEDDED else value

    return {name: move(name, value) for name, value in inputs.items()}, mask.gather(1, order)
