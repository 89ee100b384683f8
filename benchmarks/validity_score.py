"""How the measures of `score` depend on the number of rows, on one design with a known answer for many rows.

usage: python benchmarks/validity_score.py [--repeats 40] [--rows 200 1000 5000] [--limit 50000]
       python benchmarks/validity_score.py --coverage 60 [--rows 300] [--measures dci,sap,explicitness,infomec]
       [--noise 396]

Four factors (two uniform ones, one of 5 levels, one of 3 classes) and six latents: each of the first four follows a
factor and a little of the next one, with noise; two are noise. The value for many rows stands for the limit. Prints for
each measure and number of rows the mean of repeated samples less that value, with its Monte-Carlo standard error.

--coverage: how often the 95% interval of a sample contains the mean value of samples of this size, with the Monte-Carlo
standard error, and the median width of the interval over the width that the values of the samples themselves ask for
(1: neither too wide nor too narrow). The mean chance level stands beside it. --noise is the number of latents that are
noise.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from nearid.measures.factors import open_factors
from nearid.measures.registry import measures
from nearid.questions.score.resample import resample


def sample(n: int, seed: int, noise: int = 2) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Latents, of which so many are noise, and factors."""
    rng = np.random.default_rng([seed, n])
    u = {
        "a": rng.uniform(size=n),
        "b": rng.uniform(size=n),
        "level": rng.integers(0, 5, n),
        "kind": rng.integers(0, 3, n),
    }
    numbers = np.column_stack(list(u.values())).astype(float)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    z = numbers + 0.4 * np.roll(numbers, 1, axis=1) + 0.4 * rng.normal(size=(n, 4))
    return np.hstack([z, rng.normal(size=(n, noise))]), {**u, "kind": np.array(["x", "y", "z"])[u["kind"]]}


def values(n: int, seed: int) -> dict[str, float]:
    """Every figure of every measure that `score` takes by default."""
    z, u = sample(n, seed)
    found: dict[str, float] = {}
    for name, declared in measures().items():
        if declared.by_default:
            measured = declared(z, u)
            shown = {part: measured.parts[part] for part, about in declared.parts.items() if about.title}
            found |= {name: measured.value} | {f"{name}: {part}": value for part, value in shown.items()}
    return found


def coverage(repeats: int, n: int, names: list[str], noise: int) -> None:
    """Print how often intervals contain the mean of the samples' values."""
    print(f"figure | n = {n}, {repeats} samples: coverage | width / needed | mean value | mean chance")
    for name in names:
        declared, runs = measures()[name], []
        for seed in range(1, 1 + repeats):
            z, u = sample(n, seed, noise)
            known = open_factors(u)
            measured = declared.of_loaded(z, known)
            shared = {"options": {}, "permutations": 1, "seed": seed, "tick": lambda: None}
            scored = resample(declared, measured, n, z, known, **shared)
            titled = [part for part, about in declared.parts.items() if about.title]
            runs.append({name: scored.overall} | {f"{name}: {part}": scored.parts[part] for part in titled})
        for figure in runs[0]:
            own = np.array([(e.value, e.low, e.high, e.chance) for e in (run[figure] for run in runs)])
            mean = own[:, 0].mean()
            share = np.mean((own[:, 1] <= mean) & (mean <= own[:, 2]))
            error = np.sqrt(max(share * (1 - share), 0.25 / repeats) / repeats)
            width = np.median(own[:, 2] - own[:, 1]) / (2 * 1.96 * own[:, 0].std(ddof=1))
            print(
                f"{figure} | {share:.2f} ± {error:.2f} | {width:.2f} | {mean:.3f} | {own[:, 3].mean():.3f}", flush=True
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--limit", type=int, default=50_000)
    parser.add_argument("--coverage", type=int, default=0)
    parser.add_argument("--noise", type=int, default=2)
    parser.add_argument("--measures", default="dci,sap,explicitness,infomec")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.coverage:
        for n in options.rows:
            coverage(options.coverage, n, options.measures.split(","), options.noise)
        return
    limit = values(options.limit, 0)
    # Large samples vary less: fewer of them are as exact.
    repeats = {n: max(4, round(options.repeats * min(1.0, (200 / n) ** 0.5))) for n in options.rows}
    runs = {n: [values(n, seed) for seed in range(1, 1 + count)] for n, count in repeats.items()}
    print(f"measure | n = {options.limit:,} | " + " | ".join(f"n = {n:,} ({repeats[n]} samples)" for n in options.rows))
    for name, most in limit.items():
        cells = []
        for n in options.rows:
            own = np.array([run[name] for run in runs[n]])
            cells.append(f"{own.mean() - most:+.3f} ± {own.std(ddof=1) / np.sqrt(len(own)):.3f}")
        print(f"{name} | {most:.3f} | " + " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
