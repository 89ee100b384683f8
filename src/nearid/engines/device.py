"""The device on which the tasks of a pass multiply, if their engine has one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearid.engines.torch_engine import TorchDevice

_current: ContextVar[TorchDevice | None] = ContextVar("device", default=None)


def current_device() -> TorchDevice | None:
    """Return the device of the engine that runs this task; None if products are computed by numpy."""
    return _current.get()


@contextmanager
def computing_on(device: TorchDevice) -> Iterator[None]:
    """Let the tasks of this thread use a device."""
    token = _current.set(device)
    try:
        yield
    finally:
        _current.reset(token)
