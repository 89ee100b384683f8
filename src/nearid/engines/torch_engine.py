"""Passes whose products run on a device of torch: the CPU, a CUDA GPU or Apple's MPS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import BoundedSemaphore
from typing import Any, TypeVar

import numpy as np

from nearid.base.errors import EngineError
from nearid.engines.device import computing_on
from nearid.engines.local import Local

T = TypeVar("T")

# Blocks that are on the device at once: one is computed while the next is copied.
BUFFERS = 2


class TorchDevice:
    """A device of torch.

    Parameters
    ----------
    name : str
        "cpu", "cuda", "cuda:1" or "mps".
    """

    def __init__(self, name: str) -> None:
        import torch

        self.torch: Any = torch
        self._device = torch.device(name)
        # MPS has no double precision.
        self.precisions = [np.dtype(np.float32)] + [np.dtype(np.float64)] * (self._device.type != "mps")
        self._places = BoundedSemaphore(BUFFERS)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait until there is room for a block. Meanwhile this thread keeps the block that it has read."""
        with self._places, self.torch.inference_mode():
            yield

    def put(self, array: np.ndarray) -> Any:
        """Return an array as a tensor on the device."""
        array = np.ascontiguousarray(array)
        # torch warns of arrays that cannot be written. This one is only read, or copied to the device.
        tensor = self.torch.from_numpy(array if array.flags.writeable else array.copy())
        if self._device.type == "cuda":
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor.to(self._device)

    def gram(self, z: np.ndarray) -> np.ndarray:
        """Return z^T z. It is computed by numpy if the device lacks the precision of z."""
        if z.dtype not in self.precisions:
            return np.asarray(z.T @ z)
        with self.place():
            rows = self.put(z)
            product: np.ndarray = (rows.T @ rows).cpu().numpy()
            return product


class TorchEngine(Local):
    """Engine of this process whose products run on a device of torch. Blocks are read by threads, as in `Local`.

    The numbers equal those of the local engine up to rounding: to about 1e-12 of their size in float64, and 1e-5 in
    float32. Tasks without a version for devices are computed by numpy.

    Parameters
    ----------
    device : TorchDevice
    """

    def __init__(self, device: TorchDevice) -> None:
        self._device = device

    def reduce(
        self,
        task: Callable[..., Iterable[T]],
        items: Sequence[Any],
        *shared: Any,
        merge: Callable[[T, T], T],
        large: bool = False,
        tick: Callable[[], object] | None = None,
    ) -> list[T]:
        """See `Engine.reduce`."""

        def on_device(item: Any, *arguments: Any) -> Iterator[T]:
            with computing_on(self._device):
                yield from task(item, *arguments)

        return super().reduce(on_device, items, *shared, merge=merge, large=large, tick=tick)

    def map(
        self, task: Callable[..., T], items: Sequence[Any], *shared: Any, tick: Callable[[], object] | None = None
    ) -> Iterator[T]:
        """See `Engine.map`."""

        def on_device(item: Any, *arguments: Any) -> T:
            with computing_on(self._device):
                return task(item, *arguments)

        return super().map(on_device, items, *shared, tick=tick)


def open_torch(engine: str) -> AbstractContextManager[TorchEngine]:
    """Open the engine "torch" or "torch:DEVICE", such as "torch:cuda"."""
    name = engine.partition(":")[2] or "cpu"
    try:
        import torch
    except ImportError:
        raise EngineError("The torch engine needs torch, which is not installed: pip install torch") from None
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdecimal()):
        raise EngineError(f"{engine!r} names no device. Give torch (the CPU), torch:cuda, torch:cuda:1 or torch:mps.")
    counts = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if int(number or 0) >= counts[kind]:
        held = [f"torch:{each}" for each, count in counts.items() if count]
        raise EngineError(f"torch {torch.__version__} finds no device {name} here. It has: {', '.join(held)}.")
    return nullcontext(TorchEngine(TorchDevice(name)))
