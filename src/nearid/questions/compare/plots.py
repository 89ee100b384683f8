"""What questions share whose figures are not yet those of a View."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearid.show.figures import CHANCE, SOURCE, TARGET, Drawing as Figure, figure, plain, wrapped

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison

__all__ = ["CHANCE", "SOURCE", "TARGET", "Figure", "figure", "ladder", "plain", "wrapped"]


def ladder(c: Comparison) -> Figure:
    """Mean epsilon of each group with its interval, beside chance."""
    return c.view.figures[0].draw()
