"""nearid.ICA beside scikit-learn's FastICA and picard, in one run on the same rows; prints times, quality and ratios.

usage: python benchmarks/bench_ica.py [--rows 222000] [--columns 384] [--data well,mild,strong,patches]
                                      [--peers sklearn32,sklearn64,picard] [--seeds 1] [--log results.jsonl]
                                      [--engine torch:cuda]         the engine of nearid
       python benchmarks/bench_ica.py --stream [--rows 2000000]      a short fit, from a file and from RAM

Data:
  well     Laplace, uniform and near-Gaussian sources (a third each), mixed with a spectrum of condition 100
  mild     the same through (1 - a) x + a tanh(x) on standardised columns, a = 0.2: the model no longer holds
  strong   the same with a = 0.5
  patches  8 x 8 patches of the CIFAR-10 images (200,000 x 192), real; below NEARID_DATA

Pass equivalents (of nearid) count what passes multiply, in units of a pass over all rows for all components without
second derivatives: passes for some components, or over a part of the rows, cost less than one, and those that start or
judge a fit are in it too.

Every answer is judged by the same code in float64: the relative projected gradient and the contrast
J = sum |E G(y_i) - E G(Gaussian)|, and with known sources the mean matched |correlation| (MCC). Peers keep their
defaults (200 iterations, their own tolerance). `--log` keeps each finished run, and runs found there
are not repeated: begin a new log when the code changes.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from measure import PeakMemory, row
from scipy.optimize import linear_sum_assignment

import nearid
from nearid.ica import held, passes

TOL = {"well": 1e-6, "mild": 3e-4, "strong": 3e-4, "patches": 3e-4}
BEND = {"well": 0.0, "mild": 0.2, "strong": 0.5}
# E log cosh v of a standard normal v.
GAUSSIAN = 0.3745672075


def sources(n: int, k: int, seed: int) -> np.ndarray:
    """Unit-variance sources: a third Laplace, a third uniform, a third sign(v) |v|^1.15 of a Gaussian v."""
    rng = np.random.default_rng(seed)
    a, b = k // 3, 2 * (k // 3)
    s = np.empty((n, k), np.float32)
    s[:, :a] = rng.laplace(size=(n, a)) / np.sqrt(2)
    s[:, a:b] = rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, b - a))
    v = rng.standard_normal((n, k - b), dtype=np.float32)
    s[:, b:] = np.sign(v) * np.abs(v) ** 1.15
    s -= s.mean(axis=0)
    s /= s.std(axis=0)
    return s


def mixed(n: int, k: int, seed: int, bend: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows and their sources."""
    s, rng = sources(n, k, seed), np.random.default_rng([seed, 1])
    left, right = (np.linalg.qr(rng.normal(size=(k, k)))[0] for _ in range(2))
    x = s @ (left * np.logspace(0, -2, k) @ right.T).T.astype(np.float32)
    if bend:
        size = x.std(axis=0)
        x = size * ((1 - bend) * (x / size) + bend * np.tanh(x / size))
    return x.astype(np.float32), s


