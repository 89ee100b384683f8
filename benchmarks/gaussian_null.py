"""How far a search for components gets in Gaussian rows: writes the table behind the Gaussian test of the diagnostics.

usage: python benchmarks/gaussian_null.py [--out src/nearid/ica/gaussian_null.json] [--effort 1.0]

For each contrast, number of components k and ratio n / k, Gaussian rows are whitened and searched with nearid's own
solver, and the furthest component on either side of a Gaussian one is kept, in standard errors (z). The table has the
mean of the furthest over the repetitions, and the spread above the median, from which p-values follow by a normal tail.
About ten minutes of one core.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path

import numpy as np

from nearid.base.files import write_text
from nearid.groups.fits import polar
from nearid.ica.contrast import CONTRASTS, RADIAL, Contrast
from nearid.ica.solver import State, solve

# Components with the repetitions of each, and rows for each component.
COMPONENTS = {1: 1000, 2: 1000, 4: 500, 8: 150, 16: 50, 32: 20}
RATIOS = (3, 5, 10, 30, 100, 300, 3000)
FEWEST_ROWS, MOST_ROWS = 30, 12_000
SIDES = ("above", "below")


def furthest(n: int, k: int, contrast: Contrast, rng: np.random.Generator) -> tuple[float, float]:
    """The largest z above and below 0 among the components of Gaussian rows."""
    x = rng.normal(size=(n, k))
    x = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[0] * np.sqrt(n)

    def oracle(rotation: np.ndarray, with_values: bool) -> State:
        y = x @ rotation.T
        sums = contrast.evaluate(y, with_values)
        return State(rotation, sums.g.T @ y / n, sums.slopes / n, sums.values / n)

    # The start of a fit: see nearid.ica.fit.
    vectors = np.linalg.eigh(RADIAL.evaluate(x, False).g.T @ x)[1]
    start = polar(np.eye(k) + 0.5 / np.sqrt(k) * rng.normal(size=(k, k))) @ vectors.T
    found = solve(oracle, start, tol=1e-4, max_passes=500, n=n, gaussian=contrast.gaussian).state.rotation
    z = np.sqrt(n) * (oracle(found, True).values - contrast.gaussian) / contrast.spread
    return float(z.max()), float(-z.min())


def rows_for(ratio: int, k: int) -> int:
    """Rows of a cell; where these would be too many, those of the largest ratio that can be afforded."""
    return max(FEWEST_ROWS, k * max(r for r in RATIOS if r <= ratio and r * k <= MOST_ROWS))


@cache
def summaries(n: int, k: int, contrast: str, repetitions: int) -> list[tuple[float, float]]:
    """Of the furthest above and below; from the same rows for all contrasts."""
    runs = [furthest(n, k, CONTRASTS[contrast], np.random.default_rng([n, k, r])) for r in range(repetitions)]
    return [summary(side) for side in np.transpose(runs)]


def summary(reached: np.ndarray) -> tuple[float, float]:
    """The mean, and the spread above the median: the upper tail is what a test needs."""
    above = np.maximum(reached - np.median(reached), 0)
    return float(reached.mean()), float(np.sqrt(2 * np.mean(above**2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("src/nearid/ica/gaussian_null.json"))
    parser.add_argument("--effort", type=float, default=1.0, help="repetitions, relative to those of the table")
    asked = parser.parse_args()
    tables = {c: {s: {"mean": [], "spread": []} for s in SIDES} for c in CONTRASTS}
    for k, most in COMPONENTS.items():
        for name in CONTRASTS:
            cells = []
            for ratio in RATIOS:
                n = rows_for(ratio, k)
                cells.append(summaries(n, k, name, max(4, round(asked.effort * most))))
                print(f"{name:8} k {k:3} n {n:6}", *(f"{mean:.2f} +- {spread:.2f}" for mean, spread in cells[-1]))
            for side, (mean, spread) in zip(SIDES, np.transpose(cells, (1, 2, 0)), strict=True):
                tables[name][side]["mean"].append([round(v, 2) for v in mean])
                tables[name][side]["spread"].append([round(v, 2) for v in spread])
    for sides in tables.values():
        for table in sides.values():
            # More directions reach no less far; where the other side takes all of them, the table must not say less.
            table["mean"] = np.maximum.accumulate(table["mean"]).tolist()
    record = {"components": list(COMPONENTS), "ratios": RATIOS, "contrasts": tables}
    write_text(asked.out, json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
