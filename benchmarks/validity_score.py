"""How the measures of `score` depend on the number of rows, on one design with a known answer for many rows.

usage: python benchmarks/validity_score.py [--repeats 40] [--rows 200 1000 5000] [--limit 50000]

Four factors (two uniform ones, one of 5 levels, one of 3 classes) and six latents: each of the first four follows a
factor and a little of the next one, with noise; two are noise. The value for many rows stands for the limit. Prints for
each measure and number of rows the mean of repeated samples less that value, with its Monte-Carlo standard error.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from nearid.measures.registry import measures


def sample(n: int, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Latents and factors."""
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
    return np.hstack([z, rng.normal(size=(n, 2))]), {**u, "kind": np.array(["x", "y", "z"])[u["kind"]]}


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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--limit", type=int, default=50_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
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
