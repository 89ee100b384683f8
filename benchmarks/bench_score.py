"""nearid's scores against known factors beside the same through scikit-learn, in one run on the same rows.

usage: python benchmarks/bench_score.py [infomec dci mcc] [--rows 10000] [--repeats 3] [--many 1000000]

InfoMEC: 18 latents and 9 factors with the numbers of values of Isaac3D. Half of the latents follow one factor each,
bent and noisy; the others mix all factors. scikit-learn computes mutual information with mutual_info_classif and the
linear fits with LogisticRegression; both sides keep their own threads. Prints times, ratios and the largest
differences: those of NMI come from scikit-learn's random jitter, which moves a count by one here and there.

DCI: the same rows, three folds, a classifier for each factor and fold: nearid's boosted trees beside scikit-learn's
GradientBoostingClassifier with its defaults, which is what the measure's usual implementation takes. Prints times, the
ratio and the held-out accuracy of both.

MCC: many rows of 128 latents in a file, ten factors: one streaming pass, with the memory that it takes beyond what was
there; beside it numpy.corrcoef on the whole array and the same matching, in sample.
"""

from __future__ import annotations

import argparse
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


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["infomec", "dci", "mcc"], default=["infomec", "dci", "mcc"])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--many", type=int, default=1_000_000)
    given = parser.parse_args()
    if "infomec" in given.parts:
        bench_infomec(given.rows, given.repeats)
    if "dci" in given.parts:
        bench_dci(given.rows)
    if "mcc" in given.parts:
        bench_mcc(given.many)


if __name__ == "__main__":
    main()
