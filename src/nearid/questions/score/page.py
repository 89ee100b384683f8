"""The page for a score."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nearid.base.files import write_text
from nearid.questions.compare import plots
from nearid.questions.compare.html import check_report, environment, render
from nearid.questions.score import plots as scoring_plots
from nearid.questions.score.table import alerts, columns, headline, kind_of, lines, note, sizes

if TYPE_CHECKING:
    from nearid.questions.score.result import Score

TITLE = "Is this the true representation?"


def write_report(score: Score, path: str | os.PathLike[str]) -> None:
    """Write the page, atomically."""
    write_text(check_report(path), page(score))


def page(score: Score) -> str:
    """The whole page as text."""
    drawn = _figures(score)
    figures = {f"f{k}": f["figure"] for k, f in enumerate(drawn)}
    return render("scoring.html", TITLE, figures, drawn=drawn, **_context(score))


def fragment(score: Score) -> str:
    """The tables alone, for a notebook."""
    return environment().get_template("scoring_fragment.html").render(**_context(score))


def _context(score: Score) -> dict[str, Any]:
    both = [s for s in (score, score.resolved) if s is not None]
    return {
        "score": score,
        "both": [
            {"s": s, "headline": headline(s), "columns": columns(s), "kinds": [kind_of(f) for f in s.factors]}
            for s in both
        ],
        "lines": list(lines(score)),
        "alerts": list(alerts(score)),
        "in_sample": note(score),
        "sizes": sizes(score),
    }


def _figures(score: Score) -> list[dict[str, Any]]:
    both = [(label, s) for label, s in (("", score), (", after ICA", score.resolved)) if s is not None]
    one = len(both) == 1
    drawn = [("The measures", scoring_plots.overview(score), "Dots with 95% intervals; bars mark chance.", True)]
    for label, s in both:
        bars = scoring_plots.factor_bars(s)
        if bars["data"]:
            drawn.append((f"Each factor{label}", bars, "With 95% intervals.", one))
    for title, maps in scoring_plots.heat_maps([s for _, s in both]):
        said = "One bright entry in each row and column: a latent for each factor."
        drawn += [(f"{title}{label}", f, said, one) for (label, _), f in zip(both, maps, strict=True)]
    for label, s in both:
        points = scoring_plots.scatters(s)
        if points:
            drawn.append((f"Factors and their latents{label}", points, "A sample of rows; the matched latent.", True))
    for label, s in both:
        if s.structure is not None:
            said = "Mean error of held-out rows over the diameter of the factors (each of unit variance)."
            drawn.append((f"Up to which group{label}", plots.ladder(s.structure), said, one))
    return [{"title": t, "figure": f, "caption": said, "wide": wide} for t, f, said, wide in drawn]
