"""What deconfounding returns: typed, immutable, printable, and plain data on request."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.errors import InputError, unknown
from nearid.base.jsonable import finite
from nearid.measures.neighbourhoods import Mixing, Replicates
from nearid.moments import Floats
from nearid.questions.deconfound.attribution import Attribution
from nearid.questions.deconfound.conditions import Condition, View
from nearid.questions.deconfound.design import open_again
from nearid.questions.deconfound.paired import ALL, Mean, Paired


@dataclass(frozen=True)
class ConditionResult:
    """One condition beside its scores: what its components follow, and how batches stand in it.

    Attributes
    ----------
    condition : Condition
        The map that gives the components.
    components : Attribution
        What batch and label explain of each component.
    mixing : Mixing
        Of batches within labels.
    replicates : Replicates
        Found again in other batches.
    """

    condition: Condition
    components: Attribution
    mixing: Mixing
    replicates: Replicates

    @property
    def title(self) -> str:
        """Name for people."""
        return self.condition.title

    @property
    def width(self) -> int:
        """Number of components."""
        return self.condition.width

    @property
    def batch_r2(self) -> float:
        """Share of the variance that the batch explains beside the label, mean over components (each of variance 1)."""
        return _mean(self.components.batch)

    @property
    def label_r2(self) -> float:
        """Share of the variance that the label explains beside the batch, mean over components."""
        return _mean(self.components.label)


@dataclass(frozen=True)
class Entry:
    """One figure: a score of a condition in a direction, by a classifier, for a perturbation or "(all)"."""

    direction: str
    classifier: str
    score: str
    condition: str
    perturbation: str
    found: Mean


@dataclass(frozen=True)
class Plane:
    """A sample of rows in two components, for a plot."""

    title: str
    names: tuple[str, str]
    points: Floats


@dataclass(frozen=True)
class Views:
    """Planes, and the label and batch of each of their rows."""

    planes: tuple[Plane, ...]
    labels: tuple[str, ...]
    batches: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Deconfounding:
    """Does an embedding tell perturbations apart in batches never seen, and do its components part biology from batch?

    Attributes
    ----------
    name : str
        Of the embedding.
    n, width : int
        Rows in use, and columns.
    batches, labels : tuple of str
    control : str or None
        The label that the others are compared with; without one each is compared with all others.
    perturbations : dict of name -> (positive rows, negative rows)
    columns : tuple of str or None
        Names of the features, of a table.
    conditions : dict of name -> ConditionResult
        With `drop` also "kept": without the components that are dropped when all rows are looked at.
    scores : tuple of Entry
    tests : tuple of Paired
    alerts : tuple of Alert
    views : Views
    provenance : dict
    """

    name: str
    n: int
    width: int
    batches: tuple[str, ...]
    labels: tuple[str, ...]
    control: str | None
    perturbations: dict[str, tuple[int, int]]
    columns: tuple[str, ...] | None
    conditions: dict[str, ConditionResult]
    scores: tuple[Entry, ...]
    tests: tuple[Paired, ...]
    alerts: tuple[Alert, ...]
    views: Views
    provenance: dict[str, Any]

    @property
    def families(self) -> list[tuple[str, str]]:
        """Directions and classifiers there are scores of, in order; last those that used no component anywhere."""
        found = dict.fromkeys((e.direction, e.classifier) for e in self.scores)
        used = {
            (e.direction, e.classifier)
            for e in self.scores
            if e.score == "sparsity" and e.perturbation == ALL and not math.isnan(e.found.mean)
        }
        return sorted(found, key=lambda family: family not in used)

    def score_names(self, direction: str, classifier: str) -> list[str]:
        """Scores of a direction and classifier."""
        return list(
            dict.fromkeys(e.score for e in self.scores if (e.direction, e.classifier) == (direction, classifier))
        )

    def mean(
        self,
        condition: str,
        score: str = "auroc",
        perturbation: str = ALL,
        *,
        direction: str | None = None,
        classifier: str | None = None,
    ) -> Mean:
        """One figure; the first direction and classifier by default."""
        family = self.families[0]
        wanted = (direction or family[0], classifier or family[1], score, condition, perturbation)
        for e in self.scores:
            if (e.direction, e.classifier, e.score, e.condition, e.perturbation) == wanted:
                return e.found
        raise InputError(f"There is no figure for {wanted}: see the entries of `scores`.")

    def test(
        self,
        first: str,
        second: str,
        score: str = "auroc",
        perturbation: str = ALL,
        *,
        direction: str | None = None,
        classifier: str | None = None,
    ) -> Paired:
        """The comparison of two conditions; the first direction and classifier by default."""
        family = self.families[0]
        wanted = (direction or family[0], classifier or family[1], score, perturbation, first, second)
        for t in self.tests:
            if (t.direction, t.classifier, t.score, t.perturbation, t.first, t.second) == wanted:
                return t
        raise InputError(f"There is no test for {wanted}: see the entries of `tests`.")

    def transform(
        self, X: Any, condition: str = "ica", *, drop_technical: bool = False, key: str | None = None
    ) -> Floats:
        """Components of rows, in float32, of the embedding that was evaluated or of others like it.

        Parameters
        ----------
        X : array, tensor, DataFrame, AnnData, path or Rows, of shape (n, d)
            Of a table, the columns that were evaluated are found by name.
        condition : str
        drop_technical : bool
            Leave out the components that are named technical.
        key : str, optional
            Entry to read, as of `deconfound`.
        """
        if condition not in self.conditions:
            raise InputError(unknown("condition", condition, self.conditions))
        rows, found = open_again(X, key, self.columns), self.conditions[condition]
        if rows.shape[1] != self.width:
            raise InputError(f"{rows.name} has {rows.shape[1]} columns; {self.width} were evaluated.")
        which = np.flatnonzero(~found.components.technical) if drop_technical else None
        return View(rows, found.condition).take(np.arange(rows.shape[0]), which)

    def table(self) -> list[dict[str, Any]]:
        """All figures as records, for a data frame."""
        return [
            {
                **{k: getattr(e, k) for k in ("direction", "classifier", "score", "condition", "perturbation")},
                "mean": e.found.mean,
                "se": e.found.se,
                "splits": e.found.splits[0],
            }
            for e in self.scores
        ]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (NaN becomes null)."""
        plain: dict[str, Any] = {
            "name": self.name,
            "n": self.n,
            "width": self.width,
            "batches": list(self.batches),
            "labels": list(self.labels),
            "control": self.control,
            "perturbations": {k: {"positives": p, "negatives": q} for k, (p, q) in self.perturbations.items()},
            "conditions": {name: self._condition_dict(c) for name, c in self.conditions.items()},
            "scores": [
                {**asdict(e), "found": {**asdict(e.found), "values": list(e.found.values)}} for e in self.scores
            ],
            "tests": [asdict(t) for t in self.tests],
            "alerts": [asdict(a) for a in self.alerts],
            "provenance": self.provenance,
        }
        cleaned: dict[str, Any] = finite(plain)
        return cleaned

    def _condition_dict(self, c: ConditionResult) -> dict[str, Any]:
        a = c.components
        return {
            "title": c.title,
            "width": c.width,
            "batch_r2": c.batch_r2,
            "label_r2": c.label_r2,
            "mixing": c.mixing._asdict(),
            "map": {
                "value": c.replicates.value,
                "chance": c.replicates.chance,
                "per_label": {self.labels[code]: v for code, v in c.replicates.per_label.items()},
            },
            "components": {
                "batch": a.batch.tolist(),
                "label": a.label.tolist(),
                "kinds": a.kinds,
                "ranked": a.ranked.tolist(),
            },
        }

    def __repr__(self) -> str:
        first = {e.condition: e.found for e in self.scores if (e.direction, e.classifier) == self.families[0]}
        told = ", ".join(f"{name} {self.mean(name).mean:.3f}" for name in first)
        return f"<Deconfounding {self.name}: AUROC in held-out batches {told}>"

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page."""
        from nearid.questions.deconfound.page import write_report

        write_report(self, path)

    def __str__(self) -> str:
        from nearid.questions.deconfound.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from nearid.questions.deconfound.page import fragment

        return fragment(self)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
