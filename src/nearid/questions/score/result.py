"""Result of `score`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.estimate import Estimate
from nearid.base.jsonable import plain
from nearid.measures.registry import Measure
from nearid.moments import Floats
from nearid.questions.compare.result import Comparison
from nearid.questions.compare.verdict import Verdict
from nearid.show.result import Result
from nearid.show.view import View


@dataclass(frozen=True, eq=False)
class ScoredMeasure:
    """One measure of recovery, with intervals and chance levels.

    Attributes
    ----------
    name : str
    declared : Measure
        Declaration of the measure: its title, its range, whether it is held out.
    overall : Estimate
    parts : dict of name -> Estimate
        Further values of the measure; NaN if one is not defined.
    factors : dict of name -> Estimate
        Value for each factor (`declared.each`), if the measure has one.
    matrix : ndarray of shape (d, m)
        Value for each latent and factor; empty if the measure has none.
    names : tuple of str
        Factors of the matrix's columns.
    """

    name: str
    declared: Measure
    overall: Estimate
    parts: dict[str, Estimate]
    factors: dict[str, Estimate]
    matrix: Floats
    names: tuple[str, ...]

    @property
    def value(self) -> float:
        """The overall value."""
        return self.overall.value

    def to_dict(self) -> dict[str, Any]:
        """As plain data, without the matrix."""
        bounds = ("low", "high", "chance")
        return {
            **_figures(self.overall),
            "parts": {name: e.value for name, e in self.parts.items()},
            "held_out": self.declared.held_out,
            "of": self.overall.of,
            **{f"parts_{bound}": {name: getattr(e, bound) for name, e in self.parts.items()} for bound in bounds},
        }


@dataclass(frozen=True)
class MatchedFactor:
    """One true factor and the latent matched to it.

    Attributes
    ----------
    name, kind : str
    inferred : bool
        Whether nearid inferred the kind from the values.
    levels : int
        Number of different values.
    matched : int or None
        Latent that is matched to it in the best one-to-one matching; None if there are too few latents.
    """

    name: str
    kind: str
    inferred: bool
    levels: int
    matched: int | None


@dataclass(frozen=True, eq=False)
class Points:
    """Some rows of a factor and its matched latent, for a scatter plot.

    Attributes
    ----------
    factor : ndarray of shape (k,)
        Numbers; for a categorical factor, the class of each row.
    latent : ndarray of shape (k,)
    labels : tuple of str
        Names of the classes; empty for numbers.
    """

    factor: Floats
    latent: Floats
    labels: tuple[str, ...]


@dataclass(frozen=True, repr=False, eq=False)
class Score(Result):
    """Result of `score`: how well the known factors are recovered, and up to which group.

    Attributes
    ----------
    names : tuple of str
        Latents and factors.
    n : int
        Rows in use.
    measures : dict of name -> ScoredMeasure
    factors : tuple of MatchedFactor
        Those that vary.
    active : ndarray of bool, shape (d,)
        Latents whose range is more than a twentieth of the largest.
    verdict : Verdict
        Up to which group the latents are the true factors, and how closely; "undefined" if all factors are categorical.
    structure : Comparison or None
        The ladder of groups from the latents to the factors; None if all factors are categorical.
    alerts : tuple of Alert
    resolved : Score or None
        The score of the latents' independent components, with ``resolve="ica"``.
    provenance : dict
        What made the result.
    points : dict of name -> Points
        For scatter plots.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).uniform(size=(200, 2))
    >>> score = nearid.score(u[:, ::-1] * [-2, 5], u, measures="mcc")
    >>> score.verdict.group, score.verdict.strength, [factor.matched for factor in score.factors]
    ('scaled_permutation', 'nearly exactly', [1, 0])
    """

    names: tuple[str, str]
    n: int
    measures: dict[str, ScoredMeasure]
    factors: tuple[MatchedFactor, ...]
    active: np.ndarray
    verdict: Verdict
    structure: Comparison | None
    alerts: tuple[Alert, ...]
    resolved: Score | None
    provenance: dict[str, Any]
    points: dict[str, Points]

    @property
    def judged(self) -> tuple[MatchedFactor, ...]:
        """Factors that the verdict is about."""
        return tuple(f for f in self.factors if f.kind != "categorical")

    @property
    def separate(self) -> tuple[MatchedFactor, ...]:
        """Categorical factors: no group can keep their geometry, so the measures alone score them."""
        return tuple(f for f in self.factors if f.kind == "categorical")

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (NaN becomes null)."""
        ladder = None if self.structure is None else self.structure.to_dict()
        written: dict[str, Any] = {
            "names": self.names,
            "n": self.n,
            "verdict": {
                **self.verdict.to_dict(),
                "factors": [f.name for f in self.judged],
                "scored_separately": [f.name for f in self.separate],
            },
            "measures": self.measures,
            "factors": {f.name: self._factor_dict(f) for f in self.factors},
            "latents": {
                "count": len(self.active),
                "active": self.active,
                "matched": {f.name: f.matched for f in self.factors},
            },
            "structure": ladder and {key: ladder[key] for key in ("dims", "groups", "diameter")},
            "alerts": self.alerts,
            "provenance": self.provenance,
        }
        if self.resolved is not None:
            written["resolved"] = self.resolved.to_dict()
        cleaned: dict[str, Any] = plain(written)
        return cleaned

    def _factor_dict(self, factor: MatchedFactor) -> dict[str, Any]:
        own = {name: value for name, value in asdict(factor).items() if name != "name"}
        each = {name: m.factors[factor.name] for name, m in self.measures.items() if factor.name in m.factors}
        return {**own, "measures": {name: _figures(estimate) for name, estimate in each.items()}}

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for score in (self, self.resolved) if self.resolved else (self,):
            for name, m in score.measures.items():
                shared = {"latents": score.names[0], "measure": name}
                records.append({**shared, "part": "", "factor": "", **_figures(m.overall)})
                records += [{**shared, "part": part, "factor": "", **_figures(e)} for part, e in m.parts.items()]
                records += [{**shared, "part": "", "factor": own, **_figures(e)} for own, e in m.factors.items()]
        return records

    def _view(self) -> View:
        from nearid.questions.score.view import view

        return view(self)


def _figures(e: Estimate) -> dict[str, float]:
    return {"value": e.value, "low": e.low, "high": e.high, "chance": e.chance}
