"""Images of a square that moves and grows: measured metric tensors beside the theory (Nelson et al. 2026, A.6).

The theory is of sharp squares on a continuous frame, whose derivatives exist in the limit of vanishing blur alone. The
metric is then the length of the edges that move: 4 r for a step of the centre, 8 r for one of the half-side r, and no
products; in units of what a blurred edge contributes per length, 1 / (2 sigma sqrt(pi)). So moving is a scaled
isometry; moving and growing is a conformal map in (x, sqrt(2) r), whose stretches go as the root of r. What is measured
here are images of pixels, blurred over one pixel, differentiated by finite differences: finer images must come nearer.

The factors 4 and 8 were derived here along the paper's argument, as its formulas are not legible in the text at hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nearid.lab.framework.claims import Claim, all_of, at_most, exceeds
from nearid.lab.framework.experiment import NELSON, CellData, Column, Experiment, Published, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.nelson import sections
from nearid.lab.processes.images.metric import distortion
from nearid.lab.processes.images.squares import LEAST_BLUR, SquareProcess, isotropic
from nearid.moments import Floats
from nearid.show.figures import Figure, Scatter

# Columns of (x, y, r) that vary in each manifold.
MANIFOLDS = {"x": (0,), "xy": (0, 1), "xr": (0, 2), "xyr": (0, 1, 2)}
# Points whose images are held at a time.
BLOCK = 16
# Points in the figure.
SHOWN = 100
# What counts as an isometry, as conformal and as the theory's metric (%) and constant (%), on the finest images.
ISOMETRY, CONFORMAL, NEAR, NEAR_CONSTANT = 1.001, 1.02, 5.0, 1.0


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment with squares."""

    manifold: str = parameter("xyr", "what varies: x, xy, xr or xyr; rows set it", choices=tuple(MANIFOLDS))
    rescaled: bool = parameter(True, "whether the half-side counts in units of 1 / sqrt(2); rows set it")
    side: int = parameter(
        256, "pixels of a side of the finest images; of others in some rows", least=8, smoke=64, paper=512
    )
    blur: float = parameter(1.0, "deviation of the blur, in pixels", positive=True)
    smallest: float = parameter(0.2, "smallest half-side, in a frame [-1, 1]^2", positive=True)
    largest: float = parameter(
        0.4, "largest half-side; where it does not vary, the mean of both", least=lambda p: p.smallest, most=1
    )
    points: int = parameter(200, "random places and sizes of the square", least=2, smoke=16, paper=500)


def process(p: Parameters) -> SquareProcess:
    """The squares of the parameters."""
    return SquareProcess(p.side, p.smallest, p.largest, 2 * p.blur / p.side)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Metric tensors at random points against those of the theory."""
    squares, columns = process(p), MANIFOLDS[p.manifold]
    z = squares.sample(p.points, np.random.default_rng(seed))
    if 2 not in columns:
        z[:, 2] = (p.smallest + p.largest) / 2
    # One row shows what too little blur does.
    blocks = [squares.measured_metric(z[start : start + BLOCK], any_blur=True) for start in range(0, len(z), BLOCK)]
    kept = np.ix_(range(len(z)), columns, columns)
    measured = np.concatenate(blocks)[kept]
    theory, blurred = squares.edge_norm * squares.sharp_metric(z)[kept], squares.blurred_metric(z)[kept]
    if p.rescaled:
        measured, theory, blurred = (_rescaled(g, columns) for g in (measured, theory, blurred))
    distorted, expected = distortion(measured), distortion(theory)
    diagonal = np.sqrt(np.einsum("nii->ni", measured))
    cosines = measured / (diagonal[:, :, None] * diagonal[:, None, :]) - np.eye(len(columns))
    return {
        "scores": {
            "error": 100 * _relative(measured, theory),
            "blurred_error": 100 * _relative(measured, blurred),
            "cosine": float(np.abs(cosines).max()),
            "anisotropy": float(distorted.anisotropy.max()),
            "spread": distorted.spread,
            "lipschitz": distorted.bilipschitz,
            "lipschitz_error": 100 * abs(distorted.bilipschitz / expected.bilipschitz - 1),
        },
        "views": {
            "r": z[:SHOWN, 2].round(5).tolist(),
            "measured": (np.einsum("nii->ni", measured[:SHOWN]) / squares.edge_norm).round(5).tolist(),
        },
    }


def _rescaled(metrics: Floats, columns: tuple[int, ...]) -> Floats:
    """The metric with the half-side in units of 1 / sqrt(2)."""
    whole = np.zeros((len(metrics), 3, 3))
    kept = np.ix_(range(len(metrics)), columns, columns)
    whole[kept] = metrics
    return np.asarray(isotropic(whole)[kept])


def _relative(measured: Floats, theory: Floats) -> float:
    """Largest distance of metric tensors over the size of the theory's."""
    distance = np.linalg.norm(measured - theory, axis=(1, 2)) / np.linalg.norm(theory, axis=(1, 2))
    return float(distance.max())


