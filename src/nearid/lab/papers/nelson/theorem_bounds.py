"""What the theorems bound beside what is measured, and the examples of A.1 (Nelson et al. 2026), without training.

- rigid: Theorem 1 for smooth maps of latents whose bi-Lipschitz constants are known. Planes are turned by angles that
  depend on the place, more or less. The largest error of the best rigid motion stands beside c_d sqrt(L^2 - 1), with
  c_d by the recursion of `nearid.geometry.bounds.isometry_constant`. L^2 is the constant of the map between latents.
- ica: Theorem 2 for two representations that differ by little: components after whitening and ICA, beside the factors
  of Lemmas A.5 and A.8 (`nearid.geometry.ica_stability`).
- structural: A.5, two runs within eps of the truth up to rigid motions are within 2 eps of each other.
- regression: Example 1 of A.1. A line is fitted to a curve, twice: the fits agree with each other and with the nearest
  line, not with the curve.
- masked: Example 2 of A.1. A linear masked autoencoder of nonlinear mixtures, in closed form, on two samples: its
  representations agree with each other up to a linear map, though it reconstructs imperfectly and does not recover the
  factors.

The paper prints no numbers for any of these; thresholds are choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearid.geometry.bounds import isometry_constant, rate, statistical_bound
from nearid.lab.framework.claims import Claim, all_of, at_least, at_most, exceeds
from nearid.lab.framework.experiment import NELSON, CellData, Column, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.nelson import sections
from nearid.moments import Floats
from nearid.show.figures import Figure, Scatter

# What counts as agreement, and as a difference.
AGREE, DIFFER = 0.02, 0.1
# Step of the differences that stand for derivatives.
STEP = 1e-5
# Twists of the latents, in radians over the diameter.
TWISTS = (0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the bounds; rows set what is computed and the number of latents."""

    kind: str = parameter("rigid", "what is computed", choices=("rigid", "ica", "structural", "regression", "masked"))
    latents: int = parameter(2, "coordinates of a representation", least=2)
    points: int = parameter(3000, "rows", least=50, smoke=300)
    samples: int = parameter(100_000, "rows of each fit of the examples", least=100, smoke=2000)
    epsilon: float = parameter(1e-4, "length of what representations differ by, over the diameter", positive=True)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """One of the computations."""
    return KINDS[p.kind](p, np.random.default_rng([seed, 31]))


def _rigid(p: Parameters, rng: np.random.Generator) -> CellData:
    z = rng.uniform(-0.5, 0.5, size=(p.points, p.latents)) / np.sqrt(p.latents)
    turns = rng.normal(size=(p.latents, p.latents))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    # Of the cube, whose points are the latents.
    diameter, constant = 1.0, isometry_constant(p.latents)
    lipschitz, errors = [], []
    for twist in TWISTS:
        moved = twisted(z, turns, twist)
        stretches = np.linalg.svd(jacobians(z, turns, twist), compute_uv=False)
        lipschitz.append(float(np.sqrt(max(stretches[:, 0].max(), 1 / stretches[:, -1].min()))))
        errors.append(largest_rigid_error(z, moved) / diameter)
    bounds = constant * rate(lipschitz)
    exponent = np.polyfit(np.log(np.square(lipschitz) - 1), np.log(errors), 1)[0]
    scores = {
        "lipschitz": lipschitz[-1],
        "measured": errors[-1],
        "bound": float(bounds[-1]),
        "ratio": float(bounds[-1] / errors[-1]),
        "margin": float(np.log10(np.min(bounds / errors))),
        "exponent": float(exponent),
    }
    return {"scores": scores, "views": {"lipschitz": lipschitz, "errors": errors, "bounds": bounds.tolist()}}


def twisted(z: Floats, turns: Floats, twist: float) -> Floats:
    """Latents whose neighbouring coordinates are turned by angles that depend smoothly on the place."""
    z = z.copy()
    for k in range(z.shape[1] - 1):
        angle = twist * np.sin(3 * z @ turns[k])
        a, b = z[:, k].copy(), z[:, k + 1].copy()
        z[:, k], z[:, k + 1] = np.cos(angle) * a - np.sin(angle) * b, np.sin(angle) * a + np.cos(angle) * b
    return z


def jacobians(z: Floats, turns: Floats, twist: float) -> Floats:
    """Derivatives of `twisted` at each row, of shape (n, d, d)."""
    sides = []
    for step in STEP * np.eye(z.shape[1]):
        sides.append((twisted(z + step, turns, twist) - twisted(z - step, turns, twist)) / (2 * STEP))
    return np.stack(sides, axis=2)


