"""What a comparison returns: typed, immutable, printable, and plain data on request."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.jsonable import finite
from nearid.measures.diameter import Diameter
from nearid.moments import Floats
from nearid.questions.compare.direction import Direction, other_direction
from nearid.questions.compare.efficiency import Efficiency
from nearid.questions.compare.evaluate import Similarities
from nearid.questions.compare.matrix import Matrix
from nearid.questions.compare.verdict import Verdict

# What a matrix of runs shows.
MATRICES = {"epsilon": "Mean error / diameter, held out", "r2": "R2, held out", "chance": "Error / diameter by chance"}


@dataclass(frozen=True)
class Epsilon:
    """Per-row error over the target's diameter; `low` and `high` bound the mean (95%, NaN when in sample)."""

    mean: float
    median: float
    q95: float
    max: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class GroupResult:
    """How nearly one group makes the source the target.

    Attributes
    ----------
    name, title : str
    epsilon : Epsilon
    chance : float
        Mean epsilon with the target's rows permuted (NaN when in sample).
    r2, r2_low, r2_high : float
        Explained share of the target's variance, with a 95% interval.
    chance_r2 : float
        The largest explained share reached on permuted rows.
    degrees_of_freedom : int
    """

    name: str
    title: str
    epsilon: Epsilon
    chance: float
    r2: float
    r2_low: float
    r2_high: float
    chance_r2: float
    degrees_of_freedom: int


@dataclass(frozen=True)
class Views:
    """What the report draws.

    Attributes
    ----------
    epsilon_edges : ndarray of shape (bins + 1,)
    epsilon_counts : dict of name -> ndarray of shape (bins,)
    spectrum_x, spectrum_y : ndarray
        Eigenvalues of the covariances as shares of the total.
    correlation : ndarray of shape (<= 64, <= 64)
        |Correlation| of matched columns, target columns in the order of the strength of their match.
    matched : ndarray of shape (k, 2)
        Source and target column of each row and column of `correlation`.
    overlay : dict of title -> ndarray of shape (m, 2)
        The target and the source (as it is and aligned by each group) in the target's first two principal components.
    """

    epsilon_edges: Floats
    epsilon_counts: dict[str, Floats]
    spectrum_x: Floats
    spectrum_y: Floats
    correlation: Floats
    matched: np.ndarray
    overlay: dict[str, Floats]


@dataclass(frozen=True, repr=False)
class Comparison:
    """Are two runs the same representation: up to which group, and how nearly?

    Attributes
    ----------
    names : tuple of str
        Source and target.
    n : int
        Pairs of rows in use.
    dims : tuple of int
        Columns of source and target.
    groups : dict of name -> GroupResult
        Held out, from the smallest group to the largest; then ica, which stands beside the ladder.
    similarity, chance_similarity : Similarities
        CCA, SVCCA (both held out) and debiased CKA; and the same with permuted rows.
    diameter : Diameter
        Of the target.
    verdict : Verdict
    efficiency : Efficiency or None
        Of ICA, where it was asked for.
    alerts : list of Alert
    in_sample : dict of name -> GroupResult, or None
        The papers' convention, on request.
    in_sample_similarity : Similarities or None
    reverse : Comparison or None
        Target to source, with ``symmetric=True``.
    one_way : Verdict or None
        Of source to target alone, with ``symmetric=True``; `verdict` is then the worse of the two directions.
    provenance : dict
        What made the result.
    views : Views
    """

    names: tuple[str, str]
    n: int
    dims: tuple[int, int]
    groups: dict[str, GroupResult]
    similarity: Similarities
    chance_similarity: Similarities
    diameter: Diameter
    verdict: Verdict
    efficiency: Efficiency | None
    alerts: list[Alert]
    in_sample: dict[str, GroupResult] | None
    in_sample_similarity: Similarities | None
    reverse: Comparison | None
    provenance: dict[str, Any]
    views: Views
    one_way: Verdict | None = None

    @property
    def decided_by_reverse(self) -> bool:
        """Whether the verdict, the worse one of two directions, is that from target to source."""
        return self.one_way is not None and self.verdict != self.one_way

    @property
    def other_direction(self) -> Direction:
        """Whether the verdict from target to source is another one, is the same, or is not known."""
        return other_direction(self)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (NaN becomes null)."""
        plain: dict[str, Any] = {
            "names": list(self.names),
            "n": self.n,
            "dims": list(self.dims),
            "verdict": self.verdict.to_dict(),
            "other_direction": asdict(self.other_direction),
            "groups": {k: _group_dict(g) for k, g in self.groups.items()},
            **_similarity_dict(self.similarity, self.chance_similarity),
            "diameter": {k: v for k, v in asdict(self.diameter).items() if k != "pair"},
            "alerts": [asdict(a) for a in self.alerts],
            "provenance": self.provenance,
        }
        if self.in_sample is not None and self.in_sample_similarity is not None:
            plain["in_sample"] = {
                **{k: _group_dict(g) for k, g in self.in_sample.items()},
                **_similarity_dict(self.in_sample_similarity),
            }
        if self.efficiency is not None:
            plain["efficiency"] = asdict(self.efficiency)
        if self.reverse is not None:
            plain["reverse"] = self.reverse.to_dict()
            # Of a result with both directions, the other one of the second is the first.
            del plain["reverse"]["other_direction"]
        cleaned: dict[str, Any] = finite(plain)
        return cleaned

    def __repr__(self) -> str:
        said = f"{self.verdict.group} ({self.verdict.strength})"
        return (
            f"<Comparison {self.names[0]} -> {self.names[1]}: {said}, n={self.n}, d={self.dims[0]} -> {self.dims[1]}>"
        )

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page."""
        from nearid.questions.compare.page import write_report

        write_report([self], path)

    def __str__(self) -> str:
        from nearid.questions.compare.tables import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from nearid.questions.compare.page import fragment

        return fragment(self)


