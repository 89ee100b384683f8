"""What a comparison of layers returns: a matrix for each measure, printable, drawable, plain data on request."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.jsonable import finite
from nearid.moments import Floats

# Measures between layers, with titles for people. Most are 1 at best and about 0, or below, for unrelated rows.
MEASURES = {
    "cka": "linear CKA, debiased",
    "cca": "mean CCA, held out",
    "svcca": "SVCCA, held out",
    "r2": "R2 of a linear map, held out",
    "r2_rigid": "R2 of a rigid motion, held out",
    "r2_permutation": "R2 of a signed permutation, held out",
    "mcc": "mean correlation of matched columns, held out",
    "epsilon": "error of a linear map over the diameter, held out",
    "epsilon_rigid": "error of a rigid motion over the diameter, held out",
    "epsilon_permutation": "error of a signed permutation over the diameter, held out",
}
# Those that are errors, 0 at best, and the groups they are of.
EPSILONS = {"epsilon": "linear", "epsilon_rigid": "rigid", "epsilon_permutation": "permutation"}


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
        """For each layer of the source the layer of the target with the largest value, or with the least error."""
        found = {}
        for layer, row in zip(self.layers[0], self[measure], strict=True):
            at = best_of(measure, row)
            if at is not None:
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
        from nearid.questions.layers.page import write_report

        write_report(self, path)

    def __repr__(self) -> str:
        sizes = " x ".join(str(len(side)) for side in self.layers)
        return f"<LayerComparison {self.names[0]} -> {self.names[1]}: {', '.join(self.values)} of {sizes} layers>"

    def __str__(self) -> str:
        from nearid.questions.layers.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from nearid.questions.layers.page import fragment

        return fragment(self)


def best_of(measure: str, row: Floats) -> int | None:
    """Place of the best value; None where all are NaN."""
    if not np.isfinite(row).any():
        return None
    return int(np.nanargmin(row) if measure in EPSILONS else np.nanargmax(row))
