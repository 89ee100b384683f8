"""A number for each pair of runs, with the names of the runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearid.base.errors import InputError
from nearid.moments import Floats


@dataclass(frozen=True, repr=False, eq=False)
class Matrix:
    """Source x target matrix with the names of the runs on both sides; NumPy functions take it as an array.

    Attributes
    ----------
    title : str
        What the numbers are.
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

    def __repr__(self) -> str:
        heads = ["source \\ target", *self.names]
        lines = [heads, *([name, *_numbers(row)] for name, row in zip(self.names, self.values, strict=True))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        body = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
        return "\n".join([self.title, *body])

    def _repr_html_(self) -> str:
        from nearid.questions.compare.page import matrix_fragment

        return matrix_fragment(self)


def _numbers(row: Floats) -> list[str]:
    return ["-" if np.isnan(value) else f"{value:.4g}" for value in row]
