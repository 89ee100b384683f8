"""One forward pass over a batch: preprocess inputs, pool layers, and explain errors of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.questions.extract.batches import MASK, SINGLE, Batch
from nearid.questions.extract.network import Inputs, Network, positions, unpadded_left
from nearid.questions.extract.onnx_network import OnnxNetwork, OnnxTaps
from nearid.questions.extract.taps import Taps

# Pixels of bytes are divided by this.
BYTE = 255.0
CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class Preprocess:
    """How arrays become the tensors of a forward pass.

    Attributes
    ----------
    scale : float or None
        Divisor. Default: 255 for images of bytes, none otherwise.
    mean, std : tuple of float or None
        Subtract and divide by these afterwards, one number or one for each channel.
    channels : {"first", "last"} or None
        Position of the channels of images. If None, floats are not changed; for whole numbers it is inferred: last, if
        only the last axis can be the channels.
    """

    scale: float | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    channels: str | None = None

    @classmethod
    def of(cls, scale: float | None, mean: Any, std: Any, channels: str | None) -> Preprocess:
        """Check the options as the user gave them."""
        made = cls(scale, _numbers("mean", mean), _numbers("std", std), channels)
        if made.std is not None and not all(value > 0 for value in made.std):
            raise InputError(f"std is {made.std}, but numbers above 0 are expected.")
        return made

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the provenance."""
        return {"scale": self.scale, "mean": self.mean, "std": self.std, "channels": self.channels}

    def check(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        """Refuse bytes that may be pixels or tokens, and normalisation of tokens."""
        if dtype == "uint8" and len(shape) != 4 and self.scale is None:
            grey = " Grey images need an axis of channels: x[:, None]." if len(shape) == 3 else ""
            raise InputError(
                f"{name} contains bytes of shape {shape}, which may be pixels or token ids. For pixels give scale=255 "
                f"(--scale 255). For token ids convert "
                f"it to int64.{grey}"
            )
        if "int" in dtype and dtype != "uint8" and self.scale is None and self != Preprocess():
            raise InputError(
                f"{name} contains whole numbers ({dtype}), which nearid uses as token ids, but mean, std and channels "
                f"are for images. For pixels give scale=255 (--scale 255)."
            )

    def __call__(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Convert a batch for the model: whole numbers that are not pixels to int64, everything else to `dtype`."""
        pixels = x.dtype == torch.uint8 or self.scale is not None
        if not pixels and not x.dtype.is_floating_point:
            return x.long()
        x = self._channels_first(x) if x.ndim == 4 else x
        divide = self.scale if self.scale is not None else BYTE if x.dtype == torch.uint8 else None
        # Images with channels last keep this memory order, which makes convolutions faster.
        x = x.to(dtype)
        if divide is not None:
            x = x / divide
        for name, values in (("mean", self.mean), ("std", self.std)):
            if values is not None:
                by = _along_channels(name, values, x)
                x = x - by if name == "mean" else x / by
        return x

    def _channels_first(self, x: Tensor) -> Tensor:
        # Floats may be feature maps of any width, so nothing can be inferred.
        guess = self.channels is None and not x.dtype.is_floating_point and looks_last(tuple(x.shape))
        return x.permute(0, 3, 1, 2) if guess or self.channels == "last" else x


def looks_last(shape: tuple[int, ...]) -> bool:
    """Whether inputs look like images with channels last: only that axis can hold colours."""
    return len(shape) == 4 and shape[3] in CHANNELS and shape[1] not in CHANNELS


def _along_channels(name: str, values: tuple[float, ...], x: Tensor) -> Tensor:
    if len(values) not in (1, x.shape[1] if x.ndim > 1 else 1):
        raise InputError(f"{name} has {len(values)} numbers, but the inputs have {x.shape[1]} channels.")
    return torch.tensor(values, dtype=x.dtype, device=x.device).reshape(1, -1, *[1] * (x.ndim - 2))


def _numbers(name: str, given: Any) -> tuple[float, ...] | None:
    if given is None:
        return None
    each = given.split(",") if isinstance(given, str) else given
    try:
        values = tuple(float(v) for v in (each if isinstance(each, Sequence | np.ndarray) else [each]))
    except (TypeError, ValueError):
        raise InputError(f"{name} is {given!r}, but one number, or one for each channel, is expected.") from None
    if not values or not np.isfinite(values).all():
        raise InputError(f"{name} is {given!r}, but finite numbers are expected.")
    return values


@dataclass(frozen=True)
class Forward:
    """How batches go through a model.

    Attributes
    ----------
    mixed : torch.dtype or None
        Precision of products, if it differs from that of the weights.
    contiguous : bool
        Whether the model needs contiguous inputs.
    """

    network: Network | OnnxNetwork
    taps: Taps | OnnxTaps
    preprocess: Preprocess
    device: torch.device
    mixed: torch.dtype | None
    contiguous: bool = False

    def with_layout(self, batch: Batch) -> tuple[Forward, dict[str, Tensor]]:
        """Find a memory layout that the model accepts for a few inputs; return it with the outputs of the layers.

        Images with channels last in memory are faster, but a model that uses `view` on its maps cannot take them.
        """
        try:
            return self, self(batch)[0]
        except InputError:
            plain = replace(self, contiguous=True)
            try:
                return plain, plain(batch)[0]
            except InputError:
                pass
            raise

    def __call__(self, batch: Batch) -> tuple[dict[str, Tensor], Tensor | None]:
        """Pooled outputs by layer, and the mask of tokens, padding on the right."""
        inputs, mask = self._inputs(batch)
        try:
            with self._cast():
                pooled = self.taps.run(lambda: self.network.call(inputs), batch.n, mask, batch.words)
        except InputError:
            raise
        except torch.OutOfMemoryError:
            raise InputError(
                f"A batch of {batch.n} inputs does not fit into the memory of {self.device}. Choose a smaller "
                "batch_size (--batch-size)."
            ) from None
        except Exception as error:  # a model may raise anything for inputs that it does not accept
            if not isinstance(self.network, Network):
                raise
            raise _refusal(self.network, inputs, error) from error
        return pooled, mask

    def main_of(self, arrays: Mapping[str, Tensor]) -> str | None:
        """Name of the array that is preprocessed: the single one, the model's main argument, or the only input.

        None if no array is preprocessed, as for an ONNX file that takes bytes.
        """
        inputs = [name for name in arrays if name != MASK]
        main = next((name for name in (SINGLE, self.network.main_input()) if name in arrays), None)
        if main is None and len(inputs) == 1:
            main = inputs[0]
        if isinstance(self.network, OnnxNetwork) and self.network.whole_numbers and main is not None:
            if self.preprocess != Preprocess():
                raise InputError(
                    f"{self.network.name} takes whole numbers without scaling. Leave out scale, mean, std and channels."
                )
            return None
        if main is None and self.preprocess != Preprocess():
            raise InputError(
                f"nearid cannot see which of {', '.join(inputs)} scale, mean, std and channels are for. Normalise it "
                "before, or give it the name of the first argument of the model's forward."
            )
        return main

    def _cast(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.mixed is None else torch.autocast(self.device.type, self.mixed)

    def _inputs(self, batch: Batch) -> tuple[Inputs, Tensor | None]:
        arrays = dict(batch.arrays)
        mask = None
        if MASK in arrays:
            given = arrays[MASK].to(self.device)
            mask = given == 1
            if bool(((given != 0) & ~mask).any()):
                raise InputError(
                    f"{MASK} has values other than 1 (a token) and 0 (padding). Give it in the form of the tokeniser. "
                    f"If it is an additive mask, with 0 for tokens and -inf for padding, give (mask == 0)."
                )
            if mask.ndim != 2:
                raise InputError(f"The mask has shape {tuple(mask.shape)}, but (inputs, tokens) is expected.")
            empty = ~mask.any(1)
            if bool(empty.any()):
                row = batch.start + int(empty.int().argmax())
                raise InputError(f"The mask of input {row} has no token. Leave this input out.")
        main = self.main_of(arrays)
        ready = {name: self._main(x) if name == main else self._plain(x) for name, x in arrays.items()}
        if SINGLE in ready:
            single = ready.pop(SINGLE)
            if not self.network.named:
                return single, mask
            ready = {str(self.network.main_input()): single, **ready}
        if mask is not None and bool(mask.all()) and not self.network.takes_mask:
            # Nothing is padded, so the model does not need the mask.
            del ready[MASK]
        if mask is not None and self.network.named:
            ready, mask = unpadded_left(ready, mask)
        return ready, mask

    def _main(self, x: Tensor) -> Tensor:
        ready = self.preprocess(x.to(self.device), self.network.dtype)
        return ready.contiguous() if self.contiguous else ready

    def _plain(self, x: Tensor) -> Tensor:
        return x.to(self.device, self.network.dtype if x.dtype.is_floating_point else torch.int64)


def mixed_precision(name: str | None, device: torch.device) -> tuple[torch.dtype | None, tuple[Alert, ...]]:
    """The precision of products to try on a device; None and an alert if the device does not support it."""
    if name is None:
        return None, ()
    name = "bfloat16" if name == "auto" else name
    dtype = {"float16": torch.float16, "bfloat16": torch.bfloat16}[name]
    # Processors have no units for float16.
    fit = torch.amp.is_autocast_available(device.type) and (device.type != "cpu" or name == "bfloat16")
    if fit and device.type == "cuda" and name == "bfloat16":
        fit = torch.cuda.is_bf16_supported()
    if fit:
        return dtype, ()
    return None, (
        Alert(
            "full_precision",
            f"The model runs in full precision, because the device {device.type} does not support {name}.",
        ),
    )


def _refusal(network: Network, inputs: Inputs, error: Exception) -> InputError:
    """An error that names the failed layer and the shapes of its inputs."""
    given = {k: tuple(x.shape) for k, x in inputs.items()} if isinstance(inputs, dict) else tuple(inputs.shape)
    layer, shapes = _where(network, inputs)
    at = f" at the layer {layer or type(network.module).__name__}, which got {shapes}" if shapes else ""
    stopped = network.module.get_submodule(layer) if shapes else None
    if isinstance(stopped, nn.Embedding):
        raised = f"it has entries 0 to {stopped.num_embeddings - 1} only. Look at the ids, or give fewer tokens"
        return InputError(f"The model cannot take inputs of shape {given}: it stopped{at}: {raised}.")
    why = " ".join(str(error).split())[:300].rstrip(" .")
    last = not isinstance(inputs, dict) and inputs.is_floating_point() and looks_last(tuple(inputs.shape))
    advice = " If their channels are last, give channels='last' (--channels last)." if last else ""
    if network.pretrained:
        advice += f" This model takes {network.main_input()}{positions(network.module)}."
    return InputError(f"The model cannot take inputs of shape {given}: it stopped{at}: {why}.{advice}")


def _where(network: Network, inputs: Inputs) -> tuple[str, str]:
    """The innermost module in which a forward pass fails, and the shapes it was given."""
    entered: list[tuple[str, str]] = []
    handles = []

    def enter(name: str) -> Any:
        def note(module: nn.Module, arguments: Any) -> None:
            shapes = ", ".join(_described(a) for a in arguments if isinstance(a, Tensor))
            entered.append((name, shapes or "named arguments"))

        return note

    def leave(*_: object) -> None:
        entered.pop()

    for name, module in network.module.named_modules():
        handles.append(module.register_forward_pre_hook(enter(name)))
        handles.append(module.register_forward_hook(leave))
    try:
        network.call(inputs)
    except Exception:  # the failure is known; only its position is needed
        return entered[-1] if entered else ("", "")
    finally:
        for handle in handles:
            handle.remove()
    return "", ""


def _described(x: Tensor) -> str:
    """Shape, with the range of whole numbers."""
    range_ = f" of {int(x.min())} to {int(x.max())}" if x.dtype == torch.int64 and x.numel() else ""
    return f"{tuple(x.shape)}{range_}"
