"""What a comparison of heads returns: typed, printable, plain data on request."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nearid.base.alerts import Alert
from nearid.base.jsonable import finite
from nearid.geometry.diversity import Pairs
from nearid.geometry.transforms import TransformComparison


@dataclass(frozen=True)
class HeadVerdict:
    """The answer: "agree", "in part", "disagree" or "undetermined", and the reason in sentences."""

    outcome: str
    reason: str


@dataclass(frozen=True, repr=False, eq=False)
class HeadComparison:
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

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (infinities become null); without the matrices."""
        c = self.compared
        plain: dict[str, Any] = {
            "names": list(self.names),
            "classes": self.classes,
            "width": self.width,
            "n": self.n,
            "biased": self.biased,
            "diversity": [asdict(d) for d in c.heads.diversity],
            "pairs": None if self.pairs is None else {**asdict(self.pairs), "pairs": _listed(self.pairs)},
            "misfit": c.heads.misfit,
            "disagreement": c.disagreement,
            "r2_heads": c.r2_heads,
            "r2_fitted": c.r2_fitted,
            "seen": None if c.seen is None else asdict(c.seen),
            "verdict": asdict(self.verdict),
            "alerts": [asdict(a) for a in self.alerts],
            "provenance": self.provenance,
        }
        cleaned: dict[str, Any] = finite(plain)
        return cleaned

    def __repr__(self) -> str:
        return f"<HeadComparison {self.names[0]} -> {self.names[1]}: {self.verdict.outcome}>"

    def __str__(self) -> str:
        from nearid.questions.heads.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from nearid.questions.heads.table import fragment

        return fragment(self)


def _listed(pairs: Pairs) -> list[list[int]] | None:
    return None if pairs.pairs is None else pairs.pairs.tolist()