def largest_rigid_error(x: Floats, y: Floats) -> float:
    """The largest distance after the rigid motion that is best in the mean square, without a scale."""
    from nearid.groups.fits import polar

    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return float(np.linalg.norm(x @ polar(x.T @ y) - y, axis=1).max())


def _ica(p: Parameters, rng: np.random.Generator) -> CellData:
    from nearid.geometry.ica_stability import ica_stability
    from nearid.groups.fits import assignment
    from nearid.questions.unmix.result import ICA

    x = rng.laplace(size=(p.points, p.latents)) @ (np.eye(p.latents) + 0.3 * rng.normal(size=(p.latents,) * 2))
    epsilon = p.epsilon * float(np.linalg.norm(x - x.mean(axis=0), axis=1).max())
    shift = rng.normal(size=x.shape)
    y = x + epsilon * shift / np.linalg.norm(shift, axis=1, keepdims=True)
    ica = ICA(random_state=0, tol=1e-7).fit(x)
    a, b = ica.transform(x), ICA(random_state=0, tol=1e-7).fit(y).transform(y)
    correlations = np.corrcoef(a.T, b.T)[: p.latents, p.latents :]
    rows, columns = assignment(np.abs(correlations))
    signs = np.sign(correlations[rows, columns])
    error = float(np.linalg.norm(a[:, rows] - b[:, columns] * signs, axis=1).max())
    bound = ica_stability(ica, x).total * epsilon
    return {
        "scores": {"measured": error, "bound": bound, "ratio": bound / error, "margin": float(np.log10(bound / error))}
    }


def _structural(p: Parameters, rng: np.random.Generator) -> CellData:
    truth = rng.uniform(-1, 1, size=(p.points, p.latents))
    epsilon, runs = 0.01, []
    for _ in range(2):
        off = rng.normal(size=truth.shape)
        off *= epsilon * rng.random((p.points, 1)) / np.linalg.norm(off, axis=1, keepdims=True)
        runs.append((truth + off) @ np.linalg.qr(rng.normal(size=(p.latents,) * 2))[0])
    largest = max(largest_rigid_error(truth, run) for run in runs)
    error, bound = largest_rigid_error(*runs), statistical_bound(largest)
    return {
        "scores": {"measured": error, "bound": bound, "ratio": bound / error, "margin": float(np.log10(bound / error))}
    }


def _regression(p: Parameters, rng: np.random.Generator) -> CellData:
    """Lines fitted to y = x + x^3 / 3 + noise, x normal: the nearest line has the slope 2."""
    slopes = []
    for _ in range(2):
        x = rng.normal(size=p.samples)
        y = x + x**3 / 3 + rng.normal(size=p.samples)
        slopes.append(float(x @ y / (x @ x)))
    x = rng.normal(size=p.samples)
    size = np.sqrt(np.mean((x + x**3 / 3) ** 2))
    away = np.sqrt(np.mean((slopes[0] * x - x - x**3 / 3) ** 2))
    return {
        "scores": {
            "statistical": abs(slopes[0] - slopes[1]) / float(size),
            "structural": float(away / size),
            "nearest": abs(slopes[0] - 2) / float(size),
        }
    }


def _masked(p: Parameters, rng: np.random.Generator) -> CellData:
    """Half of the columns are hidden; what a linear encoder of few latents makes of the whole rows is compared."""
    seen = 4 * p.latents
    inner, outer = rng.normal(size=(p.latents, seen)), rng.normal(size=(seen, seen)) / np.sqrt(seen)

    def draw(n: int) -> tuple[Floats, Floats]:
        factors = rng.laplace(size=(n, p.latents))
        return factors, np.tanh(factors @ inner) @ outer + 0.1 * rng.normal(size=(n, seen))

    def encoder(x: Floats) -> tuple[Floats, Floats]:
        hidden = x * (rng.random(x.shape) < 0.5)
        slopes = np.linalg.solve(hidden.T @ hidden, hidden.T @ x)
        # Of all maps of this rank the one with the least error.
        _, _, directions = np.linalg.svd(hidden @ slopes, full_matrices=False)
        leading = directions[: p.latents].T
        return slopes @ leading, leading

    (first, decoder), (second, _) = (encoder(draw(p.samples)[1]) for _ in range(2))
    factors, x = draw(p.samples)
    hidden = x * (rng.random(x.shape) < 0.5)
    return {
        "scores": {
            "statistical": _left(x @ first, x @ second),
            "structural": _left(x @ first, factors),
            "reconstruction": 1 - float(np.sum((x - hidden @ first @ decoder.T) ** 2) / np.sum(x**2)),
        }
    }


