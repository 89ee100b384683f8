"""The result of an extraction: layers as rows by name, and what made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.arrays.formats.layers import LayerRows
from nearid.arrays.rows import Rows
from nearid.base.alerts import Alert
from nearid.base.jsonable import plain
from nearid.show.result import Result

if TYPE_CHECKING:
    from nearid.show.view import View


@dataclass(frozen=True)
class Head:
    """A linear layer on top of a network.

    Attributes
    ----------
    layer : str
        The extracted layer with the input of the head.
    weight : ndarray of shape (classes, features)
    bias : ndarray of shape (classes,) or None
    """

    layer: str
    weight: np.ndarray
    bias: np.ndarray | None

    def save(self, path: Path) -> None:
        """Write an .npz file."""
        arrays = {"layer": np.array(self.layer), "weight": self.weight}
        np.savez(path, allow_pickle=False, **arrays if self.bias is None else {**arrays, "bias": self.bias})

    @classmethod
    def load(cls, path: Path) -> Head:
        """Read the file again."""
        with np.load(path, allow_pickle=False) as held:
            return cls(str(held["layer"]), held["weight"], held.get("bias"))


class Extraction(Result, LayerRows):
    """Result of `extract`: a mapping from the name of each layer to its rows.

    Attributes
    ----------
    folder : Path or None
        Folder with the files of the layers; None if the rows are in memory.
    provenance : dict
        Model and data with their hashes, layers, pooling, options and versions.
    rows : mapping of str to Rows
        The rows of each layer. The extraction itself is this mapping.
    alerts : tuple of Alert
    labels : ndarray of shape (n,) or None
        A label for each row, if `labels` was given.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> from torch import nn
    >>> extraction = nearid.extract(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), np.zeros((10, 3)))
    >>> list(extraction), extraction["1"].shape
    (['0', '1'], (10, 4))
    """

    def __init__(
        self,
        folder: Path | None,
        provenance: dict[str, Any],
        rows: Mapping[str, Rows],
        alerts: tuple[Alert, ...] = (),
        labels: np.ndarray | None = None,
    ) -> None:
        # In the folder the version of nearid is among the other versions.
        versions = provenance.get("versions")
        version = versions.get("nearid") if isinstance(versions, dict) else None
        super().__init__(folder, {"nearid": version, **provenance}, rows, labels=labels)
        self.alerts = alerts

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        made = dict(self.provenance)
        facts = {"rows": made.pop("rows"), "layers": made.pop("layers"), "alerts": self.alerts, "provenance": made}
        return {"folder": None if self.folder is None else str(self.folder), **plain(facts)}

    def _records(self) -> list[dict[str, Any]]:
        return [
            {
                "layer": layer,
                "rows": facts["shape"][0],
                "columns": facts["shape"][1],
                "dtype": facts["dtype"],
                "file": facts.get("file"),
            }
            for layer, facts in self.provenance["layers"].items()
        ]

    def _view(self) -> View:
        from nearid.questions.extract.view import view

        return view(self)