@dataclass(frozen=True, repr=False)
class Comparisons(Sequence[Comparison]):
    """Several comparisons: all pairs of some runs, or one pair at several layers.

    Attributes
    ----------
    names : tuple of str
        The runs.
    pairs : tuple of (int, int)
        Source and target run of each comparison.
    results : tuple of Comparison
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

    def __repr__(self) -> str:
        return f"<Comparisons of {len(self.names)} runs: {', '.join(c.verdict.group for c in self.results)}>"

    def matrix(self, group: str, what: str = "epsilon") -> Matrix:
        """Source x target matrix of a group's mean "epsilon", its "r2" or its "chance", with the names of the runs.

        Errors are not symmetric: below the diagonal there are numbers only with ``symmetric=True``, else NaN. The
        diagonal is 0 (1 for "r2"). An entry is found by names or positions, ``matrix["a.npy", "b.npy"]``;
        ``np.asarray(matrix)`` is the bare array and ``matrix.to_frame()`` a pandas DataFrame.
        """
        known = list(self.results[0].groups)
        if group not in known:
            raise InputError(f"{group!r} was not compared; the groups are {', '.join(known)}.")
        if what not in MATRICES:
            raise InputError(f"A matrix shows epsilon, r2 or chance, not {what!r}.")
        full = np.full((len(self.names), len(self.names)), np.nan)
        np.fill_diagonal(full, 1.0 if what == "r2" else 0.0)
        for (i, j), c in zip(self.pairs, self.results, strict=True):
            for a, b, result in ((i, j, c), (j, i, c.reverse)):
                if result is not None:
                    g = result.groups[group]
                    full[a, b] = g.epsilon.mean if what == "epsilon" else getattr(g, what)
        return Matrix(f"{MATRICES[what]}, {self.results[0].groups[group].title}", self.names, full)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        groups = list(self.results[0].groups)
        return {
            "names": list(self.names),
            "epsilon": {g: finite(self.matrix(g).values.tolist()) for g in groups},
            "r2": {g: finite(self.matrix(g, "r2").values.tolist()) for g in groups},
            "verdicts": [[*pair, c.verdict.group] for pair, c in zip(self.pairs, self.results, strict=True)],
            "pairs": [c.to_dict() for c in self.results],
        }

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page with every comparison."""
        from nearid.questions.compare.page import write_report

        write_report(list(self.results), path)

    def __str__(self) -> str:
        from nearid.questions.compare.tables import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        return "".join(c._repr_html_() for c in self.results)


def _group_dict(result: GroupResult) -> dict[str, Any]:
    plain = asdict(result)
    del plain["name"], plain["title"]
    return plain


def _similarity_dict(found: Similarities, chance: Similarities | None = None) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "cca": {"mean": float(np.mean(found.cca)), "all": found.cca.tolist()},
        "svcca": found.svcca,
        "cka": found.cka,
    }
    if chance is not None:
        plain["similarity_chance"] = {"cca": float(np.mean(chance.cca)), "svcca": chance.svcca, "cka": chance.cka}
    return plain
