"""nearid's scores against known factors beside the same through scikit-learn, in one run on the same rows.

usage: python benchmarks/bench_score.py [infomec dci trees mcc whole] [--rows 10000] [--repeats 3] [--many 1000000]
                                        [--nearid .venv/bin/nearid]

InfoMEC: 18 latents and 9 factors with the numbers of values of Isaac3D. Half of the latents follow one factor each,
bent and noisy; the others mix all factors. scikit-learn computes mutual information with mutual_info_classif and the
linear fits with LogisticRegression; both sides keep their own threads. Prints times, ratios and the largest
differences: those of NMI come from scikit-learn's random jitter, which moves a count by one here and there.

DCI: the same rows, three folds, a classifier for each factor and fold: nearid's boosted trees beside scikit-learn's
GradientBoostingClassifier with its defaults, which is what the measure's usual implementation takes. Prints times, the
ratio and the held-out accuracy of both.

Trees: one fit of 100 trees of 8 leaves, of a number and of three classes, beside scikit-learn's histogram trees (and
LightGBM if it is installed) with the same numbers of bins and leaves, and the exact GradientBoosting.

Whole: `nearid score` with its defaults (all measures, intervals, chance, verdict) as a command, in core seconds of the
process from its start to its end: 2,000 x 8 latents and 5 factors, 10,000 x 10 and 10, 200 x 2,000 and 20, and of 100
x 2 latents with one measure, which is nearly all start-up. --nearid takes the command of another version.

MCC: many rows of 128 latents in a file, ten factors: one streaming pass, with the memory that it takes beyond what was
there; beside it numpy.corrcoef on the whole array and the same matching, in sample.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import PeakMemory, row

from nearid.folds import assign
from nearid.measures.dci import dci
from nearid.measures.infomec import infomec
from nearid.measures.information import entropy
from nearid.measures.mcc import mcc

SIZES = (3, 8, 5, 4, 4, 4, 6, 4, 4)


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Latents of shape (n, 18) and factors of shape (n, 9)."""
    rng = np.random.default_rng(seed)
    factors = np.column_stack([rng.integers(0, size, n) for size in SIZES])
    scaled = factors / (np.array(SIZES) - 1) - 0.5
    bent = np.tanh(2 * scaled) + rng.normal(size=scaled.shape) * np.linspace(0.02, 0.4, len(SIZES))
    mixed = scaled @ rng.normal(size=(len(SIZES), len(SIZES))) + 0.5 * rng.normal(size=scaled.shape)
    return np.hstack([bent, mixed]), factors


