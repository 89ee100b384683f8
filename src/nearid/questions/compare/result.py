"""Results of a comparison: of two runs, of all pairs of several runs, and a matrix of them."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.jsonable import plain
from nearid.groups.ladder import GROUPS
from nearid.measures.diameter import Diameter
from nearid.moments import Floats
from nearid.questions.compare.best import Best, extremes
from nearid.questions.compare.efficiency import Efficiency
from nearid.questions.compare.errors import Similarities
from nearid.questions.compare.unmixing import Benefit
from nearid.questions.compare.verdict import LEAST_EXPLAINED, ROUNDING, GroupResult, Verdict
from nearid.show.alerts import joined
from nearid.show.result import Result

if TYPE_CHECKING:
    from nearid.questions.compare.view import Views
    from nearid.show.view import View

# Values that a matrix of runs can show.
MATRICES = {"epsilon": "Mean epsilon, held out", "r2": "R2, held out", "chance": "Mean epsilon by chance"}
# Root-mean-square errors below this share of the spread count as 0 in both directions, with a margin for the bootstrap.
NONE = ROUNDING / 2
# A rigid motion clearly fails if its error is larger than this.
FAR = 10 * ROUNDING


@dataclass(frozen=True)
class Direction:
    """Status of the other direction.

    Attributes
    ----------
    status : {"same", "differs", "not computed", "cannot differ"}
    text : str
        A sentence for the headline ("differs") or below it ("not computed"); otherwise empty.
    """

    status: Literal["same", "differs", "not computed", "cannot differ"]
    text: str


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Result):
    """Result of `compare` for two runs: the group up to which they are the same, and how closely.

    Attributes
    ----------
    names : tuple of str
        Source and target.
    n : int
        Pairs of rows in use.
    dims : tuple of int
        Columns of source and target.
    verdict : Verdict
    groups : dict of name -> GroupResult
        Held-out values in the order of the ladder; then ica, which is not part of the ladder.
    similarity, chance_similarity : Similarities
        CCA, SVCCA (both held out) and debiased CKA; and the same with permuted rows.
    diameter : Diameter
        Of the target.
    efficiency : Efficiency or None
        Of ICA, if the group ica was compared.
    benefit : Benefit or None
        Whether matched components of ICA are more alike than matched columns, if the groups permutation and ica were
        compared.
    in_sample : dict of name -> GroupResult, or None
        Values on the training rows, with ``in_sample=True``.
    in_sample_similarity : Similarities or None
    reverse : Comparison or None
        Target to source, with ``symmetric=True``.
    one_way : Verdict or None
        Verdict of source to target alone, with ``symmetric=True``; `verdict` is then the one that holds in both
        directions.
    bulk : Comparison or None
        The comparison without a few rows that have more than half of the variance of a side, if its verdict differs.
        `verdict` is then that of `bulk`. All other values are of all rows.
    outlying_rows : tuple of int
        Positions of these rows in the source; empty without `bulk`.
    alerts : list of Alert
    provenance : dict
        What made the result.
    by_chance : ndarray of shape (repetitions, groups)
        R2 of every group with the target's rows in another order; not in `to_dict`.
    own_order : ndarray of shape (groups,)
        R2 of every group with the rows in their own order, measured like `by_chance`; not in `to_dict`.
    unmeasured : str
        Why chance cannot be measured, as the beginning of a sentence; empty if it can.
    views : Views
        Data of the figures of the report.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> comparison = nearid.compare(x, 3 * x[:, ::-1])
    >>> comparison.verdict.group, round(comparison.groups["permutation"].r2.value, 6)
    ('permutation', 1.0)
    """

    names: tuple[str, str]
    n: int
    dims: tuple[int, int]
    verdict: Verdict
    groups: dict[str, GroupResult]
    similarity: Similarities
    chance_similarity: Similarities
    diameter: Diameter
    efficiency: Efficiency | None
    benefit: Benefit | None
    in_sample: dict[str, GroupResult] | None
    in_sample_similarity: Similarities | None
    reverse: Comparison | None
    one_way: Verdict | None
    bulk: Comparison | None
    outlying_rows: tuple[int, ...]
    alerts: list[Alert]
    provenance: dict[str, Any]
    by_chance: Floats
    own_order: Floats
    unmeasured: str
    views: Views

    _drawn_only: ClassVar[tuple[str, ...]] = ("by_chance", "own_order", "views")

    @property
    def decided_by_reverse(self) -> bool:
        """Whether the verdict is that from target to source, because this direction is the worse one."""
        if self.one_way is None or self.reverse is None:
            return False
        there, back, joint = ((v.group, v.strength) for v in (self.one_way, self.reverse.verdict, self.verdict))
        return joint == back != there

    @property
    def other_direction(self) -> Direction:
        """Whether the verdict from target to source is known, and whether it differs."""
        if self.reverse is not None and self.one_way is not None:
            there, back = self.one_way, self.reverse.verdict
            if (there.group, there.strength) == (back.group, back.strength):
                return Direction("same", "")
            x, y = self.names
            text = f"The directions differ: {_reached(there)} from {x} to {y}, {_reached(back)} from {y} to {x}"
            return Direction("differs", text)
        if self._cannot_differ():
            return Direction("cannot differ", "")
        return Direction(
            "not computed", "The other direction was not computed and may differ: use --symmetric (symmetric=True)"
        )

    @property
    def judged(self) -> Comparison:
        """The comparison that gave the verdict: `bulk`, or this one."""
        return self.bulk or self

    def _cannot_differ(self) -> bool:
        """Whether the other direction certainly has the same verdict.

        Errors are those of the target, so the two directions may have different verdicts. Three cases leave no doubt:

        - a permutation or rigid motion between the same number of columns with almost no error: its inverse is as good;
        - a linear map with almost no error and all canonical correlations close to 1, if a rigid motion clearly fails:
          its inverse is as good, and Procrustes errors are the same in both directions;
        - no relation at all: the squared canonical correlations bound what any linear map explains, in both directions.
        """
        similarity, groups = self.judged.similarity, self.judged.groups
        group, correlations = self.verdict.group, similarity.correlations
        if group == "none":
            # If only some canonical directions were computed, there is no bound.
            every = min(similarity.directions["cca"]) == min(self.dims)
            return every and bool(np.max(np.abs(correlations), initial=0.0) ** 2 < LEAST_EXPLAINED)
        missed = {name: np.sqrt(max(1 - g.r2.value, 0.0)) for name, g in groups.items()}
        if self.dims[0] != self.dims[1] or missed[group] > NONE:
            return False
        if group in ("permutation", "rigid"):
            return True
        whole = len(correlations) == self.dims[0] and np.min(correlations) >= np.sqrt(1 - NONE**2)
        return bool(group == "linear" and whole and missed.get("rigid", np.inf) > FAR)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (NaN becomes null)."""
        written = {**super().to_dict(), "other_direction": asdict(self.other_direction)}
        if written["reverse"]:
            # In a result with both directions, the other direction of the second is the first.
            del written["reverse"]["other_direction"]
        return written

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for c in (self,) if self.reverse is None else (self, self.reverse):
            verdict = self.one_way or c.verdict if c is self else c.verdict
            for g in c.groups.values():
                record: dict[str, Any] = {"source": c.names[0], "target": c.names[1], "group": g.name}
                for name, e in (("epsilon", g.epsilon), ("r2", g.r2)):
                    bounds = {f"{name}_{bound}": getattr(e, bound) for bound in ("low", "high", "chance")}
                    record |= {name: e.value, **bounds}
                record |= {"median": g.median, "q95": g.q95, "max": g.max, "is_verdict": g.name == verdict.group}
                records.append(record)
        return records

    def matrix(self, group: str, what: str = "epsilon") -> Matrix:
        """Source x target matrix of the two runs, as in `Comparisons`.

        Parameters
        ----------
        group : str
            A group that was compared, such as "rigid".
        what : {"epsilon", "r2", "chance"}, default="epsilon"
            The mean error over the diameter, the explained share of the variance, or the R2 by chance.

        Returns
        -------
        Matrix
            One row for each source and one column for each target.
        """
        return Comparisons(self.names, ((0, 1),), (self,)).matrix(group, what)

    def _view(self) -> View:
        from nearid.questions.compare.view import view

        return view(self)


