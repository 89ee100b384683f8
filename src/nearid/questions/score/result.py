"""What a score returns: typed, immutable, printable, and plain data on request."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.jsonable import finite
from nearid.measures.declarations import Declaration
from nearid.moments import Floats
from nearid.questions.compare.result import Comparison
from nearid.questions.compare.verdict import Verdict
from nearid.questions.score.resampling import Estimate


@dataclass(frozen=True)
class Measured:
    """One measure of recovery.

    Attributes
    ----------
    name : str
    declared : Declaration
        What the measure says of itself: its title, its range, whether it is held out.
    overall : Estimate
    parts : dict of name -> Estimate
        Further figures of the measure; NaN where one is not defined.
    factors : dict of name -> Estimate
        What the measure says of each factor (`declared.each`), where it says something.
    matrix : ndarray of shape (d, m)
        What was measured of each latent and factor.
    names : tuple of str
        Factors of the matrix's columns.
    """

    name: str
    declared: Declaration
    overall: Estimate
    parts: dict[str, Estimate]
    factors: dict[str, Estimate]
    matrix: Floats
    names: tuple[str, ...]

    @property
    def value(self) -> float:
        """The overall value."""
        return self.overall.value


@dataclass(frozen=True)
class FactorInfo:
    """One true factor and the latent matched to it.

    Attributes
    ----------
    name, kind : str
    inferred : bool
        Whether the kind follows from the values.
    levels : int
        Different values.
    matched : int or None
        Latent that correlates with it in the best one-to-one matching; None where latents were too few.
    """

    name: str
    kind: str
    inferred: bool
    levels: int
    matched: int | None


@dataclass(frozen=True)
class Points:
    """Some rows of a factor and its matched latent, for a scatter plot.

    Attributes
    ----------
    factor : ndarray of shape (k,)
        Numbers; of a categorical factor, the class of each row.
    latent : ndarray of shape (k,)
    labels : tuple of str
        Names of the classes; empty for numbers.
    """

    factor: Floats
    latent: Floats
    labels: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Score:
    """Is a representation the true one: how well are known factors recovered, and up to which group?

    Attributes
    ----------
    names : tuple of str
        Latents and factors.
    n : int
        Rows in use.
    measures : dict of name -> Measured
    factors : tuple of FactorInfo
        Those that vary.
    active : ndarray of bool, shape (d,)
        Latents whose range is more than a twentieth of the largest.
    verdict : Verdict
        Up to which group the latents are the true factors, and how nearly; "undefined" where all are categorical.
    structure : Comparison or None
        The ladder of groups from the latents to the factors; None where all factors are categorical.
    alerts : tuple of Alert
    resolved : Score or None
        The same of the latents' independent components, with ``resolve="ica"``.
    provenance : dict
        What made the result.
    points : dict of name -> Points
    """

    names: tuple[str, str]
    n: int
    measures: dict[str, Measured]
    factors: tuple[FactorInfo, ...]
    active: np.ndarray
    verdict: Verdict
    structure: Comparison | None
    alerts: tuple[Alert, ...]
    resolved: Score | None
    provenance: dict[str, Any]
    points: dict[str, Points]

    @property
    def judged(self) -> tuple[FactorInfo, ...]:
        """Factors that the verdict is about."""
        return tuple(f for f in self.factors if f.kind != "categorical")

    @property
    def separate(self) -> tuple[FactorInfo, ...]:
        """Categorical factors: no group can keep their geometry, so the measures alone score them."""
        return tuple(f for f in self.factors if f.kind == "categorical")

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (NaN becomes null)."""
        plain: dict[str, Any] = {
            "names": list(self.names),
            "n": self.n,
            "verdict": {
                **self.verdict.to_dict(),
                "factors": [f.name for f in self.judged],
                "scored_separately": [f.name for f in self.separate],
            },
            "measures": {name: _measured_dict(m) for name, m in self.measures.items()},
            "factors": {f.name: self._factor_dict(f) for f in self.factors},
            "latents": {
                "count": len(self.active),
                "active": self.active.tolist(),
                "matched": {f.name: f.matched for f in self.factors},
            },
            "structure": None if self.structure is None else _structure_dict(self.structure),
            "alerts": [asdict(a) for a in self.alerts],
            "provenance": self.provenance,
        }
        if self.resolved is not None:
            plain["resolved"] = self.resolved.to_dict()
        cleaned: dict[str, Any] = finite(plain)
        return cleaned

    def _factor_dict(self, factor: FactorInfo) -> dict[str, Any]:
        plain = asdict(factor)
        del plain["name"]
        each = {name: m.factors[factor.name] for name, m in self.measures.items() if factor.name in m.factors}
        return {**plain, "measures": {name: asdict(estimate) for name, estimate in each.items()}}

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {m.value:.3f}" for name, m in self.measures.items())
        return f"<Score {self.names[0]} -> {self.names[1]}: {self.verdict.group} ({self.verdict.strength}), {told}>"

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page."""
        from nearid.questions.score.page import write_report

        write_report(self, path)

    def __str__(self) -> str:
        from nearid.questions.score.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from nearid.questions.score.page import fragment

        return fragment(self)


def _measured_dict(m: Measured) -> dict[str, Any]:
    plain: dict[str, Any] = {**asdict(m.overall), "parts": {name: e.value for name, e in m.parts.items()}}
    plain["held_out"] = m.declared.held_out
    for bound in ("low", "high", "chance"):
        plain[f"parts_{bound}"] = {name: getattr(e, bound) for name, e in m.parts.items()}
    return plain


def _structure_dict(c: Comparison) -> dict[str, Any]:
    whole = c.to_dict()
    return {key: whole[key] for key in ("dims", "groups", "diameter")}
