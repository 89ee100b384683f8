"""What a comparison of heads returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearid.base.alerts import Alert
from nearid.base.estimate import Estimate
from nearid.base.jsonable import plain
from nearid.geometry.diversity import Pairs
from nearid.geometry.transforms import TransformComparison
from nearid.show.result import Result

if TYPE_CHECKING:
    from nearid.show.view import View


@dataclass(frozen=True)
class HeadVerdict:
    """The answer: "agree", "in part", "disagree" or "undetermined", and the reason in sentences."""

    outcome: str
    reason: str


@dataclass(frozen=True, repr=False, eq=False)
class HeadComparison(Result):
    """Result of `compare_heads`: the map that the heads predict, beside a fitted map.

    Attributes
    ----------
    names : tuple of str
        Names of the two models.
    classes, width, n : int
        Number of class vectors in a head, of features, and of pairs of rows.
    biased : bool
        Whether the logits have biases. The maps are then affine.
    pairs : Pairs or None
        The pairs of classes that the map was computed from. None if it was computed from all differences.
    compared : TransformComparison
        Both maps and what they explain. `compared.heads.matrix` is the map from the heads, or None.
    verdict : HeadVerdict
        The outcome ("agree", "in part", "disagree", "undetermined") and the reason.
    alerts : list of Alert
    provenance : dict

    Examples
    --------
    >>> import nearid, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> head, features = rng.normal(size=(9, 3)), rng.normal(size=(100, 3))
    >>> nearid.compare_heads(head, head, features, features).verdict.outcome
    'agree'
    """

    names: tuple[str, str]
    classes: int
    width: int
    n: int
    biased: bool
    pairs: Pairs | None
    compared: TransformComparison
    verdict: HeadVerdict
    alerts: list[Alert]
    provenance: dict[str, Any]

    @property
    def explained(self) -> dict[str, Estimate]:
        """R2 on held-out rows of both maps and of equal logits; empty if the heads determine nothing.

        If the heads read only some directions of the features, R2 is that of these directions.
        """
        seen = self.compared.seen
        if seen is None:
            return {}
        return {"map from heads": seen.heads, "fitted map": seen.fitted, "logits, nothing fitted": seen.logits}

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (infinities become null); without the matrices."""
        c = self.compared
        figures = {
            "diversity": c.heads.diversity,
            "misfit": c.heads.misfit,
            "ridge": c.ridge,
            "disagreement": c.disagreement,
            "r2_heads": c.r2_heads,
            "r2_fitted": c.r2_fitted,
            "seen": c.seen,
        }
        own = ("names", "classes", "width", "n", "biased", "pairs", "verdict", "alerts", "provenance")
        written: dict[str, Any] = plain({**{name: getattr(self, name) for name in own}, **figures})
        return written

    def _records(self) -> list[dict[str, Any]]:
        return [{"map": name, "r2": e.value, "low": e.low, "high": e.high} for name, e in self.explained.items()]

    def _view(self) -> View:
        from nearid.questions.heads.view import view

        return view(self)
