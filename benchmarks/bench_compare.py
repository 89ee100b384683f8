"""compare() beside a straightforward scipy/scikit-learn script, in one run on the same work; prints ratios.

usage: python benchmarks/bench_compare.py [--rows 1000000] [--columns 256] [--peer-rows 200000] [--features DIR]

1. compare() on two .npy files: wall time and processor time over those of one GEMM-bound pass (X^T X, Y^T Y, X^T Y at
   the measured GEMM speed), and peak memory above imports. On a busy machine only processor times mean something.
2. The same comparison by a plain in-memory script (Procrustes, LinearRegression, Hungarian matching, 5 folds), at a
   size that fits it; the ratio of times, and that both find the same errors.
3. The exact diameter beside blocked all-pairs products, on Gaussian, heavy-tailed and (--features) real rows.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from measure import PeakMemory, processor_timed, row, timed
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LinearRegression

from nearid.folds import assign
from nearid.measures.diameter import diameter
from nearid.questions.compare.run import compare


def write_pair(folder: Path, n: int, d: int) -> tuple[Path, Path]:
    """Gaussian rows and a noisy linear image of them, float32."""
    rng = np.random.default_rng(0)
    turn = (rng.normal(size=(d, d)) / np.sqrt(d)).astype(np.float32)
    x, y = (np.lib.format.open_memmap(folder / f"{k}.npy", "w+", np.float32, (n, d)) for k in "xy")
    for a in range(0, n, 50_000):
        rows = rng.standard_normal((min(50_000, n - a), d), dtype=np.float32)
        x[a : a + 50_000] = rows
        y[a : a + 50_000] = rows @ turn + 0.3 * rng.standard_normal(rows.shape, dtype=np.float32)
    x.flush()
    y.flush()
    return folder / "x.npy", folder / "y.npy"


def gemm_pass(n: int, d: int, dtype: type) -> tuple[float, float]:
    """Wall and processor seconds of three full d x d products over n rows, from the speed on 100,000 of them."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((100_000, d), dtype=np.float32).astype(dtype) for _ in "xy")
    each = [processor_timed(lambda: x.T @ y)[:2] for _ in range(15)]
    wall, processor = (3 * min(seconds) * n / 100_000 for seconds in zip(*each, strict=True))
    return wall, processor


def plain_script(x: np.ndarray, y: np.ndarray, fold: np.ndarray) -> dict[str, float]:
    """What people write: every group fitted in memory on four folds, judged on the fifth; mean errors."""
    errors: dict[str, list[np.ndarray]] = {"permutation": [], "rigid": [], "linear": []}
    for k in range(5):
        a, b, c, d = x[fold != k], y[fold != k], x[fold == k], y[fold == k]
        am, bm = a.mean(axis=0), b.mean(axis=0)
        a0, b0 = a - am, b - bm
        rotation, nuclear = orthogonal_procrustes(a0, b0)
        scale = nuclear / np.sum(a0**2)
        errors["rigid"].append(np.linalg.norm(scale * (c - am) @ rotation + bm - d, axis=1))
        errors["linear"].append(np.linalg.norm(LinearRegression().fit(a, b).predict(c) - d, axis=1))
        rho = np.corrcoef(a.T, b.T)[: x.shape[1], x.shape[1] :]
        rows, cols = linear_sum_assignment(-np.abs(rho))
        source, signs = np.empty_like(rows), np.empty(len(rows))
        source[cols], signs[cols] = rows, np.sign(rho[rows, cols])
        matched = a0[:, source] * signs
        factor = np.sum(matched * b0) / np.sum(matched**2)
        errors["permutation"].append(np.linalg.norm(factor * (c - am)[:, source] * signs + bm - d, axis=1))
    return {name: float(np.concatenate(e).mean()) for name, e in errors.items()}


def all_pairs(points: np.ndarray, block: int = 2048) -> float:
    """Largest distance from blocked products of the upper triangle of pairs."""
    z = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", z, z)
    best = 0.0
    for i in range(0, len(z), block):
        for j in range(i, len(z), block):
            tile = squares[i : i + block, None] + squares[j : j + block] - 2 * (z[i : i + block] @ z[j : j + block].T)
            best = max(best, float(tile.max()))
    return float(np.sqrt(best))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--peer-rows", type=int, default=200_000)
    parser.add_argument("--features", type=Path, help="folder of .npy features (benchmarks/resnet_features.py)")
    asked = parser.parse_args()
    n, d = asked.rows, asked.columns
    with tempfile.TemporaryDirectory() as folder:
        paths = write_pair(Path(folder), n, d)
        warm = np.random.default_rng(0).normal(size=(500, 4))
        compare(warm, warm + 1)  # imports are not the subject
        times = []
        with PeakMemory() as memory:
            for _ in range(3):
                times.append(processor_timed(lambda: compare(*paths))[:2])
        passes = [gemm_pass(n, d, t) for t in (np.float32, np.float64)]
        print(f"compare, two .npy of {n:,} x {d} float32, 5 folds")
        for what, own, (single, double) in zip(
            ("wall", "processor"), zip(*times, strict=True), zip(*passes, strict=True), strict=True
        ):
            best = min(own)
            print(f"  {what} seconds: {', '.join(f'{t:.2f}' for t in own)}")
            print(f"    one GEMM-bound pass: {single:.2f} in float32, {double:.2f} in float64")
            print(f"    ratio of the best: {best / single:.2f} to float32, {best / double:.2f} to float64 (asked: 2.5)")
        print(f"  peak memory above imports: {memory.megabytes:.0f} MB (asked: 600)")

        row(f"compare, two files, {n:,} x {d} float32; the limit is one float32 product", ours=best, limit=single)

        m = min(asked.peer_rows, n)
        x, y = (np.load(p, mmap_mode="r")[:m].copy() for p in paths)
        ours, found = timed(lambda: compare(x, y), repeats=2)
        theirs, errors = timed(lambda: plain_script(x, y, assign(m, 5, 0)), repeats=1)
        print(f"\n{m:,} x {d} in memory: plain script {theirs:.2f} s, compare {ours:.2f} s, ratio {theirs / ours:.1f}")
        row(f"compare, in memory, {m:,} x {d}", ours=ours, peer=theirs, by="scipy and scikit-learn")
        print("  (the script has no diameter, chance, interval, CCA, SVCCA, CKA or verdict)")
        for name, error in errors.items():
            mine = found.groups[name].epsilon.value * found.diameter.lower
            print(f"  mean error, {name}: script {error:.6f}, compare {mine:.6f}")

    print("\nexact diameter beside blocked all-pairs products")
    rng = np.random.default_rng(0)
    sets = {
        "gaussian 20,000 x 32": rng.standard_normal((20_000, 32), dtype=np.float32),
        "gaussian 20,000 x 256": rng.standard_normal((20_000, 256), dtype=np.float32),
        "student t, 3 d.o.f., 20,000 x 64": rng.standard_t(3, size=(20_000, 64)).astype(np.float32),
    }
    for path in sorted(asked.features.glob("*.npy")) if asked.features else []:
        sets[path.stem] = np.load(path)
    for name, points in sets.items():
        ours, found = timed(lambda points=points: diameter(points), repeats=3)
        theirs, value = timed(lambda points=points: all_pairs(points), repeats=2)
        gap = abs(found.lower / value - 1)
        row(f"diameter, {name}", ours=ours, peer=theirs, by="all pairs")
        print(f"  {name}: {ours:.3f} s against {theirs:.3f} s, ratio {theirs / ours:.1f}, relative gap {gap:.1e}")


if __name__ == "__main__":
    main()
