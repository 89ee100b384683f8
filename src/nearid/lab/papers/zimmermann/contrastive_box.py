"""Contrastive learning in a box recovers the latents one by one (Zimmermann et al. 2021, Table 2): MCC.

With the distance L_p^p, p other than 2, the theorem leaves permutations, signs and scales alone. The squared L2
distance does not see rotations: in all of R^n they stay unknown, while a box as the space of the representations has
corners, and few rotations put a box into a box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearid.lab.framework.claims import Claim, Outcome, all_of, at_least, exceeds
from nearid.lab.framework.experiment import Column, Experiment, Preset, Published, Row
from nearid.lab.framework.papers import ZIMMERMANN
from nearid.lab.papers.zimmermann.contrastive import CURVES, PUBLISHED_PROTOCOL, SMOKE, Parameters, cell, described
from nearid.lab.papers.zimmermann.contrastive_views import figures

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result

# What counts as a high MCC and a high R2 (%), and how much of the MCC (points) is lost without the box.
HIGH_MCC, HIGH_R2, LOST = 95.0, 97.0, 5.0
# Key, law of the positives, exponent of the loss, title, MCC published with a box and without.
SETTINGS = (
    ("laplace", "laplace", 1.0, "Laplace -> Laplace", 98.62, 98.57),
    ("gn3", "generalised normal", 3.0, "generalised normal(3) -> generalised normal(3)", 99.90, 99.85),
    ("normal", "normal", 2.0, "normal -> normal", 99.77, 58.26),
    ("laplace-normal", "laplace", 2.0, "Laplace -> normal", 99.76, 59.67),
)
SQUARED = ("normal", "laplace-normal")


def rows(p: Parameters) -> list[Row]:
    """Each process and loss with a box and without, and the supervised baseline."""
    made = []
    for key, conditional, exponent, title, boxed, free in SETTINGS:
        for output, value in (("box", boxed), ("unbounded", free)):
            changes = {"conditional": conditional, "exponent": exponent, "output": output}
            published = {"mcc": Published(value)}
            if (key, output) == ("laplace", "box"):
                published["identity_mcc"] = Published(46.55)
            made.append(Row(f"{key}-{output}", f"{title}, {output}", changes, published))
    told = {"objective": "supervised", "output": "unbounded", "steps": max(1, p.steps // 3)}
    return described(p, [*made, Row("supervised", "supervised", told, {"mcc": Published(99.93)})])


def _recovers(found: Result) -> Outcome:
    return all_of(*(at_least(found, f"{key}-box", "mcc", HIGH_MCC) for key in ("laplace", "gn3")))


def _keeps_r2(found: Result) -> Outcome:
    return all_of(*(at_least(found, f"{key}-unbounded", "r2", HIGH_R2) for key in SQUARED))


def _loses_mcc(found: Result) -> Outcome:
    return all_of(
        *(exceeds(found, ("laplace-box", "mcc"), (f"{key}-unbounded", "mcc"), by=LOST) for key in SQUARED),
    )


def _box_brings_back(found: Result) -> Outcome:
    back = [exceeds(found, (f"{key}-box", "mcc"), (f"{key}-unbounded", "mcc"), by=LOST) for key in SQUARED]
    return all_of(*(at_least(found, f"{key}-box", "mcc", HIGH_MCC) for key in SQUARED), *back)


CONTRASTIVE_BOX = Experiment(
    name="contrastive-box",
    paper=ZIMMERMANN,
    shows="Table 2",
    about="Latents that are uniform in a box are recovered one by one, where the loss has an exponent other than 2 or "
    "the representations live in a box; the squared distance in R^n recovers them up to a linear map alone.",
    defaults=Parameters(space="box", conditional="laplace", output="box", exponent=1.0),
    presets={
        "smoke": Preset("seconds", 2, SMOKE),
        "cpu": Preset("about 8 minutes on 2 cores", 3),
        "paper": Preset("days on a GPU (estimated)", 3, PUBLISHED_PROTOCOL),
    },
    columns=(
        Column("mcc", "MCC (%)", 2, least=-100, most=100),
        Column("mcc_in_sample", "MCC in sample (%)", 2, least=-100, most=100),
        Column("identity_mcc", "MCC of the observations (%)", 2, least=-100, most=100),
        Column("r2", "R2 (%)", 2, most=100),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(f"L_p with p other than 2 and a box give a high MCC (held out, at least {HIGH_MCC:g}%).", _recovers),
        Claim(f"Squared L2 in R^n keeps R2 high (at least {HIGH_R2:g}%).", _keeps_r2),
        Claim(f"Squared L2 in R^n loses MCC (at least {LOST:g} points less than L1 in a box).", _loses_mcc),
        Claim(f"The box brings it back (at least {HIGH_MCC:g}%, {LOST:g} points more than in R^n).", _box_brings_back),
    ),
    curves=CURVES,
    figures=figures,
)
