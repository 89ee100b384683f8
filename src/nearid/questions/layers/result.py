"""The measures between layers, and the result of a comparison of layers: a matrix for each measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.groups.ladder import GROUPS
from nearid.moments import Floats
from nearid.questions.compare.best import Best
from nearid.show.result import Result

if TYPE_CHECKING:
    from nearid.show.view import View


def measures() -> dict[str, str]:
    """Measures between layers with their titles; most are at best 1, and about 0 or less for unrelated rows."""
    groups = [g for g in reversed(GROUPS.values()) if g.prepare is None]
    return {
        "cka": "linear CKA, debiased",
        "cca": "mean CCA, held out",
        "svcca": "SVCCA, held out",
        **{_measure("r2", g.name): f"R2 of a {g.title}, held out" for g in groups},
        "mcc": "mean correlation of matched columns, held out",
        **{_measure("epsilon", g.name): f"error of a {g.title} over the diameter, held out" for g in groups},
    }


def _measure(kind: str, group: str) -> str:
    return kind if group == "linear" else f"{kind}_{group}"


def group_of(measure: str, kind: str) -> str | None:
    """The group of a measure "r2" or "epsilon"; None for other measures."""
    return next((name for name, g in GROUPS.items() if g.prepare is None and _measure(kind, name) == measure), None)


def is_error(measure: str) -> bool:
    """Whether a measure is 0 at best."""
    return group_of(measure, "epsilon") is not None


def place_of_best(measure: str, values: Floats) -> tuple[int, ...] | None:
    """Index of the largest value, or of the smallest error; None if there is no value."""
    if np.isnan(values).all():
        return None
    at = np.nanargmin(values) if is_error(measure) else np.nanargmax(values)
    return tuple(int(place) for place in np.unravel_index(at, values.shape))


@dataclass(frozen=True, repr=False, eq=False)
class LayerComparison(Result):
    """Result of `compare_layers`: every layer of a source against every layer of a target.

    Attributes
    ----------
    names : tuple of str
        Names of the source and the target.
    layers : tuple of tuple of str
        Layers of the source and of the target.
    widths : tuple of tuple of int
        Number of columns of each layer.
    n : int
        Number of pairs of rows.
    values : dict of measure -> ndarray of shape (layers of the source, layers of the target)
        Similarity (or error) of each pair of layers.
    best : dict of measure -> Best
        The best of all pairs. Its interval accounts for the choice among all pairs. There is no interval for `mcc`,
        for functions of your own, and if rows are too few.
    p_values : dict of measure -> ndarray of the same shape
        Add-one permutation p-value of each pair, against the best of all pairs after the target's rows were shuffled.
        It is thus corrected for the number of pairs. Errors and functions of your own have none.
    alerts : list of Alert
    provenance : dict

    Examples
    --------
    >>> import nearid, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> comparison = nearid.compare_layers({"first": x, "second": x ** 2}, {"only": 2 * x})
    >>> comparison["cka"].shape, comparison.nearest("cka")["first"][0]
    ((2, 1), 'only')
    >>> best = comparison.best["cka"]
    >>> best.source, best.pairs, best.p_value, comparison.p_values["cka"].shape
    ('first', 2, 0.01, (2, 1))
    """

    names: tuple[str, str]
    layers: tuple[tuple[str, ...], tuple[str, ...]]
    widths: tuple[tuple[int, ...], tuple[int, ...]]
    n: int
    values: dict[str, Floats]
    best: dict[str, Best]
    p_values: dict[str, Floats]
    alerts: list[Alert]
    provenance: dict[str, Any]

    def __getitem__(self, measure: str) -> Floats:
        if measure not in self.values:
            raise InputError(f"{measure!r} was not measured. Choose one of {', '.join(self.values)}.")
        return self.values[measure]

    def nearest(self, measure: str) -> dict[str, tuple[str, float]]:
        """For each layer of the source, the most similar layer of the target and the value.

        Parameters
        ----------
        measure : str
            A measure that was computed, such as "cka".

        Returns
        -------
        dict of str to tuple of str and float
            The layer of the target and the value, by the layer of the source. Layers without any value are left out.
        """
        nearest = {}
        for layer, row in zip(self.layers[0], self[measure], strict=True):
            found = place_of_best(measure, row)
            if found is not None:
                nearest[layer] = (self.layers[1][found[0]], float(row[found]))
        return nearest

    def _records(self) -> list[dict[str, Any]]:
        none = {measure: np.full_like(values, np.nan) for measure, values in self.values.items()}
        p_values = none | self.p_values
        return [
            {
                "measure": measure,
                "source": a,
                "target": b,
                "value": float(values[i, j]),
                "p_value": float(p_values[measure][i, j]),
            }
            for measure, values in self.values.items()
            for i, a in enumerate(self.layers[0])
            for j, b in enumerate(self.layers[1])
        ]

    def _view(self) -> View:
        from nearid.questions.layers.view import view

        return view(self)
