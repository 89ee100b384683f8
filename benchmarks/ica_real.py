"""nearid.ICA beside scikit-learn's FastICA and picard-o on rows of real networks, images and profiles.

usage: python benchmarks/ica_real.py [--sets ani_H,digits,...] [--runs nearid,sklearn,picard] [--seeds 6]
                                     [--features FOLDER] [--log results.jsonl]

Every answer is judged by the same code in float64 on the rows that were fitted. For each set and program the table
gives means over the seeds:
  J        sum |E log cosh y_i - that of a Gaussian| of components of unit variance (larger is better)
  agree    matched |correlation| of the components of two seeds, over all pairs of seeds
  seconds  wall time of all seeds together, and processor time
Peers may make 1,000 iterations and keep their own tolerances. Sets are read below NEARID_DATA. With --features, every
.npy file of that folder is a set too (benchmarks/resnet_features.py writes such files).

Compare times of one thread with OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 and `taskset -c 0`. `--log` keeps every
finished row of the table, and rows found there are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from bench_ica import GAUSSIAN, patches
from scipy.optimize import linear_sum_assignment

import nearid

ITERATIONS = 1000


def data(name: str) -> Path:
    """A file of the real data."""
    return Path(os.environ["NEARID_DATA"]) / name


def stored(file: str, entry: str) -> np.ndarray:
    """An entry of an ensemble."""
    return np.load(data("ensembles") / f"{file}.npz")[entry].astype(np.float32)


def table(file: str, columns: str) -> np.ndarray:
    """Columns of a table whose names contain this; those that are constant or not finite are left out."""
    import pandas as pd

    frame = pd.read_csv(data(file), sep="\t" if ".tsv" in file else ",", low_memory=False)
    x = frame.filter(regex=columns).select_dtypes("number").to_numpy(np.float64)
    return x[:, np.isfinite(x).all(axis=0) & (np.ptp(x, axis=0) > 0)]


def digits() -> np.ndarray:
    """The 8 x 8 digits of scikit-learn."""
    from sklearn.datasets import load_digits

    return load_digits().data


def faces() -> np.ndarray:
    """698 rendered faces of 32 x 32 pixels."""
    from scipy.io import loadmat

    return np.ascontiguousarray(loadmat(data("isomap_faces/face_1024.mat"))["dataY"].T)


def mnist() -> np.ndarray:
    """The 10,000 test images of MNIST, moved by up to half a grey level so that no pixel is tied or constant."""
    import gzip

    with gzip.open(data("mnist/t10k-images-idx3-ubyte.gz")) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784).astype(np.float32)
    return (pixels + np.random.default_rng(0).uniform(-0.5, 0.5, pixels.shape).astype(np.float32)) / 255


# Rows, and the number of components (None: all).
SETS: dict[str, tuple[Callable[[], np.ndarray], int | None]] = {
    "ani_H": (lambda: stored("ani_H", "ani1x_0"), 40),
    "ani_H_ccx": (lambda: stored("ani_H", "ani1ccx_3"), 40),
    "ani_C": (lambda: stored("ani_C", "ani1x_1"), 30),
    "cebra_a": (lambda: stored("cebra_hippocampus", "e022"), None),
    "cebra_b": (lambda: stored("cebra_hippocampus", "e030"), None),
    "cebra_c": (lambda: stored("cebra_hippocampus", "e041"), None),
    "silero_h": (lambda: stored("silero_vad", "h_6.0.0"), 32),
    "silero_c": (lambda: stored("silero_vad", "c_6.2.0"), 32),
    "digits": (digits, 30),
    "lincs": (lambda: table("lincs_wells/cell_painting_pca.tsv.gz", "^pca_"), None),
    "bbbc021": (lambda: table("bbbc021/BBBC021_feature_selected_mad_robustize.csv.gz", "^(Cells|Cyto|Nuc)"), 20),
    "cell_health": (lambda: table("cell_health/median_agg_cell_painting_modz.tsv.gz", "^(Cells|Cyto|Nuc)"), 20),
    "faces": (faces, 20),
    "effnet_faces": (lambda: stored("imagenet_factors", "faces_lite0"), 32),
    "effnet_coil": (lambda: stored("imagenet_factors", "coil_lite1"), 64),
    "mnist": (mnist, 48),
    "patches": (lambda: patches(20_000, side=4), None),
}


def ours(x: np.ndarray, k: int | None, seed: int) -> np.ndarray:
    """nearid.ICA with its defaults."""
    return nearid.ICA(k, random_state=seed).fit(x).components_


def fastica(x: np.ndarray, k: int | None, seed: int) -> np.ndarray:
    """scikit-learn's FastICA, all components at once."""
    from sklearn.decomposition import FastICA

    return FastICA(k, max_iter=ITERATIONS, whiten="unit-variance", random_state=seed).fit(x).components_