def ours(latents: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """NMI and explicitness by nearid."""
    found = infomec(latents, factors)
    return found.nmi, found.per_factor


def sklearns(latents: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same by scikit-learn."""
    from sklearn.feature_selection import mutual_info_classif
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.preprocessing import StandardScaler

    z = StandardScaler().fit_transform(latents)
    nmi, explicitness = [], []
    for f in factors.T:
        information = mutual_info_classif(z, f, discrete_features=False, n_neighbors=10, random_state=0)
        nmi.append(information / entropy(f))
        with warnings.catch_warnings():
            # Fits that reach the cap on iterations are part of the definition.
            warnings.simplefilter("ignore")
            model = LogisticRegression(C=np.inf, class_weight="balanced", max_iter=100).fit(z, f)
        explicitness.append(1 - log_loss(f, model.predict_proba(z)) / np.log(f.max() + 1))
    return np.array(nmi), np.array(explicitness)


def best(function: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """Least wall and core seconds of some repeats, and the last result."""
    walls, cores = [], []
    for _ in range(repeats):
        wall, core = time.perf_counter(), time.process_time()
        result = function()
        walls.append(time.perf_counter() - wall)
        cores.append(time.process_time() - core)
    return min(walls), min(cores), result


def bench_infomec(n: int, repeats: int) -> None:
    """InfoMEC beside scikit-learn."""
    # Imports and compilation are not what is measured.
    for run in (ours, sklearns):
        run(*rows(500))
    latents, factors = rows(n)
    wall, core, (nmi, explicitness) = best(lambda: ours(latents, factors), repeats)
    peer_wall, peer_core, (peer_nmi, peer_explicitness) = best(lambda: sklearns(latents, factors), repeats)
    row(f"InfoMEC, {n:,} rows", ours=core, peer=peer_core, by="scikit-learn", unit="core s")
    print(f"infomec  nearid   {wall:7.3f} s {core:7.3f} core s")
    print(f"infomec  sklearn  {peer_wall:7.3f} s {peer_core:7.3f} core s")
    print(
        f"infomec  ratio    {peer_wall / wall:7.1f}   {peer_core / core:7.1f}          largest differences: "
        f"NMI {np.abs(nmi - peer_nmi).max():.1e}, explicitness {np.abs(explicitness - peer_explicitness).max():.1e}"
    )


def boosted(latents: np.ndarray, factors: np.ndarray, folds: int = 3) -> float:
    """Mean held-out accuracy of scikit-learn's gradient boosting, on the folds that `dci` takes."""
    from sklearn.ensemble import GradientBoostingClassifier

    fold, right = assign(len(latents), folds, 0), 0
    for y in factors.T:
        for k in range(folds):
            test = fold == k
            model = GradientBoostingClassifier(random_state=0).fit(latents[~test], y[~test])
            right += int(np.sum(model.predict(latents[test]) == y[test]))
    return right / factors.size


def bench_dci(n: int) -> None:
    """DCI beside scikit-learn's gradient boosting."""
    dci(*rows(500))
    latents, factors = rows(n)
    wall, core, found = best(lambda: dci(latents, factors), 1)
    print(f"dci      nearid   {wall:7.2f} s {core:7.2f} core s  informativeness {found.informativeness:.4f}")
    peer_wall, peer_core, accuracy = best(lambda: boosted(latents, factors), 1)
    row(f"DCI, {n:,} rows", ours=core, peer=peer_core, by="scikit-learn", unit="core s")
    print(f"dci      sklearn  {peer_wall:7.2f} s {peer_core:7.2f} core s  informativeness {accuracy:.4f}")
    print(f"dci      ratio    {peer_wall / wall:7.1f}   {peer_core / core:7.1f}")


def bench_mcc(n: int, d: int = 128, m: int = 10) -> None:
    """MCC of a file in one pass."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "latents.npy"
        factors = rng.normal(size=(n, m))
        out = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
        mixing = rng.normal(size=(m, d)) / 2
        for a in range(0, n, 100_000):
            part = factors[a : a + 100_000]
            out[a : a + 100_000] = part @ mixing + rng.normal(size=(len(part), d))
        del out
        mcc(path, factors)
        with PeakMemory() as memory:
            wall, core, found = best(lambda: mcc(path, factors), 1)
        print(f"mcc      nearid   {wall:7.2f} s {core:7.2f} core s  {n:,} x {d}, held out {found.value:.4f}, ", end="")
        print(f"peak {memory.megabytes:.0f} MB more")

        def plain() -> float:
            rho = np.abs(np.corrcoef(np.load(path), factors, rowvar=False)[:d, d:])
            return float(rho[linear_sum_assignment(rho, maximize=True)].mean())

        with PeakMemory() as memory:
            peer_wall, peer_core, value = best(plain, 1)
        row(f"MCC of a file, {n:,} x {d}", ours=core, peer=peer_core, by="numpy", unit="core s")
        print(f"mcc      numpy    {peer_wall:7.2f} s {peer_core:7.2f} core s  in sample {value:.4f}, ", end="")
        print(f"peak {memory.megabytes:.0f} MB more")


def bench_trees(repeats: int) -> None:
    """One boosted fit beside others."""
    from importlib.util import find_spec

    from sklearn.ensemble import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )

    from nearid.measures.trees import bin_latents, boost

    rng = np.random.default_rng(0)
    for n, d in ((1333, 8), (6667, 10), (133, 2000)):
        x = rng.normal(size=(n, d))
        signal = x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.3 * rng.normal(size=n)
        every, binned = np.arange(n), bin_latents(x)
        for classes, y in ((0, signal / signal.std()), (3, np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3])))):
            shape = {"max_iter": 100, "max_leaf_nodes": 8, "max_bins": 127, "early_stopping": False}
            histogram = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(**shape)
            exact = (GradientBoostingClassifier if classes else GradientBoostingRegressor)(random_state=0)
            runs: dict[str, Callable[[], Any]] = {
                "nearid": lambda: boost(binned, every, y, every[:0], classes=classes, trees=100, leaves=8),  # noqa: B023
                "HistGradientBoosting": lambda: histogram.fit(x, y),  # noqa: B023
            }
            if d < 100:
                runs["GradientBoosting"] = lambda: exact.fit(x, y)  # noqa: B023
            if find_spec("lightgbm"):
                import lightgbm

                settings = {"num_leaves": 8, "max_bin": 127, "num_threads": 1, "force_row_wise": True, "verbosity": -1}
                settings |= (
                    {"objective": "multiclass", "num_class": classes} if classes else {"objective": "regression"}
                )
                runs["LightGBM"] = lambda: lightgbm.train(settings, lightgbm.Dataset(x, y), 100)  # noqa: B023
            runs["nearid"]()
            cores = {name: best(run, repeats)[1] for name, run in runs.items()}
            peers = {name: core for name, core in cores.items() if name != "nearid"}
            fastest = min(peers, key=lambda name: peers[name])
            what = f"boosted trees, {n:,} x {d:,}, {classes or 'no'} classes"
            row(what, ours=cores["nearid"], peer=peers[fastest], by=fastest, unit="core s")
            told = ", ".join(
                f"{name} {core * 1e3:.1f} ms ({core / cores['nearid']:.1f})" for name, core in cores.items()
            )
            print(f"trees    {n} x {d}, {classes or 'no'} classes, core time (ratio): {told}")


def bench_whole(command: str) -> None:
    """`nearid score` with its defaults, as a process."""
    import resource
    import subprocess

    sizes = {"start-up": (100, 2, 2), "small": (2000, 8, 5), "middle": (10_000, 10, 10), "wide": (200, 2000, 20)}
    with tempfile.TemporaryDirectory() as folder:
        for name, (n, d, m) in sizes.items():
            rng = np.random.default_rng(0)
            u = rng.uniform(size=(n, m))
            # Every fifth factor has five levels, every other fifth three.
            for levels, at in ((5, 3), (3, 4)):
                u[:, at::5] = rng.integers(0, levels, size=u[:, at::5].shape)
            z, k = 0.4 * rng.normal(size=(n, d)), min(d, m)
            scaled = (u - u.mean(axis=0)) / u.std(axis=0)
            z[:, :k] += (scaled + 0.4 * np.roll(scaled, 1, axis=1))[:, :k]
            np.save(Path(folder) / "z.npy", z)
            header = ",".join(f"f{j}" for j in range(m))
            np.savetxt(Path(folder) / "u.csv", u, delimiter=",", header=header, comments="", fmt="%.17g")
            more = ["--measures", "mcc", "--permutations", "1"] if name == "start-up" else []
            before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(
                [*shlex.split(command), "score", "z.npy", "u.csv", *more], cwd=folder, capture_output=True, text=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            core = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if not done.returncode:
                row(f"nearid score, {n:,} x {d:,}, {m} factors", ours=core, unit="core s")
            told = f"whole    {name:9}{n} x {d}, {m} factors: {core:7.2f} core s {time.perf_counter() - wall:7.2f} s"
            print(told if not done.returncode else f"{told}  FAILED: {done.stderr[-200:]}", flush=True)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ["infomec", "dci", "trees", "mcc", "whole"]
    parser.add_argument("parts", nargs="*", choices=every, default=every)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--nearid", default=f"{shlex.quote(sys.executable)} -m nearid")
    given = parser.parse_args()
    if "infomec" in given.parts:
        bench_infomec(given.rows, given.repeats)
    if "dci" in given.parts:
        bench_dci(given.rows)
    if "trees" in given.parts:
        bench_trees(given.repeats)
    if "mcc" in given.parts:
        bench_mcc(given.many)
    if "whole" in given.parts:
        bench_whole(given.nearid)


if __name__ == "__main__":
    main()