def patches(n: int = 200_000, side: int = 8, seed: int = 0) -> np.ndarray:
    """Random patches of the CIFAR-10 images, in [0, 1], moved by up to half a grey level so that no pixel is tied."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    folder = Path(os.environ["NEARID_DATA"]) / "cifar10"
    images = np.concatenate(
        [np.asarray(Image.open(folder / f"{f}.png")).reshape(-1, 32, 32, 3) for f in ("data_batch_1", "test_batch")]
    )
    rng = np.random.default_rng(seed)
    which, row, column = rng.integers(len(images), size=n), *rng.integers(33 - side, size=(2, n))
    windows = np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(1, 2))
    cut = windows[which, row, column].reshape(n, -1).astype(np.float32)
    return (cut + rng.uniform(-0.5, 0.5, size=cut.shape).astype(np.float32)) / 255


def quality(x: np.ndarray, s: np.ndarray | None, unmixing: np.ndarray) -> dict[str, float]:
    """Relative gradient, contrast and MCC of components unmixing (x - mean), brought to unit variance, in float64."""
    mean = x.mean(axis=0, dtype=np.float64)
    products, squares, values, cross, n = 0.0, 0.0, 0.0, 0.0, len(x)
    for a in range(0, n, 10_000):
        y = (x[a : a + 10_000] - mean) @ unmixing.T
        squares = squares + (y**2).sum(axis=0)
    unmixing = unmixing / np.sqrt(squares / n)[:, None]
    for a in range(0, n, 10_000):
        y = (x[a : a + 10_000] - mean) @ unmixing.T
        products = products + np.tanh(y).T @ y / n
        values = values + np.logaddexp(y, -y).sum(axis=0) / n - np.log(2) * len(y) / n
        if s is not None:
            cross = cross + y.T @ s[a : a + 10_000] / n
    signs = np.where(values > GAUSSIAN, -1.0, 1.0)
    signed = signs[:, None] * products
    found = {
        "gradient": float(np.linalg.norm(signed - signed.T) / np.sqrt(2) / np.linalg.norm(products)),
        "J": float(np.abs(values - GAUSSIAN).sum()),
        "sub": int(np.sum(signs < 0)),
    }
    if s is not None:
        i, j = linear_sum_assignment(-np.abs(cross))
        found["mcc"] = float(np.abs(cross)[i, j].mean())
    return found


class CountedPart(passes.Part):
    """A part of a pass that counts what it multiplies: y from all columns, and one or two products of components."""

    multiplied: ClassVar[list[int]] = []

    @classmethod
    def of(cls, y: np.ndarray, contrast: Any, with_values: bool, with_bends: bool) -> passes.Part:
        n, k = y.shape
        cls.multiplied.append(n * k * (COLUMNS[0] + k * (1 + with_bends)))
        return super().of(y, contrast, with_values, with_bends)


# Columns of the rows at hand, and the engine of nearid.
COLUMNS, ENGINE = [0], ["local"]


def ours(x: np.ndarray, tol: float, seed: int) -> tuple[np.ndarray, int]:
    """nearid.ICA in float32."""
    COLUMNS[0] = x.shape[1]
    CountedPart.multiplied.clear()
    with patch.object(passes, "Part", CountedPart), patch.object(held, "Part", CountedPart):
        fit = nearid.ICA(tol=tol, random_state=seed, engine=ENGINE[0]).fit(x)
    return fit.components_, fit.n_iter_


def pass_equivalents(x: np.ndarray) -> float:
    """What the last fit of nearid multiplied with numpy, in passes over all rows."""
    return sum(CountedPart.multiplied) / (2 * len(x) * x.shape[1] ** 2)


def fastica(x: np.ndarray, tol: float, seed: int) -> tuple[np.ndarray, int]:
    """scikit-learn's FastICA with its defaults, in the precision of x."""
    from sklearn.decomposition import FastICA

    fit = FastICA(random_state=seed).fit(x)
    return fit.components_.astype(np.float64), fit.n_iter_


def picard(x: np.ndarray, tol: float, seed: int) -> tuple[np.ndarray, int]:
    """Picard-O (orthogonal, both signs of sources) from a random start, at most 200 iterations."""
    from picard import picard as run

    whitening, rotation, _, iterations = run(x.T, tol=1e-4, max_iter=200, random_state=seed, return_n_iter=True)
    return rotation @ whitening, iterations


RUNS: dict[str, tuple[Callable[..., tuple[np.ndarray, int]], type]] = {
    "nearid": (ours, np.float32),
    "sklearn32": (fastica, np.float32),
    "sklearn64": (fastica, np.float64),
    "picard": (picard, np.float64),
}


