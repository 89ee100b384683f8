"""What each measure of recovery says of itself: its range, its direction and what leaves it unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from nearid.measures.recovery import Recovery

# What may be done to the latents.
_EACH = ("permutation", "sign", "scale", "shift")


@dataclass(frozen=True)
class Declaration:
    """A measure's account of itself.

    Attributes
    ----------
    home : str
        Module of the function of the same name.
    low, high : float
        Range of the value; negative infinity where a held-out fit can be arbitrarily bad.
    invariances : tuple of str
        Changes of the latents that leave the value as it is: "permutation", "sign", "scale" and "shift" of single
        latents, and "linear", any invertible map. Those of factors ("permutation", "shift") leave every value.
    larger_is_better : bool
    symmetric : bool
        Whether latents and factors may change places.
    """

    home: str
    low: float
    high: float
    invariances: tuple[str, ...]
    larger_is_better: bool = True
    symmetric: bool = False


DECLARATIONS = {
    "mcc": Declaration("nearid.measures.mcc", -1.0, 1.0, _EACH),
    "r2": Declaration("nearid.measures.r2", float("-inf"), 1.0, (*_EACH, "linear")),
    # Trees cut between neighbouring values, in the order of the columns where two cuts are equally good.
    "dci": Declaration("nearid.measures.dci", 0.0, 1.0, ("scale",)),
    "mig": Declaration("nearid.measures.mig", 0.0, 1.0, _EACH),
    "sap": Declaration("nearid.measures.sap", 0.0, 1.0, _EACH),
    "modularity": Declaration("nearid.measures.modularity", 0.0, 1.0, _EACH),
    "explicitness": Declaration("nearid.measures.modularity", -1.0, 1.0, _EACH),
}


def load(name: str) -> Callable[..., Recovery]:
    """The function of a declared measure."""
    function: Callable[..., Recovery] = getattr(import_module(DECLARATIONS[name].home), name)
    return function
