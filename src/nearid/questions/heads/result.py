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
    """The map between two models' features that follows from their heads, beside the fitted one.

    Attributes
    ----------
    names : tuple of str
        Of the heads.
    classes, width, n : int
        Vectors in a head, features, and pairs of rows.
    biased : bool
        Whether biases of the logits were taken into account: then the maps are affine.
    pairs : Pairs or None
        The pairs of classes that the map was built from; None where it was from all differences.
    compared : TransformComparison
        Both maps and how they do; `compared.heads.matrix` is the map from the heads, where there is one.
    verdict : HeadVerdict
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
        """R2 on held-out rows of both maps, and of logits that are guessed to be equal; empty where heads say nothing.

        Where the heads see a part of the features only, it is that part of their variance.
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