def _left(x: Floats, y: Floats) -> float:
    """Share of the variance of y that a linear map of x leaves."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return float(np.sum((y - x @ np.linalg.lstsq(x, y)[0]) ** 2) / np.sum(y**2))


KINDS = {"rigid": _rigid, "ica": _ica, "structural": _structural, "regression": _regression, "masked": _masked}
RIGID = ("rigid-2", "rigid-3", "rigid-6")


def rows(p: Parameters) -> list[Row]:
    """Theorem 1 in several dimensions, Theorem 2, A.5 and the examples of A.1."""
    made = [Row(f"rigid-{d}", f"Theorem 1, {d} latents", {"kind": "rigid", "latents": d}) for d in (2, 3, 6)]
    titles = {
        "ica": "Theorem 2, 3 latents",
        "structural": "A.5, 3 latents",
        "regression": "A.1, misspecified regression",
        "masked": "A.1, masked autoencoder",
    }
    return made + [Row(kind, title, {"kind": kind, "latents": 3}) for kind, title in titles.items()]


def figures(result: ExperimentResult) -> list[Figure]:
    """Errors and bounds of Theorem 1 against the rate."""
    points = {}
    for row in RIGID:
        views = [f.data["views"] for f in result.of_row(row)]
        for name, key in (("error", "errors"), ("bound", "bounds")):
            x = [float(np.log10(r)) for v in views for r in rate(v["lipschitz"])]
            if x:
                points[f"{row}, {name}"] = (x, [float(np.log10(e)) for v in views for e in v[key]])
    if not points:
        return []
    said = "A point for each map. The bound holds for all maps with this constant; smooth ones are far below it."
    return [
        Scatter("Theorem 1: errors and bounds", said, "log10 of √(L² - 1)", "log10 of the error / diameter", points, {})
    ]


THEOREM_BOUNDS = Experiment(
    name="theorem-bounds",
    paper=NELSON,
    shows="Theorems 1 and 2",
    about="The bounds of the theorems as numbers, beside errors of known maps, and the two examples that tell "
    "agreement of runs from agreement with the truth.",
    defaults=Parameters(),
    presets=presets(cpu=("seconds", 5), paper=("seconds", 10)),
    columns=(
        Column("lipschitz", "L", least=1),
        Column("measured", "largest error", 4, least=0),
        Column("bound", "bound", 4, least=0),
        Column("ratio", "bound over error", 1),
        Column("margin", "log10 of it, the least", 2),
        Column("exponent", "power of L² - 1 that errors grow with", 2),
        Column("statistical", "difference of two runs", 4, least=0),
        Column("structural", "difference from the truth", 4, least=0),
        Column("nearest", "difference from the nearest line", 4, least=0),
        Column("reconstruction", "share that is reconstructed", most=1),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            "No map is further from a rigid motion than Theorem 1 allows.",
            all_of(*(at_least(row, "margin", 0.0) for row in RIGID)),
        ),
        Claim("Components differ by no more than Theorem 2 allows.", at_least("ica", "margin", 0.0)),
        Claim("Runs near the truth are near each other, as A.5 says.", at_least("structural", "margin", 0.0)),
        Claim(
            "A misspecified regression is statistically identifiable and identifies the nearest line (differences of "
            f"at most {AGREE:g}), but not the curve (at least {DIFFER:g}): Example 1 of A.1.",
            all_of(
                at_most("regression", "statistical", AGREE),
                at_most("regression", "nearest", AGREE),
                at_least("regression", "structural", DIFFER),
            ),
        ),
        Claim(
            "A masked autoencoder that reconstructs imperfectly is statistically identifiable up to a linear map (at "
            f"most {AGREE:g} is left), but does not recover the factors (at least {DIFFER:g} is): Example 2 of A.1.",
            all_of(
                at_most("masked", "statistical", AGREE),
                at_least("masked", "structural", DIFFER),
                exceeds(("masked", "structural"), ("masked", "statistical"), by=AGREE),
                at_most("masked", "reconstruction", 1 - DIFFER),
            ),
        ),
    ),
    figures=figures,
    requires={},
    section=sections.THEOREM_BOUNDS,
)
