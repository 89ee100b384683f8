"""What is done to inputs before the model sees them: whole numbers to pixels or tokens, and normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearid.base.errors import InputError

# Pixels of bytes are divided by this.
BYTE = 255.0
CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class Preprocess:
    """How arrays become the tensors of a forward pass.

    Attributes
    ----------
    scale : float or None
        Divide by it; by default 255 for images of bytes, and nothing else.
    mean, std : tuple of float or None
        Subtract and divide by these afterwards, one number or one for each channel.
    channels : {"first", "last"} or None
        Where the channels of images are. Where it is None, floats are taken as they are; of whole numbers it is found
        out: last, if only the last axis can be one.
    """

    scale: float | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    channels: str | None = None

    @classmethod
    def of(cls, scale: float | None, mean: Any, std: Any, channels: str | None) -> Preprocess:
        """Options as people give them, checked."""
        if scale is not None and not 0 < scale < np.inf:
            raise InputError(f"scale is {scale}, but a number above 0 to divide by is expected, such as 255.")
        if channels not in (None, "first", "last"):
            raise InputError(f"channels must be 'first' or 'last', not {channels!r}.")
        found = cls(scale, _numbers("mean", mean), _numbers("std", std), channels)
        if found.std is not None and not all(value > 0 for value in found.std):
            raise InputError(f"std is {found.std}, but numbers above 0 are expected.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the provenance."""
        return {"scale": self.scale, "mean": self.mean, "std": self.std, "channels": self.channels}

    def check(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        """Refuse bytes of which it cannot be told whether they are pixels or tokens, and tokens to be normalised."""
        if dtype == "uint8" and len(shape) != 4 and self.scale is None:
            grey = " Images without colours need an axis of channels, as x[:, None]." if len(shape) == 3 else ""
            raise InputError(
                f"{name} holds bytes of shape {shape}: for pixels say scale=255 (--scale 255), for token ids make it "
                f"int64.{grey}"
            )
        if "int" in dtype and dtype != "uint8" and self.scale is None and self != Preprocess():
            raise InputError(
                f"{name} holds whole numbers ({dtype}), which are taken for token ids: mean, std and channels are for "
                "images. For pixels say scale=255 (--scale 255)."
            )

    def __call__(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """A batch as the model takes it: whole numbers that are no pixels as int64, everything else in `dtype`."""
        pixels = x.dtype == torch.uint8 or self.scale is not None
        if not pixels and not x.dtype.is_floating_point:
            return x.long()
        x = self._channels_first(x) if x.ndim == 4 else x
        divide = self.scale if self.scale is not None else BYTE if x.dtype == torch.uint8 else None
        # Images that come with channels last keep that order in memory, in which convolutions are quicker.
        x = x.to(dtype)
        if divide is not None:
            x = x / divide
        for name, values in (("mean", self.mean), ("std", self.std)):
            if values is not None:
                by = _along_channels(name, values, x)
                x = x - by if name == "mean" else x / by
        return x

    def _channels_first(self, x: Tensor) -> Tensor:
        # Floats may be feature maps of any widths, of which nothing can be told.
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