def _reached(verdict: Verdict) -> str:
    if verdict.group == "none":
        return "up to no group"
    return f"{verdict.strength} up to a {GROUPS[verdict.group].title}"


@dataclass(frozen=True, repr=False, eq=False)
class Comparisons(Result, Sequence[Comparison]):
    """Several comparisons: all pairs of some runs, or one pair at several layers.

    Attributes
    ----------
    names : tuple of str
        The runs.
    pairs : tuple of (int, int)
        Source and target run of each comparison.
    results : tuple of Comparison

    Examples
    --------
    >>> import nearid, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> comparisons = nearid.compare(x, 2 * x, x ** 2, names=["a", "b", "c"])
    >>> [c.verdict.group for c in comparisons]
    ['permutation', 'none', 'none']
    >>> best = comparisons.best("linear")
    >>> best.source, best.target, best.pairs, best.p_value
    ('a', 'b', 3, 0.01)
    """

    names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    results: tuple[Comparison, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.results)

    @property
    def alerts(self) -> list[Alert]:  # type: ignore[override]
        """Alerts of all pairs. Alerts that differ only in numbers and names are merged, with the range of numbers."""
        return joined([(c.names, c.alerts) for c in self.results])

    @property
    def provenance(self) -> dict[str, Any]:  # type: ignore[override]
        """Provenance of the first pair, with the inputs of all pairs."""
        inputs = {run["name"]: run for c in self.results for run in c.provenance["inputs"]}
        return {**self.results[0].provenance, "inputs": list(inputs.values())}

    def matrix(self, group: str, what: str = "epsilon") -> Matrix:
        """Source x target matrix of a group's mean "epsilon", its "r2" or its "chance", with the names of the runs.

        Errors are not symmetric: below the diagonal there are numbers only with ``symmetric=True``, otherwise NaN. The
        diagonal is 0 (1 for "r2"). An entry is found by names or positions, ``matrix["a.npy", "b.npy"]``;
        ``np.asarray(matrix)`` is the bare array and ``matrix.to_frame()`` a pandas DataFrame.

        Parameters
        ----------
        group : str
            A group that was compared, such as "rigid".
        what : {"epsilon", "r2", "chance"}, default="epsilon"
            The mean error over the diameter, the explained share of the variance, or the R2 by chance.

        Returns
        -------
        Matrix
            One row for each source and one column for each target.
        """
        group = self._known(group)
        if what not in MATRICES:
            raise InputError(f"There is no matrix of {what!r}. Choose epsilon, r2 or chance.")
        full = np.full((len(self.names), len(self.names)), np.nan)
        np.fill_diagonal(full, 1.0 if what == "r2" else 0.0)
        for (i, j), c in zip(self.pairs, self.results, strict=True):
            for a, b, result in ((i, j, c), (j, i, c.reverse)):
                if result is not None:
                    g = result.groups[group]
                    full[a, b] = g.epsilon.chance if what == "chance" else getattr(g, what).value
        return Matrix(f"{MATRICES[what]}, {self.results[0].groups[group].title}", self.names, full)

    def best(self, group: str) -> Best | None:
        """The pair with the largest R2 of a group; its interval accounts for the choice among all pairs.

        With ``symmetric=True`` both directions count. None if there are too few rows to estimate the group.

        Parameters
        ----------
        group : str
            A group that was compared, such as "rigid".

        Returns
        -------
        Best or None
            Source, target, and R2 with its interval. None if there are too few rows to estimate the group.
        """
        found = extremes(self.results, self._known(group))
        return None if found is None else found[0]

    def worst(self, group: str) -> Best | None:
        """The pair with the smallest R2 of a group; its interval accounts for the choice among all pairs.

        Parameters
        ----------
        group : str
            A group that was compared, such as "rigid".

        Returns
        -------
        Best or None
            Source, target, and R2 with its interval. None if there are too few rows to estimate the group.
        """
        found = extremes(self.results, self._known(group))
        return None if found is None else found[1]

    def _known(self, group: str) -> str:
        known = list(self.results[0].groups)
        if group not in known:
            raise InputError(f"{group!r} was not compared; the groups are {', '.join(known)}.")
        return group

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        groups = list(self.results[0].groups)
        return {
            "names": list(self.names),
            "epsilon": {g: plain(self.matrix(g).values) for g in groups},
            "r2": {g: plain(self.matrix(g, "r2").values) for g in groups},
            "best": {g: plain(self.best(g)) for g in groups},
            "worst": {g: plain(self.worst(g)) for g in groups},
            "verdicts": [[*pair, c.verdict.group] for pair, c in zip(self.pairs, self.results, strict=True)],
            "pairs": [c.to_dict() for c in self.results],
            "alerts": plain(self.alerts),
            "provenance": plain(self.provenance),
        }

    def _records(self) -> list[dict[str, Any]]:
        return [record for c in self.results for record in c._records()]

    def _view(self) -> View:
        from nearid.questions.compare.view import overview

        return overview(self)


