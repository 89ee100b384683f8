"""The tables of `diet` and `supervised`: rows for both kinds of W, columns, curves and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.lab.framework.experiment import Axes, Column, Preset, Published, Row
from nearid.lab.framework.figures import HeatMaps, ScatterMatrix, Slot
from nearid.lab.framework.settings import changed
from nearid.lab.papers.reizinger.cross_entropy import SHOWN, Parameters, violations

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result

# Settings whose figures are drawn: what should work, and the ways in which it does not.
DRAWN = ("base", "high-kappa", "few-classes-double-d", "noise-100")
# So many more rows in a step are given to what needs them: of labels that are noise four times in five little is left.
MORE = 8
SMOKE = {
    "d": 3,
    "classes": 50,
    "instances": 100,
    "draws": 50,
    "widths": (16,),
    "steps": 10,
    "batch": 64,
    "held_out": 400,
    "looks": 2,
}
PROTOCOL = {
    "widths": (),
    "activation": "leaky_relu",
    "residual": False,
    "batch_norm": True,
    "whiten": False,
    "optimiser": "adam",
    "steps": 50_000,
    "batch": 1024,
    "rate": 1e-3,
    "schedule": "constant",
}


def presets(smoke: Mapping[str, Any], paper: Mapping[str, Any]) -> dict[str, Preset]:
    """The presets, with what an experiment adds to two of them."""
    return {
        "smoke": Preset("seconds", 2, {**SMOKE, **smoke}),
        "cpu": Preset("about 25 minutes on 2 cores", 3),
        "paper": Preset("days on a CPU (estimated)", 5, {**PROTOCOL, **paper}),
    }


def columns(*, instances: bool) -> tuple[Column, ...]:
    """Columns of the table."""
    found = [
        Column("r2_z", "R2 z~->z (%)", 1, most=100),
        Column("r2_w", "R2 w->v (%)", 1, most=100),
        Column("identity", "R2 of the observations (%)", 1, most=100),
        Column("singular_z", "singular values z~->z, mean |s - beta/kappa|", least=0),
        Column("rotation_z", "singular values z~->z, mean relative error", least=0),
        Column("singular_w", "singular values w->v, mean |s - 1|", least=0),
        Column("excess", "loss above the least possible"),
        Column("missing", "dimensions that diversity lacks", 0, least=0),
    ]
    if instances:
        found.insert(2, Column("r2_unseen", "R2 w->v, unseen classes (%)", 1, most=100))
        found.append(Column("within", "largest distance of rows of W in a class, over their length", least=0))
    return tuple(found)


CURVES = (
    Axes("r2_z", "Latents: R2 during training", "steps", "R2 z~->z (%), held out"),
    Axes("r2_w", "Class vectors: R2 during training", "steps", "R2 w->v (%), held out"),
    Axes("loss", "Loss during training", "steps", "cross-entropy"),
)


@dataclass(frozen=True)
class Setting:
    """A line of the paper's table, of which both kinds of W are rows here.

    Attributes
    ----------
    key, title : str
    changes : mapping
    unit, free : tuple of float
        Published R2 of z~->z and of w->v with normalised and with free W; empty where there is none.
    """

    key: str
    title: str
    changes: Mapping[str, Any]
    unit: tuple[float, ...] = ()
    free: tuple[float, ...] = ()


def shared_settings(p: Parameters) -> list[Setting]:
    """Settings of both tables, and those of which the text tells, without their published values."""
    few, many, twice, four = max(2, p.classes // 10), 10 * p.classes, 2 * p.d, 4 * p.d
    # Little more than the 2d that normalised W asks for, and equally many instances in each of them.
    enough = {d: 5 * d // 2 for d in (twice, four)}
    return [
        Setting("base", "base", {}),
        Setting("double-d", f"d = {twice}", {"d": twice}),
        Setting("quadruple-d", f"d = {four}", {"d": four}),
        Setting("few-classes", f"{few} classes", {"classes": few}),
        Setting("many-classes", f"{many} classes", {"classes": many, "instances": max(many, p.instances)}),
        Setting("low-kappa", f"kappa = {p.kappa / 2:g}", {"kappa": p.kappa / 2}),
        Setting("high-kappa", f"kappa = {5 * p.kappa:g}", {"kappa": 5 * p.kappa}),
        Setting("laplace", "Laplace conditional", {"conditional": "laplace"}),
        Setting("normal", "normal conditional", {"conditional": "normal"}),
        Setting("few-classes-double-d", f"{few} classes, d = {twice}", {"classes": few, "d": twice}),
        Setting("few-classes-quadruple-d", f"{few} classes, d = {four}", {"classes": few, "d": four}),
        Setting("enough-double-d", f"{enough[twice]} classes, d = {twice}", {"classes": enough[twice], "d": twice}),
        Setting("enough-quadruple-d", f"{enough[four]} classes, d = {four}", {"classes": enough[four], "d": four}),
        *(Setting(f"noise-{s}", f"{s}% label noise", {"noise": s / 100}) for s in (20, 50, 80, 100)),
        Setting("noise-80-more", f"80% label noise, {MORE} times the rows", {"noise": 0.8, "batch": MORE * p.batch}),
    ]


def rows_of(settings: Sequence[Setting], p: Parameters, note: str) -> list[Row]:
    """Both kinds of W in each setting, with published values where the process is the paper's."""

    def row(s: Setting, *, normalise: bool) -> Row:
        values = (s.unit if normalise else s.free) if p.published else ()
        published = {
            key: Published(v, verified=False, note=note) for key, v in zip(("r2_z", "r2_w"), values, strict=False)
        }
        title = f"{s.title}, {'normalised' if normalise else 'free'} W"
        changes = {**s.changes, "normalise": normalise}
        key = f"{s.key}-{'unit' if normalise else 'free'}"
        return Row(key, title, changes, published, violations(changed(p, changes)))

    return [row(s, normalise=normalise) for s in settings for normalise in (True, False)]


def figures(found: Result) -> list[Slot]:
    """The first seed of some rows: latents against what was recovered, and correlations before and after the map."""
    slots: list[Slot] = []
    for row in found.rows:
        if row.key.rsplit("-", 1)[0] not in DRAWN:
            continue
        for finished in found.of_row(row.key)[:1]:
            v = finished.data["views"]
            across, down = np.asarray(v["recovered"]), np.asarray(v["true"])
            slots.append(
                ScatterMatrix(
                    f"{row.title}: latents against what was recovered",
                    f"{SHOWN} held-out rows: features mapped linearly to the latents (across), latents (down). A thin "
                    "diagonal means that the mixing is inverted up to a linear map.",
                    {f"recovered z{k + 1}": across[:, k].tolist() for k in range(across.shape[1])},
                    {f"true z{k + 1}": down[:, k].tolist() for k in range(down.shape[1])},
                )
            )
            size = range(1, len(v["before"]) + 1)
            slots.append(
                HeatMaps(
                    f"{row.title}: correlation of features and latents",
                    "Absolute correlation of features (rows) with latents (columns), held out.",
                    {"before the linear map": v["before"], "after": v["after"]},
                    [f"feature {k}" for k in size],
                    [f"z{k}" for k in size],
                )
            )
    return slots
