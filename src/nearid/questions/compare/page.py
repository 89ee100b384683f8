"""The page for one comparison or many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nearid.base.files import write_text
from nearid.questions.compare import plots
from nearid.questions.compare.html import check_report, environment, render

if TYPE_CHECKING:
    from nearid.questions.compare.matrix import Matrix
    from nearid.questions.compare.result import Comparison


def write_report(
    found: Sequence[Comparison], path: str | os.PathLike[str], title: str = "Are these the same representation?"
) -> None:
    """Write the page for some comparisons, atomically."""
    write_text(check_report(path), page(found, title))


def page(found: Sequence[Comparison], title: str = "Are these the same representation?") -> str:
    """The whole page as text."""
    sections: list[dict[str, Any]] = [{"c": c, "id": f"pair{k}", "figures": _figures(c)} for k, c in enumerate(found)]
    overview = _matrices(found)
    figures = {f"o{k}": f["figure"] for k, f in enumerate(overview)}
    for s in sections:
        figures.update({f"{s['id']}-{k}": f["figure"] for k, f in enumerate(s["figures"])})
    return render("comparison.html", title, figures, sections=sections, overview=overview)


def fragment(c: Comparison) -> str:
    """The tables alone, for a notebook."""
    return environment().get_template("fragment.html").render(c=c)


def matrix_fragment(matrix: Matrix) -> str:
    """A matrix of runs as a table, for a notebook."""
    return environment().get_template("matrix_fragment.html").render(matrix=matrix)


def _figures(c: Comparison) -> list[dict[str, Any]]:
    drawn = [
        ("How nearly: the ladder", plots.ladder(c), "Mean error of held-out rows over the target's diameter."),
        (
            "Both runs before and after alignment",
            plots.overlay(c),
            "A sample of rows in the target's first two principal components. Maps fitted on all rows.",
        ),
        ("Error of each row", plots.distributions(c), "Held out. A long right tail means a few rows disagree."),
        (
            "Matched columns",
            plots.matching(c),
            "Absolute correlation, columns in the order of their matches (strongest first, at most 64). A bright "
            "diagonal on a dark field is a permutation.",
        ),
        ("Spectra", plots.spectra(c), "Eigenvalues of each side's covariance."),
        ("Canonical correlations", plots.canonical(c), "Directions fitted on the other folds."),
    ]
    return [{"title": t, "figure": f, "caption": said} for t, f, said in drawn]


def _matrices(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Run x run heat maps where the comparisons are all pairs of three or more runs."""
    names = list(dict.fromkeys(n for c in found for n in c.names))
    if len(names) < 3 or len(found) != len(names) * (len(names) - 1) // 2:
        return []
    from nearid.questions.compare.result import Comparisons

    pairs = tuple((names.index(c.names[0]), names.index(c.names[1])) for c in found)
    table = Comparisons(tuple(names), pairs, tuple(found))
    return [
        {
            "title": f"Mean epsilon, {g}",
            "figure": plots.matrix(names, table.matrix(g).values, ""),
            "caption": "",
        }
        for g in found[0].groups
    ]