@dataclass(frozen=True, repr=False, eq=False)
class Matrix:
    """Source x target matrix with the names of the runs on both sides; NumPy functions take it as an array.

    Attributes
    ----------
    title : str
        Description of the numbers.
    names : tuple of str
        The runs, in the order of rows and columns.
    values : array of shape (runs, runs)

    Examples
    --------
    >>> import nearid, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> matrix = nearid.compare(x, 2 * x, -x, names=["a", "b", "c"]).matrix("rigid", "r2")
    >>> round(float(matrix["a", "b"]), 6), np.asarray(matrix).shape
    (1.0, (3, 3))
    """

    title: str
    names: tuple[str, ...]
    values: Floats

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Floats]:
        return iter(self.values)

    def __getitem__(self, index: Any) -> Any:
        """The entry of a source and a target, by name or as in an array."""
        parts = index if isinstance(index, tuple) else (index,)
        return self.values[tuple(self._place(part) if isinstance(part, str) else part for part in parts)]

    def _place(self, name: str) -> int:
        places = [k for k, known in enumerate(self.names) if known == name]
        if len(places) != 1:
            raise InputError(
                f"{len(places) or 'No'} runs are called {name!r}; use a position instead. The names are "
                f"{', '.join(self.names)}."
            )
        return places[0]

    def to_frame(self) -> Any:
        """As a pandas DataFrame: sources as its index, targets as its columns."""
        try:
            import pandas
        except ImportError:
            raise InputError("A DataFrame needs pandas. Install it: pip install pandas") from None
        names = [pandas.Index(self.names, name=name) for name in ("source", "target")]
        return pandas.DataFrame(self.values, *names)

    def _lines(self) -> list[list[str]]:
        numbers = [["-" if np.isnan(value) else f"{value:.4g}" for value in row] for row in self.values]
        return [
            ["source \\ target", *self.names],
            *([name, *row] for name, row in zip(self.names, numbers, strict=True)),
        ]

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        body = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
        return "\n".join([self.title, *body])

    def _repr_html_(self) -> str:
        rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in line) for line in self._lines()]
        return f"<table><caption>{html.escape(self.title)}</caption><tr>{'</tr><tr>'.join(rows)}</tr></table>"