def compare(data: str, n: int, k: int, peers: list[str], seeds: int, log: Path | None) -> None:
    """All runs on one kind of data."""
    known = [json.loads(line) for line in log.read_text().splitlines()] if log and log.exists() else []
    for seed in range(seeds):
        x, s = (patches(seed=seed), None) if data == "patches" else mixed(n, k, seed, BEND[data])
        base: dict[str, Any] | None = None
        for name in ["nearid", *peers]:
            key = {"data": data, "shape": list(x.shape), "seed": seed, "run": name, "tol": TOL[data]}
            if name == "nearid" and ENGINE[0] != "local":
                key["engine"] = ENGINE[0]
            found = next((r for r in known if key.items() <= r.items()), None)
            if found is None:
                function, dtype = RUNS[name]
                rows = x.astype(dtype)
                # Imports are not what is measured.
                function(mixed(2000, 4, 0, 0.0)[0].astype(dtype), 1e-2, 0)
                wall, cpu = time.perf_counter(), time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    unmixing, count = function(rows, TOL[data], seed)
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                found = {**key, "seconds": wall, "core_seconds": cpu, "passes": count, **quality(x, s, unmixing)}
                if name == "nearid":
                    found["equivalents"] = pass_equivalents(x)
                if log:
                    with log.open("a") as file:
                        file.write(json.dumps(found) + "\n")
            base = base or found
            if name != "nearid":
                shape = f"{len(x):,} x {x.shape[1]}"
                row(
                    f"ICA, {data}, {shape}",
                    ours=base["core_seconds"],
                    peer=found["core_seconds"],
                    by=name,
                    unit="core s",
                )
            times, cores = (found[t] / base[t] for t in ("seconds", "core_seconds"))
            print(
                f"{data:8s} {name:10s} {found['seconds']:8.1f} s {found['core_seconds']:8.1f} core s "
                f"{found['passes']:4d} passes ({found.get('equivalents', found['passes']):.1f})  "
                f"gradient {found['gradient']:.1e}  J {found['J']:.5f}  "
                f"sub {found['sub']:3d}  MCC {found.get('mcc', float('nan')):.4f}  "
                f"ratio {times:5.1f} (core {cores:5.1f})",
                flush=True,
            )


def stream(n: int, k: int, passes: int = 6) -> None:
    """A short fit to a file and to the same rows in memory: peak memory above imports, seconds."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        out = np.lib.format.open_memmap(path, "w+", np.float32, (n, k))
        turn = rng.normal(size=(k, k)).astype(np.float32)
        for a in range(0, n, 50_000):
            out[a : a + 50_000] = rng.laplace(size=(min(50_000, n - a), k)).astype(np.float32) @ turn
        out.flush()
        del out
        # A small fit first: imports and thread pools are not what is measured.
        nearid.ICA().fit(rng.laplace(size=(5000, 4)).astype(np.float32))
        times = {}
        for name in ("file", "RAM"):
            rows: Any = str(path) if name == "file" else np.load(path)
            with PeakMemory() as memory, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.perf_counter()
                nearid.ICA(max_passes=passes).fit(rows)
                times[name] = time.perf_counter() - start
            size = n * k * 4 / 2**20
            print(
                f"{name:5s} {n} x {k} float32 ({size:.0f} MB): {times[name]:.1f} s for {passes} passes "
                f"(and those for moments, start and diagnostics), "
                f"{memory.megabytes:.0f} MB beyond what was there",
                flush=True,
            )
        print(f"file over RAM: {times['file'] / times['RAM']:.2f}")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--data", default="well,mild,patches")
    parser.add_argument("--peers", default="sklearn32,sklearn64,picard")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--engine", default="local")
    parser.add_argument("--stream", action="store_true")
    given = parser.parse_args()
    ENGINE[0] = given.engine
    if given.stream:
        stream(given.rows or 2_000_000, given.columns)
        return
    for data in given.data.split(","):
        compare(
            data, given.rows or 222_000, given.columns, [p for p in given.peers.split(",") if p], given.seeds, given.log
        )


if __name__ == "__main__":
    main()