def rows(p: Parameters) -> list[Row]:
    """Each manifold on the finest images, what coarser ones do to the metric, and two controls."""
    note = "The paper proves 1 for the limit of no blur."
    one = Published(1.0, verified=True, note=note)
    made = [
        Row("x", "moving along x", {"manifold": "x"}, {"spread": one, "lipschitz": one}),
        Row("xy", "moving in the plane", {"manifold": "xy"}),
        Row("xr", "moving and growing", {"manifold": "xr"}, {"anisotropy": one}),
        Row("xyr", "moving in the plane and growing", {"manifold": "xyr"}),
    ]
    for factor in (2, 4):
        side = p.side // factor
        made.append(Row(f"xr-{factor}", f"moving and growing, {side} pixels", {"manifold": "xr", "side": side}))
    plain = {"manifold": "xr", "rescaled": False}
    made.append(Row("xr-plain", "moving and growing, half-side as it is (control)", plain))
    if p.blur < LEAST_BLUR:
        # Else a reader takes the limit of the pixels for a failure of the theory.
        note = (
            f"With a blur of {p.blur:g} pixels the metric depends on where edges lie between pixels (by 3% at "
            f"{LEAST_BLUR:g} pixels, and by more below). The claims then judge the pixels, not the theory."
        )
        made = [replace(row, note=note) for row in made]
    return [*made, Row("x-sharp", "moving along x, blur of 0.2 pixels (control)", {"manifold": "x", "blur": 0.2})]


def figures(result: ExperimentResult) -> Sequence[Figure]:
    """Entries of the metric against the half-side, beside the theory's lines."""
    slots: list[Figure] = []
    titles = {row.key: row.title for row in result.rows}
    for key in ("xr-plain", "xr"):
        for finished in result.of_row(key)[:1]:
            v = finished.data["views"]
            moving, growing = (list(column) for column in zip(*v["measured"], strict=True))
            ends = [min(v["r"]), max(v["r"])]
            grows = 4 if finished.cell.parameters.rescaled else 8
            lines = {"4 r": (ends, [4 * r for r in ends])}
            slots.append(
                Scatter(
                    f"{titles[key]}: squared stretches against the half-side",
                    "Diagonal of the measured metric tensors, in units of what a blurred edge contributes per length, "
                    "and the theory's without blur. Where both directions share a line, the map is conformal.",
                    "half-side r",
                    "squared stretch",
                    {"moving": (v["r"], moving), "growing": (v["r"], growing)},
                    lines if grows == 4 else lines | {"8 r": (ends, [8 * r for r in ends])},
                )
            )
    return slots


SQUARE_MANIFOLDS = Experiment(
    name="square-manifolds",
    paper=NELSON,
    shows="Section 3.3.1 and A.6",
    section=sections.SQUARE_MANIFOLDS,
    about="Images of a square are a scaled isometry of its place, and a conformal map of its place and size: the "
    "metric is measured on pixels and compared with the theory of continuous images.",
    defaults=Parameters(),
    presets=presets(cpu=("about a minute", 5), paper=("some minutes (estimated)", 10)),
    columns=(
        Column("error", "metric: error against the theory (%)", 2, least=0),
        Column("blurred_error", "against that of blurred images (%)", 4, least=0),
        Column("cosine", "largest cosine of two directions", 5, least=0, most=1),
        Column("anisotropy", "largest anisotropy", 4, least=1),
        Column("spread", "spread of sizes", 4, least=1),
        Column("lipschitz", "L, best scale", 4, least=1),
        Column("lipschitz_error", "L: error against the theory (%)", 3, least=0),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            f"Moving is a scaled isometry (L of at most {ISOMETRY:g}).",
            all_of(*(at_most(key, "lipschitz", ISOMETRY) for key in ("x", "xy"))),
        ),
        Claim(
            f"Moving and growing is conformal, the half-side in units of 1 / √2 (anisotropy of at most {CONFORMAL:g}), "
            "and is not in units of 1.",
            all_of(
                *(at_most(key, "anisotropy", CONFORMAL) for key in ("xr", "xyr")),
                exceeds(("xr-plain", "anisotropy"), ("xr", "anisotropy"), by=0.3),
            ),
        ),
        Claim(
            f"The metric is 4 r, and 8 r for growing (to {NEAR:g}%), the nearer the finer the images.",
            all_of(
                *(at_most(key, "error", NEAR) for key in ("x", "xy", "xr", "xyr")),
                *(exceeds((a, "error"), (b, "error")) for a, b in (("xr-4", "xr-2"), ("xr-2", "xr"))),
            ),
        ),
        Claim(
            f"L is the fourth root of the largest over the smallest half-side of the points (to {NEAR_CONSTANT:g}%).",
            all_of(*(at_most(key, "lipschitz_error", NEAR_CONSTANT) for key in ("xr", "xyr"))),
            added=True,
        ),
    ),
    figures=figures,
    requires={},
)
