"""The result of deconfounding: scores, tests, batch and label shares of components, and mixing of batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.errors import InputError, unknown
from nearid.base.jsonable import plain
from nearid.measures.conservation import Conservation
from nearid.measures.neighbourhoods import Mixing
from nearid.measures.replicates import Replicates
from nearid.moments import Floats
from nearid.questions.deconfound.attribution import Attribution
from nearid.questions.deconfound.cleaning import Cleaning
from nearid.questions.deconfound.conditions import ComponentRows, Condition
from nearid.questions.deconfound.design import open_again
from nearid.questions.deconfound.features import NO_FEATURES, Features
from nearid.questions.deconfound.paired import ALL, MeanScore, Paired
from nearid.questions.deconfound.partition import PARTS, Partition, Shares
from nearid.questions.deconfound.position import PositionShares
from nearid.show.result import Result

if TYPE_CHECKING:
    from nearid.show.view import View

Record = TypeVar("Record", MeanScore, Paired)


@dataclass(frozen=True)
class ConditionResult:
    """Results of one condition besides its scores: shares of its components, and mixing of batches.

    Attributes
    ----------
    condition : Condition
        The map that gives the components.
    components : Attribution
        Shares of batch and label in each component.
    mixing : Mixing
        Mixing of batches within labels.
    replicates : Replicates
        How well replicates are found among all rows of other batches.
    activity : Replicates or None
        The same among replicates and controls of other batches, if there are controls.
    partition : Partition
        The variance of each component, split between batch and label.
    doubts : tuple of str
        For each independent component, why it should not be interpreted on its own; "" if it can be. Empty for the
        other conditions, whose components follow from the variances or are random.
    features : Features
        Columns that the technical ones of the independent components are most correlated with.
    position : PositionShares or None
        What the position on the plate explains of each component, if it is known.
    conservation : Conservation or None
        Figures of scib-metrics, on a sample of rows.
    """

    condition: Condition
    components: Attribution
    mixing: Mixing
    replicates: Replicates
    activity: Replicates | None
    partition: Partition
    doubts: tuple[str, ...] = ()
    features: Features = NO_FEATURES
    position: PositionShares | None = None
    conservation: Conservation | None = None

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
        """Share of the variance that the batch explains given the label, mean over components (each of variance 1)."""
        return _mean(self.components.batch)

    @property
    def label_r2(self) -> float:
        """Share of the variance that the label explains given the batch, mean over components."""
        return _mean(self.components.label)


@dataclass(frozen=True)
class Sizes:
    """Rows of a perturbation, and rows that it is compared with."""

    positives: int
    negatives: int


@dataclass(frozen=True)
class Plane:
    """A sample of rows in two components, for a plot."""

    title: str
    names: tuple[str, str]
    points: Floats


@dataclass(frozen=True)
class Drawings:
    """Planes, and the label and batch of each of their rows."""

    planes: tuple[Plane, ...]
    labels: tuple[str, ...]
    batches: tuple[str, ...]


@dataclass(frozen=True, repr=False, eq=False)
class Deconfounding(Result):
    """Result of `deconfound`: scores of classifiers in held-out batches, and components that follow biology or batch.

    Attributes
    ----------
    name : str
        Of the embedding.
    n, width : int
        Rows in use, and columns.
    batches, labels : tuple of str
    control : str or None
        Control label that the others are compared with. If None, each label is compared with all others.
    perturbations : dict of name -> Sizes
        Numbers of positive and negative rows.
    columns : tuple of str or None
        Names of the features, of a table.
    conditions : dict of name -> ConditionResult
        With `drop` also "kept_base": Base of cleaned rows, of all rows (without "base" it is "kept", PCA + ICA, or
        "kept_pca").
    variance : Shares
        Shares of the variance of the embedding, in its own scale: of batch alone, of label alone, of either (which
        cannot be told apart), and the rest; with intervals over batches.
    scores : tuple of MeanScore
    tests : tuple of Paired
        Of each two conditions.
    recognised : tuple of Paired
        AUROC within batches of each condition minus 0.5 (a guess); empty if no batch has both kinds of rows.
    neighbours : tuple of Paired
        Mixing of batches ("mixing") and replicate mAP ("map") of each condition against the first.
    alerts : tuple of Alert
    views : Drawings
    provenance : dict
    cleaning : Cleaning or None
        With `drop` or `out`: which components are dropped from the cleaned embedding, and what that costs.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> drug, plate = rng.integers(0, 2, 200), rng.integers(0, 4, 200)
    >>> x = rng.laplace(size=(200, 3)) + np.outer(drug, [2, 0, 0]) + np.outer(plate, [0, 1, 0])
    >>> result = nearid.deconfound(x, drug, plate, control=0, classifiers="logistic", directions="most")
    >>> result.conditions["ica"].components.kinds.count("technical")
    1
    >>> bool(result.mean("ica").mean > 0.8)
    True
    """

    name: str
    n: int
    width: int
    batches: tuple[str, ...]
    labels: tuple[str, ...]
    control: str | None
    perturbations: dict[str, Sizes]
    columns: tuple[str, ...] | None
    conditions: dict[str, ConditionResult]
    variance: Shares
    scores: tuple[MeanScore, ...]
    tests: tuple[Paired, ...]
    recognised: tuple[Paired, ...]
    alerts: tuple[Alert, ...]
    views: Drawings
    provenance: dict[str, Any]
    cleaning: Cleaning | None = None
    neighbours: tuple[Paired, ...] = ()

    _drawn_only: ClassVar[tuple[str, ...]] = ("views", "conditions")

    @property
    def families(self) -> list[tuple[str, str]]:
        """Directions and classifiers in order; those that could not be trained, so have no score, come last."""
        used = {
            (s.direction, s.classifier)
            for s in self.scores
            if s.score == "auroc" and s.perturbation == ALL and not math.isnan(s.mean)
        }
        every = dict.fromkeys((s.direction, s.classifier) for s in self.scores)
        return sorted(every, key=lambda family: family not in used)

    def score_names(self, direction: str, classifier: str) -> list[str]:
        """Scores of a direction and classifier.

        Parameters
        ----------
        direction, classifier : str
            A pair of `families`.

        Returns
        -------
        list of str
        """
        family = (direction, classifier)
        return list(dict.fromkeys(s.score for s in self.scores if (s.direction, s.classifier) == family))

    def mean(
        self,
        condition: str,
        score: str = "auroc",
        perturbation: str = ALL,
        *,
        direction: str | None = None,
        classifier: str | None = None,
    ) -> MeanScore:
        """The mean of a score. Default: of the first direction and classifier.

        Parameters
        ----------
        condition : str
            A key of `conditions`, such as "ica".
        score : str, default="auroc"
            One of `score_names`.
        perturbation : str, default="(all)"
            A label. Default: the mean over all labels.
        direction : str, optional
            Which batches train and which are held out, as in `families`. Default: the first.
        classifier : str, optional
            As in `families`. Default: the first.

        Returns
        -------
        MeanScore
            The mean with its standard error.
        """
        wanted = {"condition": condition, "score": score, "perturbation": perturbation}
        return self._one("score", self.scores, wanted, direction, classifier)

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
        """The comparison of two conditions. Default: of the first direction and classifier.

        Parameters
        ----------
        first, second : str
            Keys of `conditions`.
        score : str, default="auroc"
            One of `score_names`.
        perturbation : str, default="(all)"
            A label. Default: the mean over all labels.
        direction : str, optional
            Which batches train and which are held out, as in `families`. Default: the first.
        classifier : str, optional
            As in `families`. Default: the first.

        Returns
        -------
        Paired
            The difference, second minus first, with its interval and its p-value.
        """
        wanted = {"first": first, "second": second, "score": score, "perturbation": perturbation}
        return self._one("test", self.tests, wanted, direction, classifier)

    def _one(
        self,
        what: str,
        records: Sequence[Record],
        wanted: dict[str, str],
        direction: str | None,
        classifier: str | None,
    ) -> Record:
        usual = self.families[0]
        wanted = {**wanted, "direction": direction or usual[0], "classifier": classifier or usual[1]}
        for record in records:
            if all(getattr(record, name) == value for name, value in wanted.items()):
                return record
        raise InputError(f"There is no {what} with {wanted}. All are in the field `{what}s`, and in to_frame().")

    def transform(
        self, X: Any, condition: str = "ica", *, drop_technical: bool = False, key: str | None = None
    ) -> Floats:
        """Return the components, in float32, of rows of the evaluated embedding or of a similar one.

        Parameters
        ----------
        X : array, tensor, DataFrame, AnnData, path or Rows, of shape (n, d)
            In a table, the evaluated columns are found by name.
        condition : str
        drop_technical : bool
            Leave out the components that are named technical.
        key : str, optional
            Entry to read, as in `deconfound`. Default for AnnData: the entry that was evaluated.

        Returns
        -------
        ndarray of shape (n, components)
        """
        if condition not in self.conditions:
            raise InputError(unknown("condition", condition, self.conditions))
        evaluated = self.conditions[condition]
        if not evaluated.condition.own:
            raise InputError(
                f"{evaluated.title} is no map of single rows of the embedding, so it cannot be applied to others. "
                "Correct them with the package, and the controls, that made it."
            )
        rows = open_again(X, key, self.columns, self.provenance["options"]["key"])
        if rows.shape[1] != self.width:
            raise InputError(
                f"{rows.name} has {rows.shape[1]} columns, but {self.width} columns were evaluated. Give "
                f"the same columns."
            )
        components = ComponentRows(rows, evaluated.condition)
        if drop_technical:
            components = components.some(np.flatnonzero(~evaluated.components.technical))
        return components.take(np.arange(rows.shape[0]))

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (NaN becomes null)."""
        conditions = {name: self._plain(c) for name, c in self.conditions.items()}
        cleaning = plain(self.cleaning)
        if self.cleaning is not None:
            cleaning["partition"] = _plain_parts(self.cleaning.partition)
        own = {"variance": plain(self.variance._asdict()), "conditions": conditions, "cleaning": cleaning}
        return {**super().to_dict(), **own}

    def _plain(self, c: ConditionResult) -> dict[str, Any]:
        a = c.components
        described: dict[str, Any] = plain(
            {
                "title": c.title,
                "width": c.width,
                "batch_r2": c.batch_r2,
                "label_r2": c.label_r2,
                "mixing": {name: getattr(c.mixing, name) for name in ("value", "lisi", "rows")},
                "map": self._plain_map(c.replicates),
                **({} if c.conservation is None else {"scib": c.conservation._asdict()}),
                **({} if c.activity is None else {"map_controls": self._plain_map(c.activity)}),
                "components": {"batch": a.batch, "label": a.label, "kinds": a.kinds, "ranked": a.ranked}
                | ({"doubts": c.doubts} if c.doubts else {})
                | ({} if c.position is None else {"position": c.position.share, "position_p": c.position.p}),
                "partition": _plain_parts(c.partition),
                "features": {
                    "of_each": {k: [named._asdict() for named in each] for k, each in c.features.of_each.items()},
                    "of_all": [named._asdict() for named in c.features.of_all],
                },
            }
        )
        return described

    def _plain_map(self, found: Replicates) -> dict[str, Any]:
        named = {"per_label": found.per_label, "p": found.p, "p_adjusted": found.p_adjusted}
        by_label = {what: {self.labels[code]: v for code, v in each.items()} for what, each in named.items()}
        return {"value": found.value, "chance": found.chance, **by_label}

    def _records(self) -> list[dict[str, Any]]:
        names = ("direction", "classifier", "score", "condition", "perturbation", "mean", "se", "spread")
        return [{**{name: getattr(s, name) for name in names}, "splits": s.splits[0]} for s in self.scores]

    def _view(self) -> View:
        from nearid.questions.deconfound.view import view

        return view(self)


def _plain_parts(parts: Partition) -> dict[str, Any]:
    ends = {"value": parts.values, "low": parts.low, "high": parts.high}
    return {part: {name: plain(each[at]) for name, each in ends.items()} for at, part in enumerate(PARTS)}


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
