"""What pairs of predictive models say: whether they agree more with training, images and width, and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nearid.lab.framework.claims import Claim, Outcome, Status, all_of, at_least, exceeds
from nearid.lab.framework.figures import Coordinates, Scatter, Slot
from nearid.lab.papers.roeder.radial import CARRIED

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result
    from nearid.lab.papers.roeder.cpc import Parameters

# f and g, and the scores that compare two of each.
ENCODERS = {"f": "cca_f", "g": "cca_g"}


def _rises(found: Result, more: tuple[str, str], less: tuple[str, str]) -> Outcome:
    """Whether one CCA is above another, for f and g; both are a row and the end of a column's key."""
    return all_of(*(exceeds(found, (more[0], key + more[1]), (less[0], key + less[1])) for key in ENCODERS.values()))


def _with_training(found: Result) -> Outcome:
    return _rises(found, ("base", ""), ("base", "_start"))


def _with_images(found: Result) -> Outcome:
    return _rises(found, ("base", ""), (f"images-{min(found.parameters.sizes)}", ""))


def _with_own_images(found: Result) -> Outcome:
    sizes = found.parameters.sizes
    if len(sizes) < 2:
        return Outcome(Status.NOT_TESTABLE, "Needs two numbers of images to compare (--set sizes=300,3000).")
    return _rises(found, (f"own-{max(sizes)}", ""), (f"own-{min(sizes)}", ""))


def _with_width(found: Result) -> Outcome:
    by_width = sorted(_widths(found.parameters).items())
    return _rises(found, (by_width[-1][1], ""), (by_width[0][1], ""))


def _widths(p: Parameters) -> dict[int, str]:
    """Keys of the rows by their width."""
    return {w: f"width-{w}" for w in p.widths} | {p.width: "base"}


def _constructed(found: Result) -> Outcome:
    return at_least(found, "base", "r2_heads", CARRIED)


def figures(found: Result) -> list[Slot]:
    """Canonical correlations before and after training, and their mean by the number of images and by width."""
    p = found.parameters
    slots: list[Slot] = []
    for finished in found.of_row("base")[:1]:
        curves = {
            f"{name}, {when}": (list(range(1, len(values) + 1)), values)
            for name in ENCODERS
            for when, values in finished.data["views"][name].items()
        }
        slots.append(
            Scatter(
                "Canonical correlations of two runs",
                "Fig. 3b: held out, in the order of the fitted ones, of the first pair of the first row.",
                "direction",
                "correlation",
                {},
                curves,
            )
        )
    same = {n: f"images-{n}" for n in p.sizes} | {p.images: "base"}
    own = {n: f"own-{n}" for n in p.sizes}
    by_images = {
        f"{name}, {who}": (key, rows)
        for name, key in ENCODERS.items()
        for who, rows in (("the same images", same), ("images of their own", own))
    }
    by_width = {
        f"{name}, {when}": (key + end, _widths(p))
        for name, key in ENCODERS.items()
        for when, end in (("trained", ""), ("untrained", "_start"))
    }
    if any(found.of_row(row) for row in same.values()):
        slots.append(
            _means(
                "Agreement by the number of images",
                "Fig. 3c: a point for each pair of runs, and their means.",
                "images",
                found,
                by_images,
            )
        )
    if any(found.of_row(row) for row in _widths(p).values()):
        slots.append(
            _means(
                "Agreement by width",
                "Fig. 3d: a point for each pair of runs, and their means, beside those of the same networks untrained.",
                "width",
                found,
                by_width,
            )
        )
    return slots


def _means(
    title: str, caption: str, x: str, found: Result, groups: Mapping[str, tuple[str, Mapping[int, str]]]
) -> Scatter:
    """Scores of rows over their number of images or their width, on a scale of powers of two."""
    points: dict[str, Coordinates] = {}
    curves: dict[str, Coordinates] = {}
    for name, (key, rows) in groups.items():
        values = {n: list(found.scores(row, key).values()) for n, row in sorted(rows.items())}
        values = {n: known for n, known in values.items() if known}
        if values:
            pairs = [(math.log2(n), value) for n, known in values.items() for value in known]
            points[name] = [n for n, _ in pairs], [value for _, value in pairs]
            curves[f"{name}, mean"] = [math.log2(n) for n in values], [float(np.mean(k)) for k in values.values()]
    return Scatter(title, caption, f"log2 of the {x}", "mean CCA, held out", points, curves)


CLAIMS = (
    Claim("CCA rises with training, for f and g: above that of untrained networks.", _with_training),
    Claim("CCA rises with the number of images, the same ones for both runs.", _with_images),
    Claim("CCA rises with the number of images where each run has images of its own.", _with_own_images),
    Claim("CCA rises with width.", _with_width),
    Claim(
        "The linear map that the proof builds from the g of two runs alone carries the f of one to the other's "
        f"(held out, R2 at least {CARRIED}).",
        _constructed,
    ),
)
