"""An unfinished fit on disk, so that an interruption costs one pass at most."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nearid.base.errors import InputError
from nearid.ica.model import check_size, header, packed, read_metadata, read_tensors, write_bytes
from nearid.ica.solver import Checkpoint

FORMAT = "1"
STAGES = ("climb", "fixed point", "descend")
NAME = "checkpoint.safetensors"
# Passes of small data take milliseconds; writing after each would take longer than they do.
SECONDS = 1.0
# More passes than any fit makes.
MOST_PASSES = 1_000_000
# A rotation off by more than this was not written by a fit.
ORTHOGONAL = 1e-6


@dataclass
class Keeper:
    """Keeps the last checkpoint of a fit in a folder.

    Attributes
    ----------
    folder : Path
    identity : dict
        What the fit is of (input and options); a checkpoint of another fit is refused.
    """

    folder: Path
    identity: dict[str, Any]
    _last: Checkpoint | None = field(default=None, init=False)
    _written: float = field(default=-np.inf, init=False)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / NAME

    def keep(self, checkpoint: Checkpoint) -> None:
        """Take a checkpoint; it is written unless one was just written."""
        self._last = checkpoint
        if time.monotonic() - self._written >= SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what has been taken and is not written yet."""
        if self._last is None:
            return
        last, self._last = self._last, None
        metadata = {"nearid_checkpoint": FORMAT, "identity": json.dumps(self.identity), "stage": last.stage}
        tensors = {"rotation": last.rotation, "signs": last.signs, "gradients": np.asarray(last.gradients)}
        write_bytes(self.path, packed(tensors, metadata))
        self._written = time.monotonic()

    def remove(self) -> None:
        """Forget the unfinished fit; a file of the same name that is something else stays."""
        self._last = None
        self._refuse_foreign()
        self.path.unlink(missing_ok=True)

    def read(self) -> Checkpoint | None:
        """The checkpoint in the folder, if there is one; refused where it belongs to another fit."""
        self._refuse_foreign()
        if not self.path.is_file():
            return None
        columns = self.identity["input"]["shape"][1]
        check_size(self.path, 8, 8 * (columns * (columns + 1) + MOST_PASSES))
        data = self.path.read_bytes()
        told = read_metadata(data, str(self.path))
        if told.get("nearid_checkpoint") != FORMAT or told.get("stage") not in STAGES:
            raise InputError(f"{self.path} is not a checkpoint that this nearid can read. Begin anew with --restart.")
        self._check_identity(told.get("identity", ""))
        tensors = read_tensors(data, str(self.path), {"rotation": "kk", "signs": "k", "gradients": "m"})
        rotation, signs = tensors["rotation"], tensors["signs"]
        off = rotation @ rotation.T - np.eye(len(signs)) if np.abs(rotation).max() < 2 else np.inf
        if len(signs) > columns or np.abs(off).max() > ORTHOGONAL or (np.abs(signs) != 1).any():
            raise InputError(f"{self.path} holds no rotation: it is damaged. Begin anew with --restart.")
        return Checkpoint(rotation, signs, tensors["gradients"].tolist(), told["stage"])

    def _refuse_foreign(self) -> None:
        """Refuse a file that no fit has written, or of which this cannot be told."""
        if self.path.exists() and not is_checkpoint(self.path):
            raise InputError(
                f"{self.path} is not a checkpoint of nearid unmix, or it is damaged. Write to another folder, or move "
                "this file."
            )

    def _check_identity(self, text: str) -> None:
        try:
            found = json.loads(text)
            differ = [
                f"{part} {name} was {found[part][name]!r}, now {value!r}"
                for part, wanted in self.identity.items()
                for name, value in wanted.items()
                if found[part][name] != value
            ]
        except (ValueError, KeyError, TypeError, RecursionError):
            differ = ["it does not say of what"]
        if differ:
            raise InputError(
                f"{self.folder} holds an unfinished fit of something else: {'; '.join(differ)}. "
                "Write to another folder, or begin anew with --restart."
            )


def is_checkpoint(path: Path) -> bool:
    """Whether a file is the checkpoint of a fit; it may be damaged behind its header."""
    declared = header(path) or {}
    metadata = declared.get("__metadata__")
    return isinstance(metadata, dict) and "nearid_checkpoint" in metadata
