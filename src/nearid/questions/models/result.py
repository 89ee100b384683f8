"""Result of a comparison of two models: all layers, the ladder for two pairs of layers, and the heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearid.base.alerts import Alert
from nearid.questions.compare.best import Best
from nearid.questions.compare.result import Comparison
from nearid.questions.heads.result import HeadComparison
from nearid.questions.layers.result import LayerComparison
from nearid.show.result import Result

if TYPE_CHECKING:
    from nearid.show.view import View


@dataclass(frozen=True, repr=False, eq=False)
class ModelComparison(Result):
    """Result of `compare_models`: which layers correspond, how closely, and up to which group.

    Attributes
    ----------
    names : tuple of str
        Names of the source and the target.
    data : str
        Name of the inputs.
    layers : LayerComparison
        Every layer of the source against every layer of the target.
    best : Comparison or None
        The ladder for the pair of layers that is most similar by the first measure; None if no pair has a value.
    last : Comparison or None
        The ladder for the last layers; None if one of them is constant.
    heads : HeadComparison or None
        The map that the heads predict; None if a model has no head or the heads cannot be compared.
    alerts : list of Alert
    provenance : dict

    Examples
    --------
    >>> import nearid, numpy as np
    >>> from torch import nn
    >>> first, second = (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(2))
    >>> inputs = np.random.default_rng(0).normal(size=(200, 3))
    >>> comparison = nearid.compare_models(first, second, inputs, cache=False)
    >>> comparison.layers.layers[0], comparison.last.names
    (('0', '1', '2'), ('Sequential 1:2', 'Sequential 2:2'))
    """

    names: tuple[str, str]
    data: str
    layers: LayerComparison
    best: Comparison | None
    last: Comparison | None
    heads: HeadComparison | None
    alerts: list[Alert]
    provenance: dict[str, Any]

    @property
    def measure(self) -> str:
        """The measure between layers that finds the best pair: the first one."""
        return next(iter(self.layers.values))

    @property
    def pair(self) -> Best | None:
        """The best pair of layers, with its value."""
        return self.layers.best.get(self.measure)

    def _records(self) -> list[dict[str, Any]]:
        pairs = {"best": self.best, "last": self.last}
        return [{"pair": which, **record} for which, c in pairs.items() if c is not None for record in c._records()]

    def _view(self) -> View:
        from nearid.questions.models.view import view

        return view(self)
