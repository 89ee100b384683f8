"""What a comparison of layers returns: a matrix for each measure, printable, drawable, plain data on request."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.alerts import Alert
from nearid.errors import InputError
from nearid.jsonable import finite
from nearid.moments import Floats

# Measures between layers, with titles for people. All are 1 at best and about 0, or below, for unrelated rows.
MEASURES = {
    "cka": "linear CKA, debiased",
    "cca": "mean CCA, held out",
    "svcca": "SVCCA, held out",
    "r2": "R2 of a linear map, held out",
    "r2_rigid": "R2 of a rigid motion, held out",
    "r2_permutation": "R2 of a signed permutation, held out",
}


@dataclass(frozen=True, repr=False)
class LayerComparison:
    """Every layer of a source against every layer of a target.

    Attributes
    ----------
    names : tuple of str
        Source and target.
    layers : tuple of tuple of str
        Their layers.
    widths : tuple of tuple of int
        Columns of each layer.
    n : int
        Pairs of rows.
    values : dict of measure -> ndarray of shape (layers of the source, layers of the target)
    alerts : list of Alert
    provenance : dict
    """

    names: tuple[str, str]
    layers: tuple[tuple[str, ...], tuple[str, ...]]
    widths: tuple[tuple[int, ...], tuple[int, ...]]
    n: int
    values: dict[str, Floats]
    alerts: list[Alert]
    provenance: dict[str, Any]

    def __getitem__(self, measure: str) -> Floats:
        if measure not in self.values:
            raise InputError(f"{measure!r} was not measured; there are {', '.join(self.values)}.")
        return self.values[measure]

    def nearest(self, measure: str) -> dict[str, tuple[str, float]]:
        """For each layer of the source the layer of the target with the largest value."""
        found = {}
        for layer, row in zip(self.layers[0], self[measure], strict=True):
            if np.isfinite(row).any():
                at = int(np.nanargmax(row))
                found[layer] = (self.layers[1][at], float(row[at]))
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (NaN becomes null)."""
        plain = {
            "names": list(self.names),
            "layers": [list(side) for side in self.layers],
            "widths": [list(side) for side in self.widths],
            "n": self.n,
            "values": {name: matrix.tolist() for name, matrix in self.values.items()},
            "alerts": [asdict(a) for a in self.alerts],
            "provenance": self.provenance,
        }
        cleaned: dict[str, Any] = finite(plain)
        return cleaned

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page with a heat map for each measure."""
        from nearid.report.layers import write_report

        write_report(self, path)

    def __repr__(self) -> str:
        sizes = " x ".join(str(len(side)) for side in self.layers)
        return f"<LayerComparison {self.names[0]} -> {self.names[1]}: {', '.join(self.values)} of {sizes} layers>"

    def __str__(self) -> str:
        from nearid.report.layers_table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from nearid.report.layers import fragment

        return fragment(self)
