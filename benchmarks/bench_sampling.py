"""Samplers of the processes beside straightforward loops, in one run on the same work; prints ratios.

usage: python benchmarks/bench_sampling.py [--size 6144] [--n 10] [--draws 25000]

1. von Mises-Fisher positives of a batch: all rows at once against Wood's rejection row by row, and the mean cosine of
   both beside its closed form.
2. The least condition number of uniform weights with unit columns: the filtered, batched search against one
   singular value decomposition per draw; both see the same draws and must find the same number.
3. A batch of pairs of each kind: milliseconds.
"""

from __future__ import annotations

import argparse

import numpy as np
from measure import row, timed
from scipy.special import ive

from nearid.lab.processes.mixing import draw_mixing, least_condition
from nearid.lab.processes.noise import GeneralisedNormal, Laplace, Normal, VonMisesFisher
from nearid.lab.processes.pairs import PairProcess
from nearid.lab.processes.spaces import Box, Sphere


def vmf_by_rows(centres: np.ndarray, kappa: float, rng: np.random.Generator) -> np.ndarray:
    """What people write: draw a cosine by rejection and a tangent, row after row."""
    n = centres.shape[1]
    b = (-2 * kappa + np.sqrt(4 * kappa**2 + (n - 1) ** 2)) / (n - 1)
    x0 = (1 - b) / (1 + b)
    c = kappa * x0 + (n - 1) * np.log(1 - x0**2)
    drawn = np.empty_like(centres)
    for i, centre in enumerate(centres):
        while True:
            z = rng.beta((n - 1) / 2, (n - 1) / 2)
            w = (1 - (1 + b) * z) / (1 - (1 - b) * z)
            if kappa * w + (n - 1) * np.log(1 - x0 * w) - c >= np.log(rng.random()):
                break
        tangent = rng.standard_normal(n)
        tangent -= (tangent @ centre) * centre
        drawn[i] = w * centre + np.sqrt(1 - w * w) * tangent / np.linalg.norm(tangent)
    return drawn


def condition_by_draws(n: int, draws: int, rng: np.random.Generator) -> float:
    """What people write: one draw, one condition number, and the least of them."""
    best = np.inf
    for _ in range(draws):
        weights = rng.uniform(-1, 1, (n, n))
        best = min(best, np.linalg.cond(weights / np.linalg.norm(weights, axis=0)))
    return float(best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=6144)
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--draws", type=int, default=25_000)
    asked = parser.parse_args()
    size, n, draws = asked.size, asked.n, asked.draws

    print(f"vMF positives, {size:,} rows in {n} dimensions")
    for kappa in (1.0, 10.0, 50.0):
        rng = np.random.default_rng(0)
        centres = Sphere(n).uniform(size, rng)
        ours, found = timed(lambda c=centres, k=kappa, r=rng: VonMisesFisher(k).draw(c, r), repeats=10)
        loop, plain = timed(lambda c=centres, k=kappa, r=rng: vmf_by_rows(c, k, r), repeats=2)
        cosines = [float(np.sum(p * centres, axis=1).mean()) for p in (found, plain)]
        exact = ive(n / 2, kappa) / ive(n / 2 - 1, kappa)
        row(f"von Mises-Fisher, {size:,} x {n}, kappa {kappa:g}", ours=ours, peer=loop, by="loop over rows")
        print(f"  kappa {kappa:g}: ours {1e3 * ours:.2f} ms, loop {1e3 * loop:.0f} ms, ratio {loop / ours:.0f}")
        print(f"    mean cosine: ours {cosines[0]:.4f}, loop {cosines[1]:.4f}, exact {exact:.4f}")

    print(f"least condition number of {draws:,} draws, {n} x {n}")
    ours, found = timed(lambda: least_condition(n, np.random.default_rng(0), draws=draws), repeats=3)
    loop, plain = timed(lambda: condition_by_draws(n, draws, np.random.default_rng(0)))
    row(f"least condition number of {draws:,} draws", ours=ours, peer=loop, by="loop over draws")
    print(f"  ours {ours:.3f} s ({found:.6f}), loop {loop:.2f} s ({plain:.6f}), ratio {loop / ours:.1f}")
    seconds, _ = timed(lambda: draw_mixing(n, 3, np.random.default_rng(0), draws=draws))
    print(f"  a mixing of 3 layers by that rule, the search included: {seconds:.2f} s")

    print(f"{size:,} pairs in {n} dimensions")
    noises = (Laplace(0.05), Normal(0.05), GeneralisedNormal(0.05, 3.0))
    for process in (
        PairProcess(Sphere(n), "uniform", VonMisesFisher(10.0)),
        PairProcess(Sphere(n), "uniform", Laplace(0.05)),
        *(PairProcess(Box(n), "uniform", noise) for noise in noises),
    ):
        rng = np.random.default_rng(0)
        seconds, _ = timed(lambda p=process, r=rng: p.pairs(size, r), repeats=20)
        print(f"  {process.space.label}, {process.conditional.label}: {1e3 * seconds:.2f} ms")


if __name__ == "__main__":
    main()
