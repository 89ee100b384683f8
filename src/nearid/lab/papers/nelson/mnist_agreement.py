"""What pairs of MNIST autoencoders say: which of them are kept, claims on these, and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nearid.lab.framework.cells import Finished
from nearid.lab.framework.claims import Claim, Outcome, all_of, at_most, decide
from nearid.lab.framework.estimate import Estimate
from nearid.lab.framework.figures import Scatter, Slot
from nearid.lab.papers.nelson.near_isometry import ORDERED, error_plot, fitted, ordered, pairs

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result

# What counts as a constant of 1, and which share of the error of the smallest leak may be left at the largest.
NEAR_ONE, LEFT = 1.01, 0.5
# Runs are dropped that reconstruct worse than this share of those at the reference leak.
SHARE = 0.95
# Rows of all digits and of one digit: the beginning of their keys, and who they are.
ALL, ONE = "leak", "digit"
GROUPS = {ALL: "all digits", ONE: "one digit"}
# What the paper says of its own filter.
DROPPED = {ALL: "11 of 60", ONE: "5 of 180"}
MEAN = ("lipschitz", "bi-Lipschitz constant, mean over samples")
MAXIMUM = ("lipschitz_max", "bi-Lipschitz constant, maximum over samples")
ERROR = ("rigid", "rigid error / diameter, held out")


def of_group(found: Result, group: str) -> list[Finished]:
    """Cells of all digits, or of one digit."""
    return [f for row in found.rows if row.key.startswith(f"{group}-") for f in found.of_row(row.key)]


def filtered(found: Result, group: str) -> tuple[list[Finished], list[Finished]]:
    """Cells that are kept, and those that are dropped because a run of theirs was trained badly.

    The paper's rule: the reconstruction error of either run exceeds the 95th percentile of the runs at the reference
    leak, among runs of the same digit where there is but one, as digits are not equally hard. The percentile is one of
    the errors, not a value between two: with few runs it is the largest. Where that leak was not run, all are kept.
    """
    cells = of_group(found, group)
    bounds: dict[int | None, float] = {}
    for digit in {_digit(f) for f in cells}:
        same = [f for f in cells if _digit(f) == digit and f.cell.parameters.leak == found.parameters.reference]
        if same:
            bounds[digit] = float(np.quantile([e for f in same for e in _errors(f)], SHARE, method="higher"))
    bad = [max(_errors(f)) > bounds.get(_digit(f), np.inf) for f in cells]
    return [f for f, b in zip(cells, bad, strict=True) if not b], [f for f, b in zip(cells, bad, strict=True) if b]


def _digit(f: Finished) -> int | None:
    return f.cell.seed % 10 if f.cell.parameters.one_digit else None


def _errors(f: Finished) -> list[float]:
    errors: list[float] = f.data["views"]["errors"]
    return errors


def _ends(found: Result, group: str) -> tuple[str, str]:
    leaks = found.parameters.leaks
    return f"{group}-{min(leaks):g}", f"{group}-{max(leaks):g}"


def _shrinks(found: Result) -> Outcome:
    kept, _ = filtered(found, ALL)
    return all_of(
        ordered(found, ALL, kept, "leak", "lipschitz", "leak and mean constant", rising=False),
        at_most(found, _ends(found, ALL)[1], "lipschitz", NEAR_ONE),
    )


def _falls(found: Result) -> Outcome:
    kept, _ = filtered(found, ALL)
    ends = _ends(found, ALL)
    small, large = (found.scores(row, "rigid") for row in ends)
    # A ratio: the difference would vary the more between seeds, the larger the effect is.
    left = Estimate.over([large[seed] / small[seed] for seed in small if seed in large and small[seed] > 0])
    label = "The rigid error of the largest leak over that of the smallest"
    return all_of(
        ordered(found, ALL, kept, "leak", "rigid", "leak and rigid error", rising=False),
        decide(found, ends, left, LEFT, label, above=False),
    )


def _predicts(group: str, constant: str) -> Callable[[Result], Outcome]:
    def test(found: Result) -> Outcome:
        kept, dropped = filtered(found, group)
        # The order of L is that of sqrt(L^2 - 1).
        decided = ordered(found, group, kept, constant, "rigid", "√(L² - 1) and rigid error")
        said = f"{len(dropped)} of {len(kept) + len(dropped)} cells were dropped ({DROPPED[group]} in the paper)."
        rate = fitted(kept, constant, "rigid")
        if rate is not None:
            said += f" The fitted curve is {rate.constant:.3g} √(L² - 1), R² {rate.r2:.2f}."
        return decided if decided.needs else replace(decided, sentence=f"{decided.sentence} {said}")

    return test


def figures(found: Result) -> Sequence[Slot]:
    """Errors against constants, their distribution by leak, and errors against reconstruction."""
    slots: list[Slot] = []
    for group, who in GROUPS.items():
        kept, dropped = filtered(found, group)
        if not kept:
            continue
        by_leak = {f"leak {a:g}": [f for f in kept if f.cell.parameters.leak == a] for a in found.parameters.leaks}
        shown = {name: cells for name, cells in by_leak.items() if cells} | ({"dropped": dropped} if dropped else {})
        for constant, figure in ((MEAN, "Fig. 2" if group == ALL else "Fig. A.6"), (MAXIMUM, "Fig. A.4")):
            slots.append(
                error_plot(
                    f"{who}: rigid error against the {constant[1]}",
                    f"{figure}: a point for each pair of runs. The curve is fitted to the pairs that are kept; its "
                    "form is the theorem's, its factor describes these runs alone.",
                    shown,
                    kept,
                    constant,
                    ERROR,
                )
            )
        slots.append(
            Scatter(
                f"{who}: rigid error against reconstruction error",
                "Fig. A.5: runs agree although they reconstruct far from perfectly.",
                "mean squared error of a pixel, the worse of both runs",
                ERROR[1],
                {name: pairs(cells, "reconstruction", "rigid") for name, cells in shown.items()},
                {},
            )
        )
        slots.append(_distribution(f"{who}: local constants by leak", kept))
    return slots


def _distribution(title: str, cells: Sequence[Finished]) -> Scatter:
    names = ("5%", "median", "95%", "99%")
    leaks = [f.cell.parameters.leak for f in cells]
    columns = zip(*(f.data["views"]["quantiles"] for f in cells), strict=True)
    return Scatter(
        title,
        "Fig. A.3: quantiles over samples of the local constant, of one run of each pair.",
        "leak",
        "local bi-Lipschitz constant",
        {name: (leaks, list(column)) for name, column in zip(names, columns, strict=True)},
        {},
    )


CLAIMS = (
    Claim(f"The estimated constant shrinks to 1 as the leak goes to 1 (at most {NEAR_ONE:g} there).", _shrinks),
    Claim(f"The rigid error falls as the leak goes to 1 (to at most {LEFT:g} of that at the smallest).", _falls),
    Claim(
        f"√(L² - 1) predicts the rigid error, L the mean over samples: rank correlation of at least {ORDERED:g}.",
        _predicts(ALL, MEAN[0]),
    ),
    Claim(
        f"So it does with L the maximum over samples, as in the theorem (at least {ORDERED:g}).",
        _predicts(ALL, MAXIMUM[0]),
    ),
    Claim(
        f"So it does for autoencoders of one digit (the mean over samples; at least {ORDERED:g}).",
        _predicts(ONE, MEAN[0]),
    ),
    Claim(f"And for those of one digit with the maximum (at least {ORDERED:g}).", _predicts(ONE, MAXIMUM[0])),
)
