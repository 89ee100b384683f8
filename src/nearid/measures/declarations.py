"""What each measure of recovery says of itself: its range, its direction and what leaves it unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from nearid.measures.recovery import Recovery

_INFINITY, _SHARE = float("inf"), (0.0, 1.0)
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
    parts : mapping of str to (float, float)
        Further numbers that the result holds as attributes, and their ranges.
    each : str
        What is given of each factor, for people; empty where nothing is.
    each_low : float
        Least value of that; the largest is that of the measure.
    held_out : bool
        Whether the value is of rows that nothing was fitted on. Otherwise it is of all rows, as defined.
    streams : bool
        Whether rows are read in blocks, whatever their number. Otherwise they are held in memory.
    costly : bool
        Whether one value takes many fits.
    larger_is_better : bool
    symmetric : bool
        Whether latents and factors may change places, where there are equally many and all are numbers.
    """

    title: str
    home: str
    function: str
    low: float
    high: float
    invariances: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    each: str = ""
    each_low: float = 0.0
    held_out: bool = True
    streams: bool = False
    costly: bool = False
    larger_is_better: bool = True
    symmetric: bool = False


def _mcc(title: str, method: str) -> Declaration:
    return Declaration(
        title,
        "nearid.measures.mcc",
        "mcc",
        -1.0,
        1.0,
        _EACH,
        {"method": method},
        each=title,
        each_low=-1.0,
        streams=method == "pearson",
        symmetric=method != "piecewise",
    )


def _dci(title: str, model: str) -> Declaration:
    return Declaration(
        f"DCI (D), {title}",
        "nearid.measures.dci",
        "dci",
        0.0,
        1.0,
        # Trees cut between neighbouring values, in the order of the columns where two cuts are equally good.
        ("scale",),
        {"model": model},
        {"disentanglement": _SHARE, "completeness": _SHARE, "informativeness": (-_INFINITY, 1.0)},
        each=f"informativeness, {title}",
        each_low=-_INFINITY,
        costly=True,
    )


DECLARATIONS = {
    "mcc": _mcc("MCC", "pearson"),
    "mcc_spearman": _mcc("MCC, Spearman", "spearman"),
    "mcc_piecewise": _mcc("MCC, piecewise linear", "piecewise"),
    "r2": Declaration(
        "R2, linear",
        "nearid.measures.r2",
        "r2",
        -_INFINITY,
        1.0,
        (*_EACH, "linear"),
        parts={"orthogonality_error": _SHARE, "scale": (0.0, _INFINITY), "scale_error": (0.0, _INFINITY)},
        each="R2, linear",
        each_low=-_INFINITY,
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
        parts={"infom": _SHARE, "infoe": (-_INFINITY, 1.0), "infoc": _SHARE},
        each="InfoE",
        each_low=-_INFINITY,
        held_out=False,
    ),
    "dci": _dci("boosting", "boost"),
    "dci_forest": _dci("forest", "forest"),
    "dci_l1": _dci("L1", "l1"),
    "mig": Declaration("MIG", "nearid.measures.mig", "mig", 0.0, 1.0, _EACH, each="MIG", held_out=False),
    "sap": Declaration("SAP", "nearid.measures.sap", "sap", 0.0, 1.0, _EACH, each="SAP", costly=True),
    "modularity": Declaration(
        "Modularity", "nearid.measures.modularity", "modularity", 0.0, 1.0, _EACH, held_out=False
    ),
    "explicitness": Declaration(
        "Explicitness",
        "nearid.measures.modularity",
        "explicitness",
        -1.0,
        1.0,
        _EACH,
        each="Explicitness",
        each_low=-1.0,
        costly=True,
    ),
}


def load(name: str) -> Callable[..., Recovery]:
    """The function of a declared measure."""
    declared = DECLARATIONS[name]
    return partial(getattr(import_module(declared.home), declared.function), **declared.options)
