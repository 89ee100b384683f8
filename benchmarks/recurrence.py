"""How well recurrence and agreement of starts tell sources from a Gaussian subspace, which any rotation fits as well.

usage: python benchmarks/recurrence.py [--runs 60] [--sizes 1500x8x2,20000x12x2]

A size is rows x columns x dimensions of the subspace. Sources are Laplace, mixed at random. For each size a row of the
table of docs/guide/unmix.md: how many of three starts find a source and a component of the subspace, the AUROC of that
count and of the agreement against the truth, and which share of either kind `unmix` trusts.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.metrics import roc_auc_score

import nearid

SIZES = "600x12x2,1000x20x2,1500x8x2,3000x32x2,4000x12x2,20000x12x2,1500x8x3,4000x12x3,20000x12x3,1500x8x4,4000x12x6"


def measured(n: int, k: int, gaussian: int, runs: int) -> np.ndarray:
    """Of every component of all runs: whether it is of a source, its count, its agreement, whether it is trusted."""
    rows = []
    for run in range(runs):
        rng = np.random.default_rng([run, n, k, gaussian])
        sources = np.hstack([rng.laplace(scale=0.5**0.5, size=(n, k - gaussian)), rng.normal(size=(n, gaussian))])
        mixing = rng.normal(size=(k, k))
        ica = nearid.ICA(random_state=run).fit(sources @ mixing)
        shares = (ica.components_ @ mixing.T) ** 2
        source = shares[:, : k - gaussian].sum(axis=1) > 0.5 * shares.sum(axis=1)
        trusted = [not doubt for doubt in ica.diagnostics_.doubts]
        rows.append(np.column_stack([source, ica.recurrence_, ica.agreement_, trusted]))
    return np.concatenate(rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--sizes", default=SIZES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| dimensions | rows x columns | found by: sources, subspace | AUROC: count | agreement | trusted |")
    for size in options.sizes.split(","):
        n, k, gaussian = map(int, size.split("x"))
        source, count, agreement, trusted = measured(n, k, gaussian, options.runs).T
        of, rest = source > 0, source == 0
        areas = f"{roc_auc_score(of, count):.3f} | {roc_auc_score(of, agreement):.3f}"
        found = f"{count[of].mean():.2f}, {count[rest].mean():.2f}"
        shares = f"{trusted[of].mean():.0%}, {trusted[rest].mean():.0%}"
        print(f"| {gaussian} | {n:,} x {k} | {found} | {areas} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
