"""Bi-Lipschitz constants of five real decoders beside one autograd call per direction and point; prints ratios.

usage: python benchmarks/bench_lipschitz.py [--points 1000] [--directions 10] [--peer-points 50] [--threads 1]

Reads the MNIST VAEs below NEARID_DATA (folder mnist_vaes) and decodes draws of their prior. The peers are timed on the
first --peer-points points and their time is extrapolated to all; constants are compared on those points. Two peers:
torch.func.jvp (forward mode) and torch.autograd.functional.jvp (twice reverse mode); ratios are against the faster.
Times are wall seconds and, in brackets, processor seconds, which other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import row

from nearid import lipschitz
from nearid.questions.extract.weights import load_decoder

NAMES = ("VAE", "betaH", "betaB", "factor", "btcvae")
Calls = dict[str, Callable[[Callable, torch.Tensor, torch.Tensor], torch.Tensor]]
PEERS: Calls = {
    "torch.func.jvp": lambda decoder, z, v: torch.func.jvp(decoder, (z,), (v,))[1],
    "torch.autograd.functional.jvp": lambda decoder, z, v: torch.autograd.functional.jvp(decoder, z, v)[1],
}


def timed(function: Callable[[], Any], repeats: int = 1) -> tuple[np.ndarray, Any]:
    """Best wall and processor seconds of some repeats, and the last result."""
    best, result = np.full(2, np.inf), None
    for _ in range(repeats):
        start = np.array([time.perf_counter(), time.process_time()])
        result = function()
        best = np.minimum(best, np.array([time.perf_counter(), time.process_time()]) - start)
    return best, result


def said(seconds: np.ndarray) -> str:
    """Both times."""
    return f"{seconds[0]:.2f} s ({seconds[1]:.2f})"


def one_by_one(call: Callable, decoder: Callable, z: torch.Tensor, v: torch.Tensor) -> np.ndarray:
    """What people write: the largest max(|J v|, 1 / |J v|) over directions, a call for each and each point."""
    constants = []
    for i in range(len(z)):
        lengths = [float(call(decoder, z[i : i + 1], along[i : i + 1]).norm()) for along in v]
        constants.append(max(max(length, 1 / length) for length in lengths))
    return np.array(constants)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--directions", type=int, default=10)
    parser.add_argument("--peer-points", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    data = os.environ.get("NEARID_DATA")
    if not data:
        raise SystemExit("Set NEARID_DATA to the folder that holds mnist_vaes.")
    torch.set_num_threads(asked.threads)
    n, k, few = asked.points, asked.directions, min(asked.peer_points, asked.points)
    z = np.random.default_rng(1).standard_normal((n, 10), dtype=np.float32)
    # The directions that lipschitz draws from seed 0.
    v = np.random.default_rng(0).standard_normal((k, n, 10))
    v = torch.tensor(v / np.linalg.norm(v, axis=2, keepdims=True), dtype=torch.float32)
    few_z, few_v = torch.from_numpy(z[:few]), v[:, :few]
    print(f"{k} directions x {n} points, {asked.threads} thread(s); peers on {few} points, extrapolated to {n}")
    ratios, differences = [], []
    for name in NAMES:
        decoder = load_decoder(str(Path(data, "mnist_vaes", name, "model.pt"))).eval().requires_grad_(False)
        lipschitz(decoder, z[:20], directions=k)  # what torch loads on its first call is nobody's time
        ours, found = timed(lambda d=decoder: lipschitz(d, z, directions=k, exact=False, points=n), repeats=2)
        whole, exact = timed(lambda d=decoder: lipschitz(d, z, directions=k, points=n))
        seconds = {}
        for peer, call in PEERS.items():
            one_by_one(call, decoder, few_z[:2], few_v[:, :2])
            taken, constants = timed(lambda c=call, d=decoder: one_by_one(c, d, few_z, few_v))
            seconds[peer] = taken * n / few
            differences.append(np.abs(found.sampled.values[:few] / constants - 1).max())
            differences.append(np.abs(exact.sampled.values[:few] / constants - 1).max())
        ratios.append(np.min(list(seconds.values()), axis=0) / ours)
        least = float(min(each[1] for each in seconds.values()))
        row(f"Lipschitz, {name}, {n:,} points", ours=float(ours[1]), peer=least, by="torch, one by one", unit="core s")
        told = ", ".join(f"{peer} {said(s)}" for peer, s in seconds.items())
        print(f"{name}: nearid {said(ours)}, with all singular values {said(whole)}; {told}")
        print(f"  ratio {ratios[-1][0]:.1f} ({ratios[-1][1]:.1f})")
        local, best = found.sampled.local, exact.exact
        print(
            f"  L over directions: mean {local.mean.value:.2f}, maximum {local.maximum.value:.1f}; over all: "
            f"median {best.local.quantiles[0.5].value:.2f}, maximum {best.local.maximum.value:.1f}, "
            f"scale-free {best.scale_free:.1f}"
        )
    least = np.min(ratios, axis=0)
    print(
        f"least ratio {least[0]:.1f} ({least[1]:.1f}); largest relative difference of constants {max(differences):.1e}"
    )


if __name__ == "__main__":
    main()
