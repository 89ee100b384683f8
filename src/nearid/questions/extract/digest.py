"""The hash of inputs as they were given, taken while they go by."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch

from nearid.questions.extract.batches import Batch


def byte_view(x: torch.Tensor) -> memoryview:
    """The bytes of a tensor, of any dtype, also of those that numpy lacks."""
    return x.detach().to("cpu").contiguous().reshape(-1).view(torch.uint8).numpy().data


class DataHash:
    """SHA-256 of every byte of the inputs, the same however they were cut into batches; and of their ids."""

    def __init__(self) -> None:
        self._each: dict[str, Any] = {}
        self._ids = hashlib.sha256()

    def update(self, batch: Batch) -> None:
        """Take in a batch."""
        for name, x in batch.arrays.items():
            if name not in self._each:
                self._each[name] = hashlib.sha256(f"{x.dtype} {tuple(x.shape[1:])}".encode())
            self._each[name].update(byte_view(x))
        self._ids.update(np.ascontiguousarray(batch.ids).tobytes())

    def with_ids(self) -> str:
        """The hashes of inputs and of ids up to here."""
        return f"{self.hexdigest()} {self._ids.hexdigest()}"

    def hexdigest(self) -> str:
        """The hash of the inputs up to here."""
        parts = [f"{name} {digest.hexdigest()}" for name, digest in sorted(self._each.items())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
