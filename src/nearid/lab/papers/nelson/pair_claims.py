"""What Table 1 of Nelson et al. 2026 claims of pairs of networks, and the figures of such pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from nearid.lab.framework.claims import Claim, Outcome, Status, all_of, at_least, exceeds
from nearid.lab.framework.figures import Dots, HeatMaps, Slot

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result

# Networks of ResNet-20 that are trained to the end, and one that is not (61% of test images).
TRAINED, HALF = ("akamaster-20", "dansun18-20", "qiyuehub-20", "zhengjiakun-20"), "chelcacs-20"
# Source and target of pairs: of one architecture, across depths, with the half-trained one; and rows trained here.
ALIKE = (*combinations(TRAINED, 2), ("akamaster-56", "zhengjiakun-56"))
DEPTHS = (
    ("akamaster-20", "akamaster-32"),
    ("akamaster-20", "akamaster-44"),
    ("akamaster-20", "akamaster-56"),
    ("zhengjiakun-20", "akamaster-56"),
)
HALVES = (*((HALF, target) for target in TRAINED[1:]), (TRAINED[0], HALF))
HERE = ("mae", "gpt")
# The published order of errors, the largest first.
ORDER = ("permutation", "ica", "rigid", "linear")
# A difference of errors that counts: several standard errors of a bootstrap over 10,000 images, as seeds do not draw
# these.
CLEARLY = 0.003


def keys(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Keys of the rows of pairs."""
    return ["-".join(pair) for pair in pairs]


def _ordered(found: Result, rows: Sequence[str], columns: Sequence[str]) -> Outcome:
    """Whether each error is larger than the next, in each row."""
    return all_of(
        *(exceeds(found, (row, more), (row, less), by=CLEARLY) for row in rows for more, less in pairwise(columns))
    )


def _in_sample(found: Result, rows: Sequence[str]) -> Outcome:
    return _ordered(found, rows, [f"{name}_in" for name in ORDER])


def _held_out(found: Result) -> Outcome:
    return _ordered(found, (*keys((*ALIKE, *DEPTHS)), *HERE), [name for name in ORDER if name != "ica"])


def _efficient(found: Result, rows: Sequence[str]) -> Outcome:
    return all_of(*(_gains(found, row) for row in rows))


def _gains(found: Result, row: str) -> Outcome:
    """Whether ICA gains, by the lower end of each bootstrap; where a rigid motion gains nothing there is no answer."""
    known, ran = found.scores(row, "efficiency_low"), len(found.of_row(row))
    if len(known) < ran:
        label = found.label(row, "efficiency")
        return Outcome(Status.NOT_TESTABLE, f"{label} has no value at {ran - len(known)} of {ran} seeds.")
    return at_least(found, row, "efficiency_low", 0.0)


def _half_trained(found: Result) -> Outcome:
    """Errors in the space of one target: with another target, another diameter divides them."""
    pairs = [keys(((source, target), (HALF, target))) for source, target in combinations(TRAINED, 2)]
    return all_of(*(exceeds(found, (half, "linear"), (row, "linear"), by=CLEARLY) for row, half in pairs))


# Rows of which correlations are drawn.
DRAWN = (*keys((ALIKE[0], ALIKE[-1], HALVES[0])), *HERE)
PUBLISHED_ORDER = f"permutation > ICA > rigid > linear, each by {CLEARLY:g} or more"
CLAIMS = (
    Claim(
        f"Fully trained ResNets of one architecture have the published order of errors, in sample: {PUBLISHED_ORDER}.",
        lambda found: _in_sample(found, keys(ALIKE)),
    ),
    Claim(
        "ResNets of different depth have the published order of errors, in sample.",
        lambda found: _in_sample(found, keys(DEPTHS)),
    ),
    Claim(
        "Masked autoencoders and GPTs that are trained here have the published order of errors, in sample.",
        lambda found: _in_sample(found, HERE),
    ),
    Claim("Held out, permutation > rigid > linear holds of all these pairs.", _held_out),
    Claim(
        "For fully trained ResNets of one architecture ICA gains over a signed permutation, held out: the interval of "
        "its efficiency is above 0.",
        lambda found: _efficient(found, keys(ALIKE)),
    ),
    Claim(
        "For masked autoencoders and GPTs that are trained here ICA gains over a signed permutation, held out.",
        lambda found: _efficient(found, HERE),
    ),
    Claim(
        "A half-trained ResNet-20 agrees less: to each target its linear error is larger than a fully trained one's.",
        _half_trained,
    ),
)


def figures(found: Result) -> list[Slot]:
    """The four errors of each pair, in sample and held out, and correlations before and after ICA."""
    titles = {row.key: row.title for row in found.rows}
    measured = {
        key: [f.data["views"] for f in found.of_row(key) if "held_out" in f.data.get("views", {})] for key in titles
    }
    there = [key for key in titles if measured[key]]
    slots: list[Slot] = []
    if there:
        names = [titles[key] for key in there]
        apart = {name: [_mean(measured[key], name) for key in there] for name in ORDER}
        within = {
            name: [(found.estimate(key, f"{name}_in").mean, math.nan, math.nan) for key in there] for name in ORDER
        }
        axis = "mean error / diameter of the target"
        slots = [
            Dots(
                "Errors held out",
                "Bars: 95% interval of a bootstrap over examples, of which ends and dots are means over seeds.",
                axis,
                names,
                apart,
            ),
            Dots("Errors in sample", "As the paper has them; means over seeds.", axis, names, within),
        ]
    for key in DRAWN:
        for v in measured.get(key, [])[:1]:
            if "before" in v:
                numbers = [str(k + 1) for k in range(len(v["before"]))]
                panels = {"columns as they are": v["before"], "components after ICA": v["after"]}
                slots.append(
                    HeatMaps(
                        f"{titles[key]}: correlations of matched columns",
                        "Absolute correlations of the source (rows) with the target (columns), on all examples; those "
                        "that match best, in the order of their matches. ICA saw each side alone.",
                        panels,
                        numbers,
                        numbers,
                    )
                )
    return slots


def _mean(views: Sequence[dict[str, Any]], name: str) -> tuple[float, float, float]:
    """Value and ends of an interval, as means over seeds."""
    values = [v["held_out"][name] for v in views]
    value, low, high = (sum(each) / len(values) for each in zip(*values, strict=True))
    return value, low, high
