"""nearid's scores against known factors beside the same through scikit-learn, in one run on the same rows.

usage: python benchmarks/bench_score.py [--rows 10000] [--repeats 3]

InfoMEC: 18 latents and 9 factors with the numbers of values of Isaac3D. Half of the latents follow one factor each,
bent and noisy; the others mix all factors. scikit-learn computes mutual information with mutual_info_classif and the
linear fits with LogisticRegression; both sides keep their own threads. Prints times, ratios and the largest
differences: those of NMI come from scikit-learn's random jitter, which moves a count by one here and there.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from nearid.measures.infomec import infomec
from nearid.measures.information import entropy

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
    print(f"infomec  nearid   {wall:7.3f} s {core:7.3f} core s")
    print(f"infomec  sklearn  {peer_wall:7.3f} s {peer_core:7.3f} core s")
    print(
        f"infomec  ratio    {peer_wall / wall:7.1f}   {peer_core / core:7.1f}          largest differences: "
        f"NMI {np.abs(nmi - peer_nmi).max():.1e}, explicitness {np.abs(explicitness - peer_explicitness).max():.1e}"
    )


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    bench_infomec(given.rows, given.repeats)


if __name__ == "__main__":
    main()
