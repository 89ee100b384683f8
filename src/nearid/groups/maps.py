"""Fitted maps: immutable results that carry rows from the source's space to the target's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from nearid.moments import Floats, PairMoments


@dataclass(frozen=True)
class Map(ABC):
    """What every fitted map offers: y is estimated by (x - source_centre) A + target_centre."""

    source_centre: Floats
    target_centre: Floats

    @property
    @abstractmethod
    def matrix(self) -> Floats:
        """A, of shape (p, q)."""

    @abstractmethod
    def turn(self, centred: Floats) -> Floats:
        """Apply A alone to rows that are centred already."""

    @abstractmethod
    def rescaled(self, source: Floats, target: float, dtype: np.dtype) -> Map:
        """The same map with source columns in units of `source` and the target in units of `target`."""


@dataclass(frozen=True)
class DenseMap(Map):
    """A map with a full matrix."""

    coefficients: Floats

    @property
    def matrix(self) -> Floats:
        """The matrix of shape (p, q)."""
        return self.coefficients

    def turn(self, centred: Floats) -> Floats:
        """Apply the matrix to centred rows."""
        return centred @ self.coefficients

    def rescaled(self, source: Floats, target: float, dtype: np.dtype) -> DenseMap:
        """The same map in other units and precision."""
        matrix = np.ascontiguousarray(self.coefficients * (source / target)[:, None], dtype=dtype)
        return DenseMap(self.source_centre, self.target_centre, matrix)


@dataclass(frozen=True)
class MatchMap(Map):
    """A map that sends each target column to at most one source column: y_j = weight_j * x_(column_j).

    Attributes
    ----------
    columns : ndarray of int, shape (q,)
        Source column of each target column; where there is none the weight is 0.
    weights : ndarray of shape (q,)
        Sign times scale.
    width : int
        Number of source columns p.
    """

    columns: np.ndarray
    weights: Floats
    width: int

    def turn(self, centred: Floats) -> Floats:
        """Pick and weigh the matched columns of centred rows."""
        picked = np.take(centred, self.columns, axis=1)
        picked *= self.weights
        return picked

    @property
    def matrix(self) -> Floats:
        """The matching as a matrix of shape (p, q)."""
        full = np.zeros((self.width, len(self.columns)))
        full[self.columns, np.arange(len(self.columns))] = self.weights
        return full

    def rescaled(self, source: Floats, target: float, dtype: np.dtype) -> MatchMap:
        """The same map in other units and precision."""
        weights = (self.weights * (source[self.columns] / target)).astype(dtype)
        return MatchMap(self.source_centre, self.target_centre, self.columns, weights, self.width)


def squared_errors(fitted: Map, moments: PairMoments) -> Floats:
    """Sum over rows of the squared error of each target column, shape (q,), from the moments of the rows."""
    matrix = fitted.matrix
    miss = (moments.mean_y - fitted.target_centre) - (moments.mean_x - fitted.source_centre) @ matrix
    about_mean = (
        np.diag(moments.yy) - 2 * np.sum(matrix * moments.xy, axis=0) + np.sum(matrix * (moments.xx @ matrix), axis=0)
    )
    # Rounding may leave an error of nothing below zero.
    found: Floats = np.clip(about_mean, 0, None) + moments.n * miss**2
    return found


def apply(fitted: Map, x: Floats) -> Floats:
    """Carry rows of shape (n, p) to the target's space, shape (n, q)."""
    return fitted.turn(np.asarray(x, dtype=np.float64) - fitted.source_centre) + fitted.target_centre
