"""Mergeable first and second moments of rows.

A block of rows becomes (n, mean, scatter); blocks merge exactly (Chan, Golub & LeVeque 1983), so folds, chunks,
threads and machines all reduce to sums of small matrices. The scatter is centred on the mean of its own rows and kept
in float64, which is what makes float32 rows with a large offset harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearid.errors import InputError

# A column whose spread is below this share of its mean is constant as far as float64 sums can tell.
CONSTANT = 64 * float(np.finfo(np.float64).eps)

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Moments:
    """Count, mean and centred scatter of rows.

    Attributes
    ----------
    n : int
        Number of rows.
    mean : ndarray of shape (d,)
    scatter : ndarray of shape (d, d)
        Sum over rows of (z - mean)(z - mean)^T.
    """

    n: int
    mean: Floats
    scatter: Floats

    @classmethod
    def of(cls, rows: ArrayLike) -> Moments:
        """Moments of one block of rows of shape (n, d)."""
        z = np.array(rows, dtype=np.float64, order="C")
        if not len(z):
            return cls.zero(z.shape[1])
        mean = z.mean(axis=0)
        z -= mean
        return cls.from_sums(len(z), z.sum(axis=0), z.T @ z, mean)

    @classmethod
    def from_sums(cls, n: int, first: Floats, second: Floats, shift: Floats) -> Moments:
        """Moments from sums of z - shift and of (z - shift)(z - shift)^T.

        Sums about one point add up over blocks without any correction. The shift must only lie among the rows: what
        cancels here is then no more than the spread of the rows themselves.
        """
        if not n:
            return cls.zero(len(first))
        gap = first / n
        return cls(n, shift + gap, second - n * np.outer(gap, gap))

    @classmethod
    def zero(cls, width: int) -> Moments:
        """Moments of no rows."""
        return cls(0, np.zeros(width), np.zeros((width, width)))

    def __add__(self, other: Moments) -> Moments:
        n = self.n + other.n
        if not self.n or not other.n:
            return self if self.n else other
        gap = other.mean - self.mean
        scatter = self.scatter + other.scatter
        scatter += (self.n * other.n / n) * np.outer(gap, gap)
        return Moments(n, self.mean + gap * (other.n / n), scatter)

    def __sub__(self, part: Moments) -> Moments:
        """Moments of the rows that are left when those of `part` are taken away."""
        n = self.n - part.n
        if not n:
            return Moments.zero(len(self.mean))
        gap = self.mean - part.mean
        mean = self.mean + gap * (part.n / n)
        scatter = self.scatter - part.scatter - (self.n * part.n / n) * np.outer(gap, gap)
        return Moments(n, mean, scatter)

    @property
    def covariance(self) -> Floats:
        """Scatter divided by n."""
        return self.scatter / self.n


def total(parts: Iterable[Moments]) -> Moments:
    """Merge moments in the order given, so that the result does not depend on who computed which part when."""
    return reduce(Moments.__add__, parts)


@dataclass(frozen=True)
class PairMoments:
    """Moments of paired rows (x, y), as the blocks that alignment needs.

    Attributes
    ----------
    n : int
    mean_x, mean_y : ndarray of shape (p,), (q,)
    xx, xy, yy : ndarray of shape (p, p), (p, q), (q, q)
        Centred sums of products.
    """

    n: int
    mean_x: Floats
    mean_y: Floats
    xx: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def split(cls, joint: Moments, width: int) -> PairMoments:
        """Cut the moments of concatenated rows [x, y], where x has `width` columns.

        The scatter of a constant column is rounding of its mean; it is set to zero here, once for all that follows.
        """
        s = joint.scatter
        still = np.diag(s) <= joint.n * (CONSTANT * joint.mean) ** 2
        if still.any():
            s = np.where(still | still[:, None], 0.0, s)
        return cls(
            joint.n, joint.mean[:width], joint.mean[width:], s[:width, :width], s[:width, width:], s[width:, width:]
        )

    @classmethod
    def of(cls, x: ArrayLike, y: ArrayLike) -> PairMoments:
        """Moments of paired blocks of rows."""
        x, y = np.asarray(x), np.asarray(y)
        if len(x) != len(y):
            raise InputError(f"Paired rows are needed: x has {len(x)} rows and y has {len(y)}.")
        return cls.split(Moments.of(np.hstack([x, y], dtype=np.float64)), x.shape[1])

    def swap(self) -> PairMoments:
        """The same pairs seen from the other side."""
        return PairMoments(self.n, self.mean_y, self.mean_x, self.yy, self.xy.T, self.xx)

    def about_origin(self) -> PairMoments:
        """Products about the origin in the place of the means: fits without a translation follow from these."""
        n, mx, my = self.n, self.mean_x, self.mean_y
        return PairMoments(
            n,
            np.zeros_like(mx),
            np.zeros_like(my),
            self.xx + n * np.outer(mx, mx),
            self.xy + n * np.outer(mx, my),
            self.yy + n * np.outer(my, my),
        )
