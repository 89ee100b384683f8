"""What each measure of recovery says of itself: its range, its direction and what leaves it unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from nearid.measures.recovery import Recovery

# What may be done to the latents.
_EACH = ("permutation", "sign", "scale", "shift")


@dataclass(frozen=True)
class Declaration:
    """A measure's account of itself.

    Attributes
    ----------
    title : str
        For people.
    home : str
        Module of the function.
    function : str
    low, high : float
        Range of the value; negative infinity where a held-out fit can be arbitrarily bad.
    invariances : tuple of str
        Changes of the latents that leave the value as it is: "permutation", "sign", "scale" and "shift" of single
        latents, and "linear", any invertible map. Those of factors ("permutation", "shift") leave every value.
    options : mapping
        Options of the function that make this measure of it.
    parts : tuple of str
        Further numbers that the result holds as attributes.
    held_out : bool
        Whether the value is of rows that nothing was fitted on. Otherwise it is of all rows, as defined.
    streams : bool
        Whether rows are read in blocks, whatever their number. Otherwise they are held in memory.
    costly : bool
        Whether one value takes many fits.
    larger_is_better : bool
    symmetric : bool
        Whether latents and factors may change places.
    """

    title: str
    home: str
    function: str
    low: float
    high: float
    invariances: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    held_out: bool = True
    streams: bool = False
    costly: bool = False
    larger_is_better: bool = True
    symmetric: bool = False


def _mcc(title: str, method: str, invariances: tuple[str, ...] = _EACH) -> Declaration:
    return Declaration(
        title, "nearid.measures.mcc", "mcc", -1.0, 1.0, invariances, {"method": method}, streams=method == "pearson"
    )


def _dci(title: str, model: str, invariances: tuple[str, ...]) -> Declaration:
    parts = ("disentanglement", "completeness", "informativeness")
    return Declaration(title, "nearid.measures.dci", "dci", 0.0, 1.0, invariances, {"model": model}, parts, costly=True)


DECLARATIONS = {
    "mcc": _mcc("MCC", "pearson"),
    "mcc_spearman": _mcc("MCC, Spearman", "spearman"),
    "mcc_piecewise": _mcc("MCC, piecewise linear", "piecewise"),
    "r2": Declaration(
        "R2, linear",
        "nearid.measures.r2",
        "r2",
        float("-inf"),
        1.0,
        (*_EACH, "linear"),
        parts=("orthogonality_error", "scale", "scale_error"),
        streams=True,
    ),
    # Which latents are active depends on their ranges.
    "infomec": Declaration(
        "InfoMEC (InfoM)",
        "nearid.measures.infomec",
        "infomec",
        0.0,
        1.0,
        ("permutation", "sign", "shift"),
        parts=("infom", "infoe", "infoc"),
        held_out=False,
    ),
    # Trees cut between neighbouring values, in the order of the columns where two cuts are equally good.
    "dci": _dci("DCI (D), boosting", "boost", ("scale",)),
    "dci_forest": _dci("DCI (D), forest", "forest", ("scale",)),
    "dci_l1": _dci("DCI (D), L1", "l1", ("scale",)),
    "mig": Declaration("MIG", "nearid.measures.mig", "mig", 0.0, 1.0, _EACH, held_out=False),
    "sap": Declaration("SAP", "nearid.measures.sap", "sap", 0.0, 1.0, _EACH, costly=True),
    "modularity": Declaration(
        "Modularity", "nearid.measures.modularity", "modularity", 0.0, 1.0, _EACH, held_out=False
    ),
    "explicitness": Declaration(
        "Explicitness", "nearid.measures.modularity", "explicitness", -1.0, 1.0, _EACH, costly=True
    ),
}


def load(name: str) -> Callable[..., Recovery]:
    """The function of a declared measure."""
    declared = DECLARATIONS[name]
    return partial(getattr(import_module(declared.home), declared.function), **declared.options)