def picard_o(x: np.ndarray, k: int | None, seed: int) -> np.ndarray:
    """Picard on the orthogonal group, for sources of both signs."""
    from picard import picard

    x = x.astype(np.float64)
    whitening, rotation, _ = picard(x.T, n_components=k, max_iter=ITERATIONS, random_state=seed)
    return rotation @ whitening


RUNS = {"nearid": ours, "sklearn": fastica, "picard": picard_o}


def components(x: np.ndarray, unmixing: np.ndarray) -> np.ndarray:
    """Components of unit variance of centred rows, in float64."""
    y = x @ unmixing.T.astype(np.float64)
    return y / np.sqrt(np.mean(y**2, axis=0))


def contrast(y: np.ndarray) -> float:
    """J of components of unit variance."""
    return float(np.abs((np.logaddexp(y, -y) - np.log(2)).mean(axis=0) - GAUSSIAN).sum())


def agreement(found: list[np.ndarray]) -> float:
    """Matched |correlation| of components, over all pairs of fits."""
    each = []
    for a, b in combinations(found, 2):
        alike = np.abs(a.T @ b) / len(a)
        each.append(alike[linear_sum_assignment(-alike)].mean())
    return float(np.mean(each)) if each else 1.0


def measured(name: str, x: np.ndarray, k: int | None, seeds: int) -> dict[str, Any]:
    """Fits of one program from several seeds."""
    run, wall, cpu, found = RUNS[name], 0.0, 0.0, []
    centred = x - x.mean(axis=0, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Imports are not what is measured.
        run(np.random.default_rng(0).laplace(size=(300, 3)).astype(x.dtype), None, 0)
        for seed in range(seeds):
            began = time.perf_counter(), time.process_time()
            unmixing = run(x, k, seed)
            wall, cpu = wall + time.perf_counter() - began[0], cpu + time.process_time() - began[1]
            found.append(components(centred, unmixing))
    each = [contrast(y) for y in found]
    return {"J": float(np.mean(each)), "each": each, "agree": agreement(found), "seconds": wall, "cpu": cpu}


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets")
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    sets = dict(SETS)
    for file in sorted(given.features.glob("*.npy")) if given.features else []:
        sets[file.stem] = (lambda file=file: np.load(file), None)
    known = [json.loads(s) for s in given.log.read_text().splitlines()] if given.log and given.log.exists() else []
    titles = ("rows", "shape", "program", "J", "vs best", "agree", "seconds", "cpu")
    print("{:14s} {:>16s} {:8s} {:>9s} {:>8s} {:>6s} {:>8s} {:>7s}".format(*titles))
    for name in given.sets.split(",") if given.sets else sets:
        load, k = sets[name]
        x, rows = load(), []
        for run in given.runs.split(","):
            key = {"set": name, "run": run, "seeds": given.seeds}
            row = next((r for r in known if key.items() <= r.items()), None)
            if row is None:
                row = {**key, **measured(run, x, k, given.seeds)}
                if given.log:
                    with given.log.open("a") as file:
                        file.write(json.dumps(row) + "\n")
            rows.append(row)
        peers = [row["J"] for row in rows if row["run"] != "nearid"]
        shape = f"{len(x)} x {x.shape[1]}" + (f" > {k}" if k else "")
        for row in rows:
            share = f"{row['J'] / max(peers) - 1:+8.2%}" if peers else ""
            print(
                f"{name:14s} {shape:>16s} {row['run']:8s} {row['J']:9.4f} {share:>8s} {row['agree']:6.3f} "
                f"{row['seconds']:8.2f} {row['cpu']:7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
